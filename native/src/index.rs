//! The rows of an index of the usual form; docs/format.md, "index1", has the form.
//!
//! **Invariant:** an index is taken only if its bytes are exactly those that jostler writes for its
//! values, and no text in it has an escape; so texts are compared and written again as bytes.  A row
//! of the data object is taken only if it has the Filename and the Hash of its index row.

use memchr::memchr;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::hash::{self, Hash};
use crate::index_reading::{self, Nodes};

const KEYS_AT_ONCE: usize = 256;

/// What all index rows of a bundle share.
pub struct Shared<'a> {
    pub date: &'a str,
    pub datatype: &'a str,
    /// Of the data object.
    pub url: &'a str,
    pub index_url: &'a str,
    /// What Filenames begin with: `2022/09/29/`.
    pub folder: &'a str,
    /// How many rows come before the text, if it is a part of an index.
    pub first: usize,
}

/// A node, and how many rows of it follow one another.
pub type Run = (String, usize);

/// Node, Filename and hash of a row.
pub type Identity<'a> = (&'a str, &'a [u8], &'a Hash);

/// A part of the index's text.
#[derive(Clone, Copy, Default)]
pub struct Span(pub u32, pub u32);

impl Span {
    pub fn of<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[self.0 as usize..self.1 as usize]
    }
}

pub struct Row {
    pub version: Span,
    pub commit: Span,
    pub filename: Span,
    pub size: u64,
    pub added: Span,
    /// Place of its node among those of the index.
    pub node: usize,
    pub hash: Hash,
    pub offset: u64,
    pub length: u64,
    /// Start, End and WorkID; empty if null.
    pub facts: [Span; 3],
    /// From the value of Start on, to the end of `raw`.
    pub last: Span,
}

/// An index as it was taken; `T` holds its text.
pub struct Index<T> {
    pub text: T,
    pub rows: Vec<Row>,
    pub runs: Vec<Run>,
}

/// Rows of a data object.
pub struct Taken {
    /// How many were taken.
    pub rows: usize,
    /// Where the first row begins that was not taken.
    pub end: usize,
    /// Where the Filename of each begins, as JSON.
    pub names: Vec<usize>,
}

/// A line that has the Filename of its index row.
struct Line<'a> {
    /// Where its Filename begins.
    name: usize,
    raw: &'a [u8],
    /// Behind its line feed.
    end: usize,
}

impl<T: AsRef<[u8]>> Index<T> {
    /// Takes an index; None if it has another form, or is that of another bundle.
    ///
    /// The rows are those of the nodes in `runs`; if it is empty, of `node`.
    pub fn new(text: T, node: &str, mut runs: Vec<Run>, shared: &Shared) -> Option<Self> {
        let nodes = if runs.is_empty() { Nodes::One(node) } else { Nodes::Runs(&runs) };
        let rows = index_reading::rows(text.as_ref(), nodes, shared)?;
        if runs.is_empty() {
            runs.push((node.to_owned(), rows.len()));
        }
        Some(Self { text, rows, runs })
    }

    fn node(&self, row: &Row) -> &str {
        &self.runs[row.node].0
    }

    pub fn identity<'a>(&'a self, row: &'a Row) -> Identity<'a> {
        (self.node(row), row.filename.of(self.text.as_ref()), &row.hash)
    }

    /// Returns offset and length of each block, and how many rows it has.
    pub fn blocks(&self) -> Vec<(u64, u64, usize)> {
        let mut found: Vec<(u64, u64, usize)> = Vec::new();
        for row in &self.rows {
            match found.last_mut() {
                Some((offset, length, rows)) if (*offset, *length) == (row.offset, row.length) => {
                    *rows += 1;
                }
                _ => found.push((row.offset, row.length, 1)),
            }
        }
        found
    }

    /// Takes lines that begin at a place, as far as they are the rows from `first` on.
    ///
    /// `head` is what the lines have before their Filename; hashes are compared if `compare` is true.
    pub fn take(
        &self,
        plain: &[u8],
        at: usize,
        first: usize,
        most: usize,
        head: &[u8],
        compare: bool,
    ) -> Taken {
        let mut lines = self.lines(plain, at, first, most, head);
        if compare {
            lines.truncate(self.same(lines.iter().map(|line| line.raw), first));
        }
        let end = lines.last().map_or(at, |line| line.end);
        Taken { rows: lines.len(), end, names: lines.iter().map(|line| line.name).collect() }
    }

    /// Returns how many of some blocks are wholly the rows from `first` on, given the number of
    /// rows that each must have.
    ///
    /// The hashes of long rows take less time if there are more rows than a block has.
    pub fn take_blocks(&self, blocks: &[(&[u8], usize)], first: usize, head: &[u8]) -> usize {
        let (mut raws, mut ends) = (Vec::new(), Vec::new());
        for (plain, rows) in blocks {
            let lines = self.lines(plain, 0, first + raws.len(), *rows, head);
            if lines.len() != *rows || lines.last().is_none_or(|line| line.end != plain.len()) {
                break;
            }
            raws.extend(lines.iter().map(|line| line.raw));
            ends.push(raws.len());
        }
        let same = self.same(raws.into_iter(), first);
        ends.iter().take_while(|end| **end <= same).count()
    }

    fn lines<'a>(
        &self,
        plain: &'a [u8],
        at: usize,
        first: usize,
        most: usize,
        head: &[u8],
    ) -> Vec<Line<'a>> {
        let mut lines: Vec<Line> = Vec::new();
        let mut end = at;
        for row in self.rows.iter().skip(first).take(most) {
            let Some(rest) = plain.get(end..) else { break };
            let Some(length) = memchr(b'\n', rest) else { break };
            let Some(raw) = cut(&rest[..length], head, row.filename.of(self.text.as_ref())) else {
                break;
            };
            if raw.len() as u64 > row.size {
                break;
            }
            let name = end + head.len();
            end += length + 1;
            lines.push(Line { name, raw, end });
        }
        lines
    }

    /// Returns how many of these have the hashes of the rows from `first` on.
    fn same<'a>(&self, raws: impl Iterator<Item = &'a [u8]>, first: usize) -> usize {
        let rows = self.rows.iter().skip(first);
        hash::hashes(raws).iter().zip(rows).take_while(|(hash, row)| **hash == row.hash).count()
    }

    /// Returns the key of each row; see `NameKeys`.
    pub fn name_keys(&self) -> Vec<u8> {
        let mut keys = NameKeys::default();
        for row in &self.rows {
            keys.add(self.node(row).as_bytes(), row.filename.of(self.text.as_ref()));
        }
        keys.found
    }

    /// Returns what tells whether a row occurs twice: `keys` in `jostler/archive/audit/bundle.py`.
    pub fn keys(&self, datatype: &str) -> Vec<Hash> {
        let mut found = Vec::with_capacity(self.rows.len());
        for rows in self.rows.chunks(KEYS_AT_ONCE) {
            let texts: Vec<Vec<u8>> = rows
                .iter()
                .map(|row| {
                    let filename = row.filename.of(self.text.as_ref());
                    let hash = hash::text(&row.hash);
                    let parts: [&[u8]; 5] = [
                        self.node(row).as_bytes(),
                        datatype.as_bytes(),
                        filename,
                        hash.as_bytes(),
                        b"False",
                    ];
                    parts.join(&b'\0')
                })
                .collect();
            found.extend(hash::hashes(texts.iter().map(Vec::as_slice)));
        }
        found
    }
}

/// 8 bytes for each row, equal for equal node and Filename; `loader/spark/index.py` says how they
/// are made.
#[derive(Default)]
struct NameKeys {
    found: Vec<u8>,
    /// The node of the row before, and what its names are hashed with.
    node: Vec<u8>,
    seed: Option<u64>,
}

impl NameKeys {
    fn add(&mut self, node: &[u8], filename: &[u8]) {
        let seed = match self.seed {
            Some(seed) if self.node == node => seed,
            _ => {
                self.node = node.to_vec();
                *self.seed.insert(xxh3_64(node))
            }
        };
        self.found.extend_from_slice(&xxh3_64_with_seed(filename, seed).to_be_bytes());
    }
}

/// Returns the key of each row of an index, and where the block of the last one lies; `None` as of
/// `Index::new`.
///
/// No row is kept, so all of it happens in the processor's cache.
pub fn name_keys_of(text: &[u8], nodes: Nodes, shared: &Shared) -> Option<(Vec<u8>, (u64, u64))> {
    let (mut keys, mut last) = (NameKeys::default(), (0, 0));
    index_reading::each(text, nodes, shared, |node, row| {
        keys.add(node, row.filename.of(text));
        last = (row.offset, row.length);
    })?;
    Some((keys.found, last))
}

/// Returns `raw` of a line that has this head and this Filename.
fn cut<'a>(line: &'a [u8], head: &[u8], filename: &[u8]) -> Option<&'a [u8]> {
    let rest = line.strip_prefix(head)?.strip_prefix(b"\"")?.strip_prefix(filename)?;
    let raw = rest.strip_prefix(b"\"},\"raw\":")?.strip_suffix(b"}")?;
    (raw.first() == Some(&b'{') && raw.last() == Some(&b'}')).then_some(raw)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub const SHARED: Shared = Shared {
        date: "2022-09-29",
        datatype: "foo1",
        url: "gs://b/d",
        index_url: "gs://b/i",
        folder: "2022/09/29/",
        first: 0,
    };
    const HEAD: &[u8] = b"{\"Filename\":";

    pub fn line(name: &str, raw: &str, node: &str, number: usize) -> String {
        let hash = hash::text(&hash::hashes([raw.as_bytes()].into_iter())[0]);
        format!(
            "{{\"date\":\"2022-09-29\",\"archiver\":{{\"Version\":\"v\",\"GitCommit\":\"c\",\
             \"ArchiveURL\":\"gs://b/i\",\"Filename\":\"{name}\"}},\"raw\":{{\"Filename\":\"{name}\",\
             \"Size\":{},\"TimeAdded\":\"2022-09-29T01:02:03.000004Z\",\"Datatype\":\"foo1\",\"Node\":\"{node}\",\
             \"ArchiveURL\":\"gs://b/d\",\"Line\":{number},\"Hash\":\"{hash}\",\"Offset\":10,\
             \"Length\":20,\"Start\":null,\"End\":\"2022-09-30T00:00:00.000000Z\",\"WorkID\":\"w\"}}}}\n",
            raw.len()
        )
    }

    fn index(text: &str, rows: usize) -> Option<Index<Vec<u8>>> {
        Index::new(text.as_bytes().to_vec(), "", vec![("node1".into(), rows)], &SHARED)
    }

    #[test]
    fn an_index_of_another_form_is_not_taken() {
        let one = line("2022/09/29/a", "{}", "node1", 1);
        assert_eq!(index(&one, 1).unwrap().blocks(), [(10, 20, 1)]);
        assert!(index(&one, 2).is_none() && index(&one, 0).is_none() && index("", 0).is_none());
        for (from, to) in [
            ("node1", "node2"),
            ("\"Line\":1", "\"Line\":2"),
            ("\"Line\":1", "\"Line\":01"),
            ("\"Line\":1", "\"Line\": 1"),
            ("\"Offset\":10", "\"Offset\":9999999999999999999"),
            ("gs://b/i", "gs://b/j"),
            ("09/29/a\"", "09/30/a\""),
            ("03.000004Z", "03.000004"),
            ("2022-09-30T", "2022-09-31T"),
            ("2022-09-30T", "2022/09/30T"),
            ("\"2022-09-30T00:00:00.000000Z\"", "\"\""),
            ("\"w\"", "\"\\u0077\""),
            ("\"w\"", "\"\t\""),
            ("\"w\"", "5"),
            ("}}\n", "}}"),
            ("}}\n", "}} \n"),
            ("}}\n", ",\"More\":1}}\n"),
        ] {
            let changed = one.replace(from, to);
            assert!(changed != one && index(&changed, 1).is_none(), "{from} {to}");
        }
    }

    #[test]
    fn a_part_of_an_index_counts_on() {
        let text = line("2022/09/29/a", "{}", "node1", 8);
        let part = |first| {
            let shared = Shared { first, ..SHARED };
            Index::new(text.as_bytes(), "node1", vec![], &shared)
        };
        assert!(part(6).is_none());
        let key = xxh3_64_with_seed(b"2022/09/29/a", xxh3_64(b"node1"));
        assert_eq!(part(7).unwrap().name_keys(), key.to_be_bytes());
    }

    #[test]
    fn rows_are_those_of_the_nodes_that_are_given() {
        let text = line("2022/09/29/a", "{}", "n1", 1)
            + &line("2022/09/29/a", "{}", "n2", 2)
            + &line("2022/09/29/b", "{}", "n2", 3);
        let runs = |runs: &[(&str, usize)]| {
            let runs = runs.iter().map(|(name, rows)| ((*name).to_owned(), *rows)).collect();
            Index::new(text.as_bytes(), "n1", runs, &SHARED).map(|it| it.name_keys())
        };
        let keys = |nodes| name_keys_of(text.as_bytes(), nodes, &SHARED).map(|it| it.0);
        let both = runs(&[("n0", 0), ("n1", 1), ("n2", 2), ("n3", 0)]).unwrap();
        assert_eq!(both.len(), 24);
        assert_ne!(both[..8], both[8..16], "the same name of two nodes");
        assert_eq!(keys(Nodes::Any), Some(both));
        for other in [
            &[][..],
            &[("n1", 3)],
            &[("n1", 1), ("n2", 1)],
            &[("n1", 1), ("n2", 3)],
            &[("n1", 1), ("n2", 2), ("n3", 1)],
        ] {
            assert!(runs(other).is_none(), "{other:?}");
        }
        assert!(keys(Nodes::One("n1")).is_none() && keys(Nodes::One("n2")).is_none());
        let one = text.lines().next().unwrap().to_owned() + "\n";
        let last = name_keys_of(one.as_bytes(), Nodes::One("n1"), &SHARED).unwrap().1;
        assert_eq!(last, (10, 20));
    }

    #[test]
    fn rows_are_taken_up_to_the_first_that_is_not_as_its_index_says() {
        let text = line("2022/09/29/a", "{\"a\":1}", "node1", 1)
            + &line("2022/09/29/b", "{\"b\":1}", "node1", 2);
        let made = index(&text, 2).unwrap();
        let row = |name: &str, raw: &str| format!("{{\"Filename\":\"{name}\"}},\"raw\":{raw}}}\n");
        let (a, b) = (row("2022/09/29/a", "{\"a\":1}"), row("2022/09/29/b", "{\"b\":1}"));
        let taken = |text: &str| {
            let found = made.take(text.as_bytes(), 0, 0, 9, HEAD, true);
            assert_eq!(found.names.len(), found.rows);
            (found.rows, found.end)
        };
        assert_eq!(taken(&(a.clone() + &b)), (2, a.len() + b.len()));
        assert_eq!(taken(&a), (1, a.len()));
        assert_eq!(taken(b.as_str()), (0, 0));
        assert_eq!(taken(a.trim_end()), (0, 0));
        for other in ["", &a, &row("2022/09/29/b", "{\"b\":2}"), &row("2022/09/29/c", "{\"b\":1}")]
        {
            assert_eq!(taken(&(a.clone() + other)), (1, a.len()), "{other}");
        }
        let found = made.take((a.clone() + &b).as_bytes(), a.len(), 1, 1, HEAD, true);
        assert_eq!((found.rows, found.end), (1, a.len() + b.len()));
        assert_eq!(made.take(b"", 5, 9, 9, HEAD, true).rows, 0);
        let other = row("2022/09/29/b", "{\"b\":2}") + &row("2022/09/29/c", "{}");
        assert_eq!(made.take(other.as_bytes(), 0, 1, 9, HEAD, false).rows, 1, "not compared");

        let both = a.clone() + &b;
        let blocks = |blocks: &[(&str, usize)]| {
            let blocks: Vec<_> = blocks.iter().map(|(text, n)| (text.as_bytes(), *n)).collect();
            made.take_blocks(&blocks, 0, HEAD)
        };
        assert_eq!(blocks(&[(&a, 1), (&b, 1)]), 2);
        assert_eq!(blocks(&[(&both, 2)]), 1);
        assert_eq!(blocks(&[(&a, 1), (&a, 1)]), 1);
        assert_eq!(blocks(&[(&both, 1), (&b, 1)]), 0);
        assert_eq!(blocks(&[(&a, 2)]), 0);
        assert_eq!(blocks(&[(&a, 1), (&row("2022/09/29/b", "{\"b\":2}"), 1)]), 1);
    }
}
