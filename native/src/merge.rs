//! The order of the rows of several bundles, and their index rows in it: what
//! `jostler/archive/compact_merge.py` describes, of indexes of the usual form.
//!
//! **Invariant:** order, digest and bytes are those that Python makes of the same rows.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::ops::Deref;

use blake2b_simd::Params;

use crate::hash::{self, HASH_BYTES};
use crate::index::{Identity, Index, Row, Run};
use crate::index_text::{self, IndexRow};

/// A row: which index, and which row of it, from 0.
pub type Place = (u32, u32);

/// The place of a row's node, and 16 bytes of its Filename: most rows need no further comparison.
type Key = (usize, u128);

/// Returns the first 16 bytes as a number; a text has no bytes that are zero.
fn begin(text: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    let many = text.len().min(16);
    bytes[..many].copy_from_slice(&text[..many]);
    u128::from_be_bytes(bytes)
}

/// Rows in order; of equal node, Filename and hash the earliest alone.
pub struct Merge<I> {
    pub indexes: Vec<I>,
    pub order: Vec<Place>,
    /// How many rows are left out.
    pub repeats: usize,
}

/// What index rows say of the bundle that the rows are moved to; texts are JSON, with quotes.
pub struct Target<'a> {
    pub date: &'a [u8],
    pub datatype: &'a [u8],
    pub url: &'a [u8],
    pub index_url: &'a [u8],
    /// First line from 1, offset and length of each block.
    pub blocks: &'a [(usize, u64, u64)],
}

impl<T: AsRef<[u8]> + 'static, I: Deref<Target = Index<T>>> Merge<I> {
    pub fn new(indexes: Vec<I>) -> Self {
        let mut order: Vec<(Key, Place)> = Vec::new();
        let made = Self { indexes, order: Vec::new(), repeats: 0 };
        let begins = made.common_begin();
        let nodes = made.nodes();
        for (number, one) in made.indexes.iter().enumerate() {
            for (line, row) in one.rows.iter().enumerate() {
                let (node, filename, _) = one.identity(row);
                let key = (nodes[node], begin(&filename[begins..]));
                order.push((key, (number as u32, line as u32)));
            }
        }
        // The rows of a bundle are often in order, which this sort makes use of.
        order.sort_by(|one, other| one.0.cmp(&other.0).then_with(|| made.compare(one.1, other.1)));
        let mut order: Vec<Place> = order.into_iter().map(|(_, place)| place).collect();
        let rows = order.len();
        order.dedup_by(|one, kept| made.identity(*one) == made.identity(*kept));
        let repeats = rows - order.len();
        Self { order, repeats, ..made }
    }

    /// Returns each node with its place in the order of nodes.
    fn nodes(&self) -> HashMap<&str, usize> {
        let names = self.indexes.iter().flat_map(|one| &one.runs).map(|(name, _)| name.as_str());
        let sorted: BTreeSet<&str> = names.collect();
        sorted.into_iter().zip(0..).collect()
    }

    /// Returns how many bytes all Filenames have in common at their beginning.
    fn common_begin(&self) -> usize {
        let mut names = self
            .indexes
            .iter()
            .flat_map(|one| one.rows.iter().map(|row| row.filename.of(one.text.as_ref())));
        let Some(first) = names.next() else { return 0 };
        names.fold(first.len(), |most, name| {
            first[..most].iter().zip(name).take_while(|(one, other)| one == other).count()
        })
    }

    fn row(&self, place: Place) -> (&Index<T>, &Row, &[u8]) {
        let index = &*self.indexes[place.0 as usize];
        (index, &index.rows[place.1 as usize], index.text.as_ref())
    }

    /// Returns node, Filename and hash.
    pub fn identity(&self, place: Place) -> Identity<'_> {
        let (index, row, _) = self.row(place);
        index.identity(row)
    }

    /// Returns whether an index has these rows and no others, in this order.
    pub fn is_order_of(&self, index: &Index<T>) -> bool {
        let same = |(place, row): (&Place, &Row)| self.identity(*place) == index.identity(row);
        self.order.len() == index.rows.len() && self.order.iter().zip(&index.rows).all(same)
    }

    fn compare(&self, one: Place, other: Place) -> Ordering {
        let details = |place| {
            let (_, row, text) = self.row(place);
            let texts = [row.added, row.version, row.commit].map(|span| span.of(text));
            (texts, row.size, row.facts.map(|span| span.of(text)), place)
        };
        let identities = self.identity(one).cmp(&self.identity(other));
        identities.then_with(|| details(one).cmp(&details(other)))
    }

    /// Returns the digest of the identities, which names the merged bundle.
    pub fn digest(&self) -> String {
        let mut hashed = Params::new().hash_length(HASH_BYTES).to_state();
        for place in &self.order {
            let (node, filename, hash) = self.identity(*place);
            hashed.update(b"[\"").update(node.as_bytes()).update(b"\",\"").update(filename);
            hashed.update(b"\",\"").update(hash::text(hash).as_bytes()).update(b"\"]\n");
        }
        hashed.finalize().to_hex().to_string()
    }

    /// Returns the nodes in order, each with the number of its rows.
    pub fn runs(&self) -> Vec<Run> {
        let mut found: Vec<Run> = Vec::new();
        for place in &self.order {
            let node = self.identity(*place).0;
            match found.last_mut() {
                Some((last, rows)) if last == node => *rows += 1,
                _ => found.push((node.to_owned(), 1)),
            }
        }
        found
    }

    /// Returns the earliest and the latest TimeAdded.
    pub fn added(&self) -> Option<(&[u8], &[u8])> {
        let of = |place: &Place| {
            let (_, row, text) = self.row(*place);
            row.added.of(text)
        };
        Some((self.order.iter().map(of).min()?, self.order.iter().map(of).max()?))
    }

    /// Returns the index rows of rows from one on, each with its new place, as many as `most` bytes
    /// take, and how many they are: at least one.
    pub fn index(&self, first: usize, most: usize, target: &Target) -> (Vec<u8>, usize) {
        let at = target.blocks.partition_point(|(line, ..)| *line <= first + 1);
        let mut blocks = target.blocks[at.saturating_sub(1)..].iter().peekable();
        let mut block = (0, 0);
        // In most rows these are as in the row before.
        let (mut archiver, mut head) = (None, Vec::new());
        let (mut last_node, mut shared) = (None, Vec::new());
        let mut out = Vec::with_capacity(most);
        let mut ends = 0;
        for (rows, place) in self.order.iter().skip(first).enumerate() {
            let line = first + rows + 1;
            while let Some((_, offset, length)) = blocks.next_if(|(begin, ..)| *begin <= line) {
                block = (*offset, *length);
            }
            let (index, row, text) = self.row(*place);
            let (node, filename, hash) = index.identity(row);
            let (version, commit) = (row.version.of(text), row.commit.of(text));
            if archiver != Some((version, commit)) {
                head = index_text::head(target.date, version, commit, target.index_url);
                archiver = Some((version, commit));
            }
            if last_node != Some(node) {
                shared = index_text::shared(target.datatype, node.as_bytes(), target.url);
                last_node = Some(node);
            }
            IndexRow {
                head: &head,
                filename,
                size: row.size,
                added: row.added.of(text),
                shared: &shared,
                line: line as u64,
                hash,
                block,
                last: row.last.of(text),
            }
            .write(&mut out);
            if rows > 0 && out.len() > most {
                out.truncate(ends);
                return (out, rows);
            }
            ends = out.len();
        }
        (out, self.order.len().saturating_sub(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::tests::{SHARED, line};

    fn index(node: &str, names: &[&str]) -> Box<Index<Vec<u8>>> {
        let lines = names.iter().enumerate();
        let text: String = lines
            .map(|(at, name)| line(&format!("2022/09/29/{name}"), "{}", node, at + 1))
            .collect();
        let runs = vec![(node.to_owned(), names.len())];
        Box::new(Index::new(text.into_bytes(), "", runs, &SHARED).unwrap())
    }

    #[test]
    fn rows_are_sorted_and_kept_once() {
        let made = Merge::new(vec![
            index("n2", &["b", "a"]),
            index("n1", &["z"]),
            index("n2", &["a", "c"]),
        ]);
        assert_eq!(made.order, [(1, 0), (0, 1), (0, 0), (2, 1)]);
        assert_eq!(made.repeats, 1);
        assert_eq!(made.runs(), [("n1".to_owned(), 1), ("n2".to_owned(), 3)]);
        assert_eq!(
            made.added(),
            Some((&b"2022-09-29T01:02:03.000004Z"[..], &b"2022-09-29T01:02:03.000004Z"[..]))
        );
        let other = Merge::new(vec![index("n2", &["c", "b", "a"]), index("n1", &["z"])]);
        assert_eq!(made.digest(), other.digest());
    }

    #[test]
    fn an_index_is_told_from_others_by_its_rows_and_their_order() {
        let made = Merge::new(vec![index("n2", &["b", "a"]), index("n2", &["a", "c"])]);
        assert!(made.is_order_of(&index("n2", &["a", "b", "c"])));
        for (node, names) in [
            ("n2", &["a", "b"][..]),
            ("n2", &["a", "b", "c", "d"]),
            ("n2", &["a", "c", "b"]),
            ("n2", &["a", "b", "d"]),
            ("n1", &["a", "b", "c"]),
        ] {
            assert!(!made.is_order_of(&index(node, names)), "{node} {names:?}");
        }
        let mut changed = index("n2", &["a", "b", "c"]);
        changed.rows[2].hash[0] ^= 1;
        assert!(!made.is_order_of(&changed), "another content");
    }

    #[test]
    fn the_order_is_that_of_identities_and_then_of_all_that_a_row_says() {
        let long = "x".repeat(20);
        let names: Vec<String> = ["", "a", "a b", "ab", "é", "\u{7f}", "B", "x", "xx"]
            .iter()
            .flat_map(|end| [format!("p{end}"), format!("p{long}{end}"), format!("p{end}{long}")])
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).rev().collect();
        let nodes = ["n1", "n10", "n2", "n"];
        let many = nodes.iter().cycle().zip(names.chunks(3).chain(names.chunks(4)));
        let made = Merge::new(many.map(|(node, names)| index(node, names)).collect());
        let found: Vec<Identity> = made.order.iter().map(|place| made.identity(*place)).collect();
        assert!(found.is_sorted_by(|one, other| one < other));
        assert_eq!(found.len() + made.repeats, 2 * names.len());
        let one = Merge::new(vec![index("n", &["a"]), index("n", &["a"])]);
        assert_eq!((one.order, one.repeats), (vec![(0, 0)], 1), "the first of equal ones");
        assert!(Merge::new(Vec::<Box<Index<Vec<u8>>>>::new()).order.is_empty());
    }

    #[test]
    fn index_rows_are_written_in_the_form_that_is_taken() {
        let one = index("n1", &["a", "b"]);
        let text = one.text.clone();
        let target = Target {
            date: b"\"2022-09-29\"",
            datatype: b"\"foo1\"",
            url: b"\"gs://b/d\"",
            index_url: b"\"gs://b/i\"",
            blocks: &[(1, 10, 20)],
        };
        let made = Merge::new(vec![one]);
        let half = text.len() / 2;
        assert_eq!(made.index(0, text.len(), &target), (text.clone(), 2));
        assert_eq!(made.index(0, text.len() - 1, &target), (text[..half].to_vec(), 1));
        assert_eq!(made.index(0, 0, &target), (text[..half].to_vec(), 1));
        assert_eq!(made.index(1, 0, &target), (text[half..].to_vec(), 1));
    }
}
