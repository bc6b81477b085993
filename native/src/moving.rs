//! The rows of a merged bundle as texts that go into its blocks.
//!
//! **Invariant:** a text has whole rows, as many as its block takes, so the blocks are those that
//! `jostler/format/blocks.py` makes of the rows one by one.

use std::collections::HashMap;

use crate::merge::Place;

/// Lines that are to be moved: each gets another head.
pub struct Lines<T> {
    pub plain: T,
    /// Where each begins, behind its head, and ends.
    pub spans: Vec<(usize, usize)>,
    pub head: Vec<u8>,
}

impl<T: AsRef<[u8]>> Lines<T> {
    /// Returns the new head and the rest of a line.
    pub fn line(&self, at: usize) -> Option<[&[u8]; 2]> {
        let (start, end) = self.spans.get(at)?;
        Some([&self.head, &self.plain.as_ref()[*start..*end]])
    }
}

/// The lines of some bundles, by number: each with the row that is its first.
pub type Moved<'a, T> = HashMap<u32, Vec<(usize, &'a Lines<T>)>>;

fn find<'a, T: AsRef<[u8]>>(moved: &Moved<'a, T>, (source, row): Place) -> Option<[&'a [u8]; 2]> {
    let parts = moved.get(&source)?;
    let after = parts.partition_point(|(first, _)| *first <= row as usize);
    let (first, lines) = parts.get(after.checked_sub(1)?)?;
    lines.line(row as usize - first)
}

/// Returns rows in order, as many as a block takes, and the sum of their bytes; `None` if a row is
/// missing.
///
/// `room` is what the last block still takes; if the first row needs more, it begins a block.
pub fn of_block<'a, T: AsRef<[u8]>>(
    order: &[Place],
    moved: &Moved<'a, T>,
    mut room: usize,
    block_bytes: usize,
) -> Option<(Vec<[&'a [u8]; 2]>, usize)> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    for place in order {
        let [head, rest] = find(moved, *place)?;
        let more = head.len() + rest.len();
        if bytes + more > room {
            if bytes > 0 {
                break;
            }
            room = block_bytes;
        }
        rows.push([head, rest]);
        bytes += more;
    }
    Some((rows, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns length and rows of the texts of rows of these lengths, which two bundles have.
    fn lengths(rows: &[usize], mut room: usize) -> Vec<(usize, usize)> {
        let lines = |rows: &[usize]| Lines {
            plain: [b'x'; 100],
            spans: rows.iter().map(|length| (1, *length)).collect(),
            head: b"h".to_vec(),
        };
        let (one, rest) = rows.split_at(rows.len() / 2);
        let (two, three) = rest.split_at(rest.len() / 2);
        let [first, second, third] = [one, two, three].map(lines);
        let moved =
            Moved::from([(0, vec![(5, &first)]), (1, vec![(0, &second), (two.len(), &third)])]);
        let places = (0..one.len()).map(|at| (0, at as u32 + 5));
        let order: Vec<Place> = places.chain((0..rest.len()).map(|at| (1, at as u32))).collect();
        let (mut found, mut at) = (Vec::new(), 0);
        while at < order.len() {
            let (rows, bytes) = of_block(&order[at..], &moved, room, 20).unwrap();
            assert_eq!(rows.as_flattened().concat().len(), bytes);
            found.push((bytes, rows.len()));
            (at, room) = (at + rows.len(), 20);
        }
        found
    }

    #[test]
    fn a_text_has_as_many_rows_as_its_block_takes() {
        assert_eq!(lengths(&[5, 5, 5, 5, 5], 20), [(20, 4), (5, 1)]);
        assert_eq!(lengths(&[5, 5, 5, 5, 5], 10), [(10, 2), (15, 3)]);
        assert_eq!(lengths(&[5, 5, 5, 6], 0), [(15, 3), (6, 1)], "the first begins a block");
        assert_eq!(lengths(&[5, 30, 5, 20, 1], 12), [(5, 1), (30, 1), (5, 1), (20, 1), (1, 1)]);
        assert_eq!(lengths(&[30, 5], 20), [(30, 1), (5, 1)]);
    }

    #[test]
    fn lines_get_another_head_and_none_may_be_missing() {
        let (plain, spans) = (b"old1\nold2\n", vec![(3, 5), (8, 10)]);
        let lines = Lines { plain, spans, head: b"new".to_vec() };
        let moved = Moved::from([(7, vec![(1, &lines)])]);
        let made = |order: &[Place]| {
            of_block(order, &moved, 99, 99).map(|(rows, _)| rows.as_flattened().concat())
        };
        assert_eq!(made(&[(7, 2), (7, 1)]), Some(b"new2\nnew1\n".to_vec()));
        for missing in [(7, 0), (7, 3), (6, 1)] {
            assert_eq!(made(&[(7, 1), missing]), None, "{missing:?}");
        }
    }
}
