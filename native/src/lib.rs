//! An optional part of jostler: accepts, hashes, cuts and orders good JSON rows fast.
//!
//! **Invariant:** it says *yes* or *undecided*; what it does not accept goes to the Python judges,
//! which alone say what is wrong.  It knows nothing of names, bundles, journals or buckets.
//! docs/decisions.md says why it exists and how to take it out.

#[cfg(feature = "module")]
pub mod archive;
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
pub mod moving;
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
    use pyo3::types::PyBytes;

    #[pymodule_export]
    use crate::archive::{Index, Merge};
    #[pymodule_export]
    use crate::index_rows::python::index_rows;

    use crate::fields::{Field, Record};
    use crate::file::{self, Rules};
    use crate::hash;
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
