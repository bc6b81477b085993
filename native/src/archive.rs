//! What Python calls to audit and to compact: `jostler/archive/native_index.py` describes it.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyString};

use crate::index::{self, Run, Shared};
use crate::index_reading::Nodes;
use crate::merge::{self, Target};
use crate::moving::{self, Lines, Moved};

/// The rows of an index of the usual form; `jostler/archive/native_index.py` describes it.
#[pyclass(frozen, module = "jostler_native")]
pub struct Index(index::Index<PyBackedBytes>);

#[pymethods]
impl Index {
    /// Takes an index of some nodes, or of one; None if it has another form, or is that of
    /// another bundle.
    #[staticmethod]
    #[pyo3(signature = (text, runs, *, node, date, datatype, url, index_url, folder, first=0))]
    #[expect(clippy::too_many_arguments, reason = "they are named")]
    fn of(
        py: Python<'_>,
        text: PyBackedBytes,
        runs: Vec<Run>,
        node: &str,
        date: &str,
        datatype: &str,
        url: &str,
        index_url: &str,
        folder: &str,
        first: usize,
    ) -> Option<Self> {
        let shared = Shared { date, datatype, url, index_url, folder, first };
        py.detach(|| index::Index::new(text, node, runs, &shared)).map(Self)
    }

    /// Returns what `name_keys` of an index of one node, or of those that its rows name, would
    /// return, and offset and length of the last block; None as `of`.
    #[staticmethod]
    #[pyo3(signature = (text, *, node, date, datatype, url, index_url, folder, first=0))]
    #[expect(clippy::too_many_arguments, reason = "they are named")]
    fn name_keys_of<'py>(
        py: Python<'py>,
        text: &[u8],
        node: Option<&str>,
        date: &str,
        datatype: &str,
        url: &str,
        index_url: &str,
        folder: &str,
        first: usize,
    ) -> Option<(Bound<'py, PyBytes>, (u64, u64))> {
        let shared = Shared { date, datatype, url, index_url, folder, first };
        let nodes = node.map_or(Nodes::Any, Nodes::One);
        let (keys, last) = py.detach(|| index::name_keys_of(text, nodes, &shared))?;
        Some((PyBytes::new(py, &keys), last))
    }

    fn __len__(&self) -> usize {
        self.0.rows.len()
    }

    /// Returns offset and length of each block, and how many rows it has.
    fn blocks(&self) -> Vec<(u64, u64, usize)> {
        self.0.blocks()
    }

    /// Returns how many lines are the rows from `first` on, and where the next line begins.
    #[pyo3(signature = (plain, at, first, most, *, head))]
    fn take(
        &self,
        py: Python<'_>,
        plain: &[u8],
        at: usize,
        first: usize,
        most: usize,
        head: &[u8],
    ) -> (usize, usize) {
        let taken = py.detach(|| self.0.take(plain, at, first, most, head, true));
        (taken.rows, taken.end)
    }

    /// Returns how many blocks, each with its number of rows, are wholly the rows from `first` on.
    #[pyo3(signature = (blocks, first, *, head))]
    fn take_blocks(
        &self,
        py: Python<'_>,
        blocks: Vec<(PyBackedBytes, usize)>,
        first: usize,
        head: &[u8],
    ) -> usize {
        let blocks: Vec<_> = blocks.iter().map(|(plain, rows)| (&**plain, *rows)).collect();
        py.detach(|| self.0.take_blocks(&blocks, first, head))
    }

    /// Returns these lines, which are to have another head, and where the next line begins.
    #[pyo3(signature = (plain, at, first, most, *, head, new_head, compare))]
    #[expect(clippy::too_many_arguments, reason = "those of `take`, and two more")]
    fn moved(
        &self,
        py: Python<'_>,
        plain: PyBackedBytes,
        at: usize,
        first: usize,
        most: usize,
        head: &[u8],
        new_head: &[u8],
        compare: bool,
    ) -> (MovedLines, usize) {
        let taken = py.detach(|| self.0.take(&plain, at, first, most, head, compare));
        let ends = taken.names.iter().skip(1).map(|name| name - head.len()).chain([taken.end]);
        let spans = taken.names.iter().copied().zip(ends).collect();
        (MovedLines(Lines { plain, spans, head: new_head.to_vec() }), taken.end)
    }

    /// Returns 8 bytes for each row, which tell whether a Filename occurs twice.
    fn name_keys<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let keys = py.detach(|| self.0.name_keys());
        PyBytes::new(py, &keys)
    }

    /// Returns what tells whether a row occurs twice.
    fn keys<'py>(&self, py: Python<'py>, datatype: &str) -> Vec<Bound<'py, PyBytes>> {
        let keys = py.detach(|| self.0.keys(datatype));
        keys.iter().map(|key| PyBytes::new(py, key)).collect()
    }

    /// Returns node, Filename and hash of each row.
    fn identities<'py>(&self, py: Python<'py>) -> PyResult<Vec<Identity<'py>>> {
        identities(py, self.0.rows.iter().map(|row| self.0.identity(row)))
    }
}

/// Lines that are to be moved.
#[pyclass(frozen, module = "jostler_native")]
pub struct MovedLines(Lines<PyBackedBytes>);

#[pymethods]
impl MovedLines {
    fn __len__(&self) -> usize {
        self.0.spans.len()
    }

    /// Returns each line.
    fn rows<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        let lines = (0..).map_while(|at| self.0.line(at));
        lines.map(|line| PyBytes::new(py, &line.concat())).collect()
    }
}

/// Node, Filename and hash of a row.
type Identity<'py> = (Bound<'py, PyString>, Bound<'py, PyString>, Bound<'py, PyBytes>);

fn identities<'py, 'a>(
    py: Python<'py>,
    rows: impl Iterator<Item = index::Identity<'a>>,
) -> PyResult<Vec<Identity<'py>>> {
    let mut made: Option<(&str, Bound<'py, PyString>)> = None; // the node of the row before
    let of = |(node, filename, hash): index::Identity<'a>| {
        let shared = match &made {
            Some((last, text)) if *last == node => text.clone(),
            _ => made.insert((node, PyString::new(py, node))).1.clone(),
        };
        Ok((shared, PyString::from_bytes(py, filename)?, PyBytes::new(py, hash)))
    };
    rows.map(of).collect()
}

/// An index of a merge: kept alive by it, read without the interpreter's lock.
struct Kept(Py<Index>);

impl std::ops::Deref for Kept {
    type Target = index::Index<PyBackedBytes>;

    fn deref(&self) -> &Self::Target {
        &self.0.get().0
    }
}

/// The rows of several bundles in order, each once.
#[pyclass(frozen, module = "jostler_native")]
pub struct Merge(merge::Merge<Kept>);

#[pymethods]
impl Merge {
    #[new]
    fn new(py: Python<'_>, indexes: Vec<Py<Index>>) -> Self {
        let indexes = indexes.into_iter().map(Kept).collect();
        Self(py.detach(|| merge::Merge::new(indexes)))
    }

    fn __len__(&self) -> usize {
        self.0.order.len()
    }

    #[getter]
    fn repeats(&self) -> usize {
        self.0.repeats
    }

    /// Returns whether an index has these rows and no others, in this order.
    fn is_order_of(&self, py: Python<'_>, index: Py<Index>) -> bool {
        let index = Kept(index);
        py.detach(|| self.0.is_order_of(&index))
    }

    /// Returns the nodes in order, each with the number of its rows.
    fn runs(&self) -> Vec<Run> {
        self.0.runs()
    }

    /// Returns the digest of the identities.
    fn digest(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.digest())
    }

    /// Returns the earliest and the latest TimeAdded.
    fn added<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyString>, Bound<'py, PyString>)> {
        let (first, last) =
            self.0.added().ok_or_else(|| PyValueError::new_err("it has no rows"))?;
        Ok((PyString::from_bytes(py, first)?, PyString::from_bytes(py, last)?))
    }

    /// Returns which index, and which row of it, some rows in order are.
    fn places(&self, first: usize, rows: usize) -> Vec<merge::Place> {
        self.0.order.iter().skip(first).take(rows).copied().collect()
    }

    /// Returns rows from `first` on as one text, as many of so many as a block takes, and how many
    /// they are, given the lines of each index from a row on.
    fn text<'py>(
        &self,
        py: Python<'py>,
        first: usize,
        rows: usize,
        moved: Vec<(u32, usize, Vec<Py<MovedLines>>)>,
        room_bytes: usize,
        block_bytes: usize,
    ) -> PyResult<(Bound<'py, PyBytes>, usize)> {
        let mut found = Moved::new();
        for (source, first, some) in &moved {
            let (parts, mut at) = (found.entry(*source).or_default(), *first);
            for lines in some.iter().map(|lines| &lines.get().0) {
                parts.push((at, lines));
                at += lines.spans.len();
            }
        }
        let some = self.0.order.get(first..first + rows);
        let made = some.and_then(|some| moving::of_block(some, &found, room_bytes, block_bytes));
        let (rows, bytes) = made.ok_or_else(|| PyValueError::new_err("a row is missing"))?;
        let text = PyBytes::new_with(py, bytes, |text| {
            let mut at = 0;
            for part in rows.as_flattened() {
                text[at..at + part.len()].copy_from_slice(part);
                at += part.len();
            }
            Ok(())
        });
        Ok((text?, rows.len()))
    }

    /// Returns node, Filename and hash of each row.
    fn identities<'py>(&self, py: Python<'py>) -> PyResult<Vec<Identity<'py>>> {
        identities(py, self.0.order.iter().map(|place| self.0.identity(*place)))
    }

    /// Returns the index rows of rows from `first` on, as many as `most_bytes` take, and how many
    /// they are, given the merged bundle; its texts are JSON.
    #[pyo3(signature = (first, most_bytes, *, date, datatype, url, index_url, blocks))]
    #[expect(clippy::too_many_arguments, reason = "they are named")]
    fn index_text<'py>(
        &self,
        py: Python<'py>,
        first: usize,
        most_bytes: usize,
        date: &[u8],
        datatype: &[u8],
        url: &[u8],
        index_url: &[u8],
        blocks: Vec<(usize, u64, u64)>,
    ) -> (Bound<'py, PyBytes>, usize) {
        let target = Target { date, datatype, url, index_url, blocks: &blocks };
        let (text, rows) = py.detach(|| self.0.index(first, most_bytes, &target));
        (PyBytes::new(py, &text), rows)
    }
}
