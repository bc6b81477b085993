//! The columns of a table, prepared for reading documents.
//!
//! **Invariant:** names are compared as `jostler/schema/slow.py` does: ASCII letters without case.
//! Columns for which that is not enough (a name that is not ASCII, two names that differ in case
//! only) are refused.

use std::collections::HashMap;

use crate::scalars::{Digits, Scalar};

/// A column as Python describes it; see `jostler.schema.fields.Field`.
pub struct Field {
    pub name: String,
    pub kind: String,
    pub mode: String,
    pub fields: Vec<Field>,
    pub max_length: Option<usize>,
    pub precision: Option<usize>,
    pub scale: Option<usize>,
}

/// The columns of a table, or of one RECORD.
pub struct Record {
    pub columns: Vec<Column>,
    by_name: HashMap<Box<[u8]>, usize>,
    required: Vec<u64>,
}

pub struct Column {
    /// Comma, key and colon as most documents have them: `,"Name":`.
    pub following: Box<[u8]>,
    pub is_required: bool,
    pub is_repeated: bool,
    pub kind: Kind,
}

pub enum Kind {
    Record(Record),
    Scalar(Scalar),
}

/// The longest name that is looked up; BigQuery allows 300 characters.
const NAME_MAX: usize = 300;
/// BigQuery allows 15 levels of RECORDs.
const DEPTH_MAX: usize = 15;

impl Record {
    /// Prepares columns.
    ///
    /// # Errors
    ///
    /// The columns are none that BigQuery has; the text says why.
    pub fn new(fields: Vec<Field>) -> Result<Self, String> {
        Self::at_depth(fields, 0)
    }

    fn at_depth(fields: Vec<Field>, depth: usize) -> Result<Self, String> {
        if depth > DEPTH_MAX {
            return Err(format!("RECORDs are nested more than {DEPTH_MAX} deep"));
        }
        let mut record = Self {
            required: vec![0; fields.len().div_ceil(64)],
            by_name: HashMap::with_capacity(fields.len()),
            columns: Vec::with_capacity(fields.len()),
        };
        for (index, field) in fields.into_iter().enumerate() {
            let name = field.name.to_ascii_lowercase().into_bytes().into_boxed_slice();
            if !name.is_ascii() || name.len() > NAME_MAX {
                return Err(format!("{:?} is no plain name of a column", field.name));
            }
            if record.by_name.insert(name, index).is_some() {
                return Err(format!("{:?} is the name of two columns", field.name));
            }
            let column = Column::new(field, depth)?;
            record.required[index / 64] |= u64::from(column.is_required) << (index % 64);
            record.columns.push(column);
        }
        Ok(record)
    }

    /// Returns the index of the column with a name in any letter case.
    pub fn index(&self, name: &[u8]) -> Option<usize> {
        let mut folded = [0; NAME_MAX];
        let folded = folded.get_mut(..name.len())?;
        folded.copy_from_slice(name);
        folded.make_ascii_lowercase();
        self.by_name.get(&*folded).copied()
    }

    /// Returns how many words a set of columns takes, one bit for each.
    pub fn words(&self) -> usize {
        self.required.len()
    }

    /// Whether a set of columns has all that are REQUIRED.
    pub fn has_required(&self, seen: &[u64]) -> bool {
        self.required.iter().zip(seen).all(|(required, seen)| required & !seen == 0)
    }
}

impl Column {
    /// The key and colon: `"Name":`.
    pub fn token(&self) -> &[u8] {
        &self.following[1..]
    }

    fn new(field: Field, depth: usize) -> Result<Self, String> {
        Ok(Self {
            following: format!(",\"{}\":", field.name).into_bytes().into_boxed_slice(),
            is_required: field.mode == "REQUIRED",
            is_repeated: field.mode == "REPEATED",
            kind: match field.kind.as_str() {
                "RECORD" => Kind::Record(Record::at_depth(field.fields, depth + 1)?),
                _ => Kind::Scalar(scalar(&field)),
            },
        })
    }
}

fn scalar(field: &Field) -> Scalar {
    match field.kind.as_str() {
        "STRING" => Scalar::Text(field.max_length),
        "BYTES" => Scalar::Bytes(field.max_length),
        "INTEGER" => Scalar::Integer,
        "FLOAT" => Scalar::Float,
        "BOOLEAN" => Scalar::Boolean,
        "NUMERIC" => decimal(field, Digits { whole: 29, scale: 9 }),
        "BIGNUMERIC" => decimal(field, Digits { whole: 38, scale: 38 }),
        "TIMESTAMP" => Scalar::Timestamp,
        "DATE" => Scalar::Date,
        "TIME" => Scalar::Time,
        "DATETIME" => Scalar::DateTime,
        "JSON" => Scalar::Json,
        _ => Scalar::Other,
    }
}

fn decimal(field: &Field, usual: Digits) -> Scalar {
    Scalar::Decimal(field.precision.map_or(usual, |precision| {
        let scale = field.scale.unwrap_or(0);
        Digits { whole: precision.saturating_sub(scale), scale }
    }))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn field(name: &str, kind: &str, mode: &str, fields: Vec<Field>) -> Field {
        Field {
            name: name.into(),
            kind: kind.into(),
            mode: mode.into(),
            fields,
            max_length: None,
            precision: None,
            scale: None,
        }
    }

    #[test]
    fn names_are_found_in_any_case() {
        let fields = vec![field("Alpha", "STRING", "REQUIRED", vec![])];
        let record = Record::new(fields).unwrap();
        assert_eq!(record.index(b"aLPHA"), Some(0));
        assert_eq!(record.index(b"alph"), None);
        assert_eq!(record.index(&[b'a'; 301]), None);
    }

    #[test]
    fn the_required_columns_are_known() {
        let mode = |index| if index == 70 { "REQUIRED" } else { "NULLABLE" };
        let named = |index| field(&format!("f{index}"), "STRING", mode(index), vec![]);
        let record = Record::new((0..100).map(named).collect()).unwrap();
        assert_eq!(record.words(), 2);
        assert!(record.has_required(&[0, 1 << 6]));
        assert!(!record.has_required(&[u64::MAX, 1 << 7]));
    }

    #[test]
    fn strange_columns_are_refused() {
        let named = |name: &str| field(name, "STRING", "NULLABLE", vec![]);
        assert!(Record::new(vec![named("a"), named("A")]).is_err());
        assert!(Record::new(vec![named("\u{212a}")]).is_err());
        let mut deep = named("a");
        for _ in 0..16 {
            deep = field("a", "RECORD", "NULLABLE", vec![deep]);
        }
        assert!(Record::new(vec![deep]).is_err());
    }
}
