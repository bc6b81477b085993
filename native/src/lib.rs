//! An optional part of jostler: accepts, hashes, cuts and orders good JSON rows fast.
//!
//! **Invariant:** it says *yes* or *undecided*; what it does not accept goes to the Python judges,
//! which alone say what is wrong.  It knows nothing of names, bundles, journals or buckets.
//! docs/decisions.md says why it exists and how to take it out.

pub mod document;
pub mod fields;
pub mod file;
pub mod hash;
pub mod index;
pub mod index_reading;
pub mod index_rows;
pub mod index_text;
pub mod instant;
pub mod judge;
pub mod merge;
pub mod moments;
pub mod row;
pub mod scalars;
pub mod unlink;

/// What `jostler/schema/native.py` sees.
#[cfg(feature = "module")]
#[pyo3::pymodule]
mod jostler_native {
    use std::os::fd::BorrowedFd;

    use pyo3::buffer::PyBuffer;
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;
    use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
    use pyo3::types::{PyBytes, PyString};

    #[pymodule_export]
    use crate::index_rows::python::index_rows;

    use crate::fields::{Field, Record};
    use crate::file::{self, Rules};
    use crate::hash;
    use crate::index::{self, Run, Shared};
    use crate::index_reading::Nodes;
    use crate::merge::{self, Target};
    use crate::row::{self, Form};
    use crate::unlink;

    /// A document of this size is judged without the interpreter's lock.
    const LONG_BYTES: usize = 1 << 16;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("VERSION", env!("CARGO_PKG_VERSION"))
    }

    /// Returns the Hash of each document in hexadecimal, without the interpreter's lock.
    #[pyfunction]
    fn digests(py: Python<'_>, documents: Vec<PyBackedBytes>) -> Vec<String> {
        py.detach(|| hash::texts(documents.iter().map(|document| &**document)))
    }

    /// Returns the descriptor of a directory that the caller keeps open during the call.
    fn borrowed<'fd>(directory: i32) -> PyResult<BorrowedFd<'fd>> {
        if directory < 0 {
            return Err(PyValueError::new_err("no descriptor of a directory"));
        }
        // SAFETY: if the caller closed it during the call, files would not be found, or those of
        // another directory, and no memory is touched.
        Ok(unsafe { BorrowedFd::borrow_raw(directory) })
    }

    /// Unlinks files of a directory, up to the first that may not be what was read; returns how
    /// many.  A path counts from `skip` on, and there are five numbers for each.
    #[pyfunction]
    fn unlink_unchanged(
        py: Python<'_>,
        directory: i32,
        paths: Vec<PyBackedStr>,
        skip: usize,
        numbers: PyBuffer<i64>,
    ) -> PyResult<usize> {
        let directory = borrowed(directory)?;
        let numbers = numbers.to_vec(py)?;
        Ok(py.detach(|| {
            let names = paths.iter().map_while(|path| path.get(skip..));
            unlink::unchanged(directory, names, &numbers)
        }))
    }

    /// The rows of an index of the usual form; `jostler/archive/rows.py` describes it.
    #[pyclass(frozen, module = "jostler_native")]
    struct Index(index::Index<PyBackedBytes>);

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

        /// Returns these lines with another head, and where the next line begins.
        #[pyo3(signature = (plain, at, first, most, *, head, new_head, compare))]
        #[expect(clippy::too_many_arguments, reason = "those of `take`, and two more")]
        fn move_rows<'py>(
            &self,
            py: Python<'py>,
            plain: &[u8],
            at: usize,
            first: usize,
            most: usize,
            head: &[u8],
            new_head: &[u8],
            compare: bool,
        ) -> PyResult<(Vec<Bound<'py, PyBytes>>, usize)> {
            let taken = py.detach(|| self.0.take(plain, at, first, most, head, compare));
            let ends = taken.names.iter().skip(1).map(|name| name - head.len()).chain([taken.end]);
            let rows = taken.names.iter().zip(ends).map(|(start, end)| {
                let rest = &plain[*start..end];
                PyBytes::new_with(py, new_head.len() + rest.len(), |row| {
                    row[..new_head.len()].copy_from_slice(new_head);
                    row[new_head.len()..].copy_from_slice(rest);
                    Ok(())
                })
            });
            Ok((rows.collect::<PyResult<_>>()?, taken.end))
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
    struct Merge(merge::Merge<Kept>);

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

        /// Returns node, Filename and hash of each row.
        fn identities<'py>(&self, py: Python<'py>) -> PyResult<Vec<Identity<'py>>> {
            identities(py, self.0.order.iter().map(|place| self.0.identity(*place)))
        }

        /// Returns the index row of each row, given the merged bundle; its texts are JSON.
        #[pyo3(signature = (*, date, datatype, url, index_url, blocks))]
        fn index<'py>(
            &self,
            py: Python<'py>,
            date: &[u8],
            datatype: &[u8],
            url: &[u8],
            index_url: &[u8],
            blocks: Vec<(usize, u64, u64)>,
        ) -> Vec<Bound<'py, PyBytes>> {
            let target = Target { date, datatype, url, index_url, blocks: &blocks };
            let (text, ends) = py.detach(|| {
                let mut text = Vec::new();
                let ends = self.0.index(&target, &mut text);
                (text, ends)
            });
            let starts = [0].into_iter().chain(ends.iter().copied());
            starts.zip(&ends).map(|(start, end)| PyBytes::new(py, &text[start..*end])).collect()
        }
    }

    impl<'a, 'py> FromPyObject<'a, 'py> for Field {
        type Error = PyErr;

        fn extract(field: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
            Ok(Self {
                name: field.getattr("name")?.extract()?,
                kind: field.getattr("type")?.extract()?,
                mode: field.getattr("mode")?.extract()?,
                fields: field.getattr("fields")?.extract()?,
                max_length: field.getattr("max_length")?.extract()?,
                precision: field.getattr("precision")?.extract()?,
                scale: field.getattr("scale")?.extract()?,
            })
        }
    }

    /// Rows, numbers, hashes, and whether an unusual file ended it; see `Batch` in Python.
    type Batch<'py> = (Vec<Bound<'py, PyBytes>>, Vec<i64>, Vec<Bound<'py, PyBytes>>, bool);

    /// Accepts good documents; any number of threads may share one.
    #[pyclass(frozen, module = "jostler_native")]
    struct Judge(crate::judge::Judge);

    #[pymethods]
    impl Judge {
        /// Prepares a judge of rows with these columns, or of any JSON objects.
        #[new]
        fn new(fields: Option<Vec<Field>>) -> PyResult<Self> {
            let Some(fields) = fields else {
                return Ok(Self(crate::judge::Judge::Objects));
            };
            let record = Record::new(fields).map_err(PyValueError::new_err)?;
            Ok(Self(crate::judge::Judge::Rows(record)))
        }

        /// Returns True if a document is certainly good; False means undecided.
        fn accepts(&self, py: Python<'_>, document: &[u8]) -> bool {
            if document.len() < LONG_BYTES {
                return self.0.accepts(document);
            }
            py.detach(|| self.0.accepts(document))
        }

        /// Takes rows of the usual form from `at` on; returns where it ended, how many rows it took
        /// and their identities.
        #[pyo3(signature = (block, at, *, start, end, day, salt, most))]
        #[expect(clippy::too_many_arguments, reason = "they are named")]
        fn take_rows<'py>(
            &self,
            py: Python<'py>,
            block: &[u8],
            at: usize,
            start: &[u8],
            end: &[u8],
            day: &[u8],
            salt: &[u8],
            most: usize,
        ) -> (usize, usize, Bound<'py, PyBytes>) {
            let form = Form { start, end, day, salt, most };
            let taken = py.detach(|| row::take(&self.0, block, at, &form));
            (taken.end, taken.rows, PyBytes::new(py, &taken.keys))
        }

        /// Reads files of a directory, up to the first that is not usual and good, and makes rows of
        /// them; returns the rows, five numbers for each file, the hashes of their documents, and
        /// whether there was such a file.
        #[pyo3(signature = (directory, names, *, head, folder, room_bytes, ask_writer,
                            lease_suffices, settled_ns))]
        #[expect(clippy::too_many_arguments, reason = "they are named")]
        fn read_batch<'py>(
            &self,
            py: Python<'py>,
            directory: i32,
            names: Vec<String>,
            head: &[u8],
            folder: &[u8],
            room_bytes: usize,
            ask_writer: bool,
            lease_suffices: bool,
            settled_ns: i64,
        ) -> PyResult<Batch<'py>> {
            let directory = borrowed(directory)?;
            let rules = Rules { head, folder, room_bytes, ask_writer, lease_suffices, settled_ns };
            let (batch, hashes) = py.detach(|| {
                let batch = file::take(&self.0, directory, &names, &rules);
                let hashes = batch.hashes();
                (batch, hashes)
            });
            let row = |range| PyBytes::new(py, &batch.text[range]);
            let rows = batch.rows.iter().cloned().map(row).collect();
            let hashes = hashes.iter().map(|hash| PyBytes::new(py, hash)).collect();
            Ok((rows, batch.numbers, hashes, batch.is_cut))
        }
    }
}
