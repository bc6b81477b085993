//! The index rows of the files of a sealed bundle: what `jostler/bundle/index.py` writes of them.
//!
//! **Invariant:** the bytes are those that Python writes; if there is a file whose row needs a
//! decision (its name has to be escaped, it has no hash, its time is of a strange year), there are
//! no rows.

use crate::hash::Hash;
use crate::index_text::{self, IndexRow};
use crate::instant;

/// Five for each file: inode, size, mtime and ctime in ns, and when it was read in µs.
pub const NUMBERS: usize = 5;

/// Start and End in microseconds since 1970, and WorkID.
pub type Facts<'a> = (Option<i64>, Option<i64>, Option<&'a str>);

/// What the rows share.
pub struct Shared<'a> {
    /// What each has before its Filename.
    pub head: &'a [u8],
    /// The members that say which bundle it is.
    pub members: &'a [u8],
    /// First line from 1, offset and length of each block.
    pub blocks: &'a [(u64, u64, u64)],
}

/// A file: its path below the spool, its numbers, its hash, and its facts if it has any.
pub struct File<'a> {
    pub path: &'a str,
    pub numbers: &'a [i64],
    pub hash: &'a [u8],
    pub facts: Option<Facts<'a>>,
}

/// Returns the rows of files, and where each ends, given the line of the first.
pub fn rows<'a>(
    files: impl Iterator<Item = File<'a>>,
    first: u64,
    shared: &Shared,
) -> Option<(Vec<u8>, Vec<usize>)> {
    let (mut out, mut ends) = (Vec::new(), Vec::new());
    let mut blocks = shared.blocks.iter().peekable();
    let mut block = None;
    for (file, line) in files.zip(first..) {
        while let Some((_, offset, length)) = blocks.next_if(|(begin, ..)| *begin <= line) {
            block = Some((*offset, *length));
        }
        let (_, filename) = file.path.split_once('/')?;
        let &[_, size, mtime_ns, _, added_us] = file.numbers else {
            return None;
        };
        let hash: &Hash = file.hash.try_into().ok()?;
        // Start is the file's mtime if no flag fills it.
        let usual = (mtime_ns >= 0).then_some((Some(mtime_ns / 1000), None, None));
        IndexRow {
            head: shared.head,
            filename: plain(filename)?,
            size: size.try_into().ok()?,
            added: &instant::text(added_us)?,
            shared: shared.members,
            line,
            hash,
            block: block?,
            last: &last(file.facts.or(usual)?)?,
        }
        .write(&mut out);
        ends.push(out.len());
    }
    Some((out, ends))
}

fn last((start_us, end_us, work_id): Facts) -> Option<Vec<u8>> {
    let instant = |micros: Option<i64>| micros.map_or(Some(None), |it| instant::text(it).map(Some));
    let (start, end) = (instant(start_us)?, instant(end_us)?);
    let work_id = work_id.map_or(Some(None), |text| plain(text).map(Some))?;
    Some(index_text::last(
        start.as_ref().map(|text| &text[..]),
        end.as_ref().map(|text| &text[..]),
        work_id,
    ))
}

/// Returns a text that is written in JSON as it is.
fn plain(text: &str) -> Option<&[u8]> {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    text.as_bytes().iter().all(is_plain).then_some(text.as_bytes())
}

/// What Python calls.
#[cfg(feature = "module")]
pub mod python {
    use pyo3::buffer::PyBuffer;
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;
    use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
    use pyo3::types::PyBytes;

    use super::{File, NUMBERS, Shared};

    type Facts = (Option<i64>, Option<i64>, Option<PyBackedStr>);

    /// Returns the index rows of files, made without the interpreter's lock; None if one of them
    /// needs a decision.
    #[pyfunction]
    #[pyo3(signature = (paths, numbers, hashes, facts, *, head, shared, first, blocks))]
    #[expect(clippy::too_many_arguments, reason = "they are columns, or named")]
    pub fn index_rows<'py>(
        py: Python<'py>,
        paths: Vec<PyBackedStr>,
        numbers: PyBuffer<i64>,
        hashes: Vec<PyBackedBytes>,
        facts: Vec<Option<Facts>>,
        head: &[u8],
        shared: &[u8],
        first: u64,
        blocks: Vec<(u64, u64, u64)>,
    ) -> PyResult<Option<Vec<Bound<'py, PyBytes>>>> {
        let numbers = numbers.to_vec(py)?;
        let are_even = numbers.len() == NUMBERS * paths.len() && hashes.len() == paths.len();
        if !are_even || !(facts.is_empty() || facts.len() == paths.len()) {
            return Err(PyValueError::new_err("columns of different lengths"));
        }
        let made = py.detach(|| {
            let facts = facts.iter().map(|one| {
                let (start, end, work_id) = one.as_ref()?;
                Some((*start, *end, work_id.as_deref()))
            });
            let facts = facts.chain(std::iter::repeat(None));
            let columns = paths.iter().zip(numbers.chunks(NUMBERS)).zip(&hashes).zip(facts);
            let files =
                columns.map(|(((path, numbers), hash), facts)| File { path, numbers, hash, facts });
            let shared = Shared { head, members: shared, blocks: &blocks };
            super::rows(files, first, &shared)
        });
        Ok(made.map(|(text, ends)| {
            let starts = [0].into_iter().chain(ends.iter().copied());
            starts.zip(&ends).map(|(start, end)| PyBytes::new(py, &text[start..*end])).collect()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARED: Shared =
        Shared { head: b"{\"H\":", members: b"\"S\":1", blocks: &[(1, 10, 7), (3, 17, 8)] };
    const FILE: File = File {
        path: "foo1/2022/a.json",
        numbers: &[1, 5, 1_582_979_696_000_001_999, 2, 0],
        hash: &[0xab; 16],
        facts: None,
    };

    fn text(file: File, first: u64) -> Option<String> {
        let (text, ends) = rows([file].into_iter(), first, &SHARED)?;
        assert_eq!(ends, [text.len()]);
        String::from_utf8(text).ok()
    }

    #[test]
    fn a_row_says_what_the_file_was_and_where_its_row_lies() {
        let expected = "{\"H\":\"2022/a.json\"},\"raw\":{\"Filename\":\"2022/a.json\",\"Size\":5,\
            \"TimeAdded\":\"1970-01-01T00:00:00.000000Z\",\"S\":1,\"Line\":3,\
            \"Hash\":\"abababababababababababababababab\",\"Offset\":17,\"Length\":8,\
            \"Start\":\"2020-02-29T12:34:56.000001Z\",\"End\":null,\"WorkID\":null}}\n";
        assert_eq!(text(FILE, 3).unwrap(), expected);
        let before = text(FILE, 2).unwrap();
        assert!(before.contains("\"Line\":2,") && before.contains("\"Offset\":10,\"Length\":7,"));
        let facts = Some((None, Some(0), Some("w")));
        let given = text(File { facts, ..FILE }, 1).unwrap();
        let end = ",\"Start\":null,\"End\":\"1970-01-01T00:00:00.000000Z\",\"WorkID\":\"w\"}}\n";
        assert!(given.ends_with(end), "{given}");
    }

    #[test]
    fn what_needs_a_decision_makes_no_row() {
        assert!(text(FILE, 0).is_none(), "no block has it");
        for path in ["a.json", "foo1/\"", "foo1/\\", "foo1/\u{7f}", "foo1/\n", "foo1/é"] {
            assert!(text(File { path, ..FILE }, 1).is_none(), "{path}");
        }
        for numbers in [&[1, -1, 2, 2, 0][..], &[1, 5, -1, 2, 0], &[1, 5, 2, 2, -1], &[1, 5, 2, 2]]
        {
            assert!(text(File { numbers, ..FILE }, 1).is_none(), "{numbers:?}");
        }
        for hash in [&[][..], &[1; 15], &[1; 32]] {
            assert!(text(File { hash, ..FILE }, 1).is_none(), "{hash:?}");
        }
        let wrong = [(Some(-1), None, None), (None, Some(-1), None), (None, None, Some("\""))];
        for facts in wrong {
            assert!(text(File { facts: Some(facts), ..FILE }, 1).is_none(), "{facts:?}");
        }
    }
}
