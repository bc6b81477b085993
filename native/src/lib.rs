//! An optional part of jostler: accepts, hashes and cuts good JSON rows fast.
//!
//! **Invariant:** it says *yes* or *undecided*; what it does not accept goes to the Python judges,
//! which alone say what is wrong.  It knows nothing of names, bundles, journals or buckets.
//! docs/decisions.md says why it exists and how to take it out.

pub mod document;
pub mod fields;
pub mod judge;
pub mod moments;
pub mod row;
pub mod scalars;

/// What `jostler/schema/native.py` sees.
#[cfg(feature = "module")]
#[pyo3::pymodule]
mod jostler_native {
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;
    use pyo3::types::PyBytes;

    use crate::fields::{Field, Record};
    use crate::row::{self, Form};

    /// A document of this size is judged without the interpreter's lock.
    const LONG_BYTES: usize = 1 << 16;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("VERSION", env!("CARGO_PKG_VERSION"))
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
            let form = Form {
                start,
                end,
                day,
                salt,
                most,
            };
            let taken = py.detach(|| row::take(&self.0, block, at, &form));
            (taken.end, taken.rows, PyBytes::new(py, &taken.keys))
        }
    }
}
