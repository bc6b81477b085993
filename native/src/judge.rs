//! Reads a document once and says whether it certainly is a good row of a table.
//!
//! **Invariant:** a document that is accepted here is accepted by `jostler/schema/slow.py`; every
//! other document is undecided, and the Python judges say what is wrong with it, if anything.
//!
//! Pure; any number of threads may share one judge.  Nesting is bounded by the columns, and in JSON
//! columns by `JSON_DEPTH`; memory by one bit for each column of the RECORDs that are open.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::document::{Cursor, Read, Undecided, only_if};
use crate::fields::{Column, Kind, Record};
use crate::scalars::Scalar;

const OBJECT: [u8; 2] = *b"{}";
const ARRAY: [u8; 2] = *b"[]";
/// The Python judges accept 500, unless their own stack is deep.
const JSON_DEPTH: usize = 64;
/// How many unknown members with the value null one object may have.
const UNKNOWN_MAX: usize = 16;

pub enum Judge {
    /// Accepts rows of a table.
    Rows(Record),
    /// Accepts any JSON object.
    Objects,
}

impl Judge {
    /// Returns true if a document is certainly good; false means undecided.
    ///
    /// Nothing here panics by what is known; if it did, the file of a stranger must not stop an
    /// agent, so the document would be undecided as well.
    pub fn accepts(&self, document: &[u8]) -> bool {
        catch_unwind(AssertUnwindSafe(|| self.reads(document))).unwrap_or(false)
    }

    fn reads(&self, document: &[u8]) -> bool {
        if simdutf8::basic::from_utf8(document).is_err() {
            return false;
        }
        let mut reading = Reading { cursor: Cursor::new(document), seen: Vec::new() };
        reading.document(self).is_ok()
    }
}

/// One document that is being read.
struct Reading<'a> {
    cursor: Cursor<'a>,
    /// A set of columns for each RECORD that is open, one after another.
    seen: Vec<u64>,
}

impl<'a> Reading<'a> {
    fn document(&mut self, judge: &Judge) -> Read<()> {
        self.cursor.skip_space();
        match judge {
            Judge::Rows(record) => self.record(record)?,
            Judge::Objects => {
                only_if(self.cursor.peek() == b'{')?;
                self.any(JSON_DEPTH, &Scalar::Text(None))?;
            }
        }
        self.cursor.skip_space();
        only_if(self.cursor.is_at_end())
    }

    fn record(&mut self, record: &Record) -> Read<()> {
        let base = self.seen.len();
        self.seen.resize(base + record.words(), 0);
        self.members(record, base)?;
        only_if(record.has_required(&self.seen[base..]))?;
        self.seen.truncate(base);
        Ok(())
    }

    fn members(&mut self, record: &Record, base: usize) -> Read<()> {
        if self.cursor.opens(OBJECT)? {
            return Ok(());
        }
        let mut unknown = Unknown::default();
        let mut index = self.key(record, 0, &mut unknown)?;
        let mut next = 0;
        loop {
            self.cursor.skip_space();
            if let Some(index) = index {
                let (word, bit) = (base + index / 64, 1 << (index % 64));
                only_if(self.seen[word] & bit == 0)?;
                self.seen[word] |= bit;
                self.cell(&record.columns[index])?;
                next = index + 1;
            } else {
                self.cursor.expect(b"null")?;
            }
            index = match record.columns.get(next) {
                Some(column) if self.cursor.takes(&column.following) => Some(next),
                _ if self.cursor.closes(OBJECT)? => return Ok(()),
                _ => self.key(record, next, &mut unknown)?,
            };
        }
    }

    /// Reads a key and its colon; returns the index of its column, if it has one.
    ///
    /// Most documents have their keys in the order of the columns, spelled as these are, so the
    /// column that would be `next` is tried first.
    fn key(
        &mut self,
        record: &Record,
        next: usize,
        unknown: &mut Unknown<'a>,
    ) -> Read<Option<usize>> {
        if record.columns.get(next).is_some_and(|column| self.cursor.takes(column.token())) {
            return Ok(Some(next));
        }
        let key = self.cursor.string()?;
        only_if(!key.escaped)?;
        self.cursor.skip_space();
        self.cursor.expect(b":")?;
        let index = record.index(key.raw);
        if index.is_none() {
            unknown.add(key.raw)?;
        }
        Ok(index)
    }

    fn cell(&mut self, column: &Column) -> Read<()> {
        if self.cursor.peek() == b'n' {
            only_if(!column.is_required)?;
            return self.cursor.expect(b"null");
        }
        if !column.is_repeated {
            return self.value(&column.kind);
        }
        if self.cursor.opens(ARRAY)? {
            return Ok(());
        }
        loop {
            self.value(&column.kind)?;
            if self.cursor.closes(ARRAY)? {
                return Ok(());
            }
        }
    }

    fn value(&mut self, kind: &Kind) -> Read<()> {
        match kind {
            Kind::Record(record) => self.record(record),
            Kind::Scalar(Scalar::Json) => {
                only_if(self.cursor.peek() != b'n')?; // a cell that is null was read before
                self.any(JSON_DEPTH, &Scalar::Json)
            }
            Kind::Scalar(Scalar::Integer) if self.cursor.takes_short_integer() => Ok(()),
            Kind::Scalar(scalar) => self.scalar(scalar),
        }
    }

    fn scalar(&mut self, scalar: &Scalar) -> Read<()> {
        match self.cursor.peek() {
            b'"' => scalar.text(&self.cursor.string()?),
            b'-' | b'0'..=b'9' => scalar.number(&self.cursor.number()?),
            b't' => self.cursor.expect(b"true").and_then(|()| scalar.boolean()),
            b'f' => self.cursor.expect(b"false").and_then(|()| scalar.boolean()),
            _ => Err(Undecided),
        }
    }

    /// Reads any JSON value; of keys that occur twice BigQuery takes the first.
    ///
    /// `numbers` says which numbers it may have.
    fn any(&mut self, depth: usize, numbers: &Scalar) -> Read<()> {
        only_if(depth > 0)?;
        match self.cursor.peek() {
            b'{' => self.object(depth, numbers),
            b'[' => self.array(depth, numbers),
            b'n' => self.cursor.expect(b"null"),
            b'"' => self.cursor.string().map(|_| ()),
            _ => self.scalar(numbers),
        }
    }

    fn object(&mut self, depth: usize, numbers: &Scalar) -> Read<()> {
        if self.cursor.opens(OBJECT)? {
            return Ok(());
        }
        loop {
            self.cursor.string()?;
            self.cursor.skip_space();
            self.cursor.expect(b":")?;
            self.cursor.skip_space();
            self.any(depth - 1, numbers)?;
            if self.cursor.closes(OBJECT)? {
                return Ok(());
            }
        }
    }

    fn array(&mut self, depth: usize, numbers: &Scalar) -> Read<()> {
        if self.cursor.opens(ARRAY)? {
            return Ok(());
        }
        loop {
            self.any(depth - 1, numbers)?;
            if self.cursor.closes(ARRAY)? {
                return Ok(());
            }
        }
    }
}

/// The unknown members of one object.
#[derive(Default)]
struct Unknown<'a> {
    keys: [&'a [u8]; UNKNOWN_MAX],
    count: usize,
}

impl<'a> Unknown<'a> {
    /// Adds a key.  Undecided: it is there already, or there are too many.
    fn add(&mut self, key: &'a [u8]) -> Read<()> {
        let before = &self.keys[..self.count];
        only_if(!before.iter().any(|other| other.eq_ignore_ascii_case(key)))?;
        *self.keys.get_mut(self.count).ok_or(Undecided)? = key;
        self.count += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::tests::field;

    fn judge() -> Judge {
        let inner = || vec![field("a", "INTEGER", "REQUIRED", vec![])];
        Judge::Rows(
            Record::new(vec![
                field("Text", "STRING", "NULLABLE", vec![]),
                field("Must", "INTEGER", "REQUIRED", vec![]),
                field("Many", "INTEGER", "REPEATED", vec![]),
                field("One", "RECORD", "NULLABLE", inner()),
                field("Rows", "RECORD", "REPEATED", inner()),
                field("Any", "JSON", "NULLABLE", vec![]),
                field("Place", "GEOGRAPHY", "NULLABLE", vec![]),
            ])
            .unwrap(),
        )
    }

    #[track_caller]
    fn check(good: &[&str], others: &[&str]) {
        for document in good {
            assert!(judge().accepts(document.as_bytes()), "{document}");
        }
        for document in others {
            assert!(!judge().accepts(document.as_bytes()), "{document}");
        }
    }

    #[test]
    fn good_rows_in_any_order_case_and_space_are_accepted() {
        check(
            &[
                r#"{"Must":1}"#,
                " {\r\n\t\"MUST\" : 1 , \"text\" : \"\\u00e9\" }\n",
                r#"{"Many":[1,2],"Must":1,"One":{"A":1},"Rows":[{"a":1},{"a":2}]}"#,
                r#"{"Must":1,"Many":null,"One":null,"Rows":[],"Any":null,"Place":null}"#,
                r#"{"Must":1,"Any":{"a":[1,null,true,"x",{}],"a":1e5}}"#,
            ],
            &[
                "",
                "[]",
                "{}",
                r#"{"Must":null}"#,
                r#"{"Must":1}{"Must":1}"#,
                r#"{"Must":1,}"#,
                r#"{"Must":1 "Text":"a"}"#,
                r#"{"Must":01}"#,
                "\u{feff}{\"Must\":1}",
            ],
        );
    }

    #[test]
    fn a_key_that_occurs_twice_is_undecided() {
        check(
            &[],
            &[
                r#"{"Must":1,"Must":1}"#,
                r#"{"Must":1,"must":1}"#,
                r#"{"Must":1,"M\u0075st":1}"#,
                r#"{"Must":1,"x":null,"X":null}"#,
                r#"{"Must":1,"One":{"a":1,"A":1}}"#,
            ],
        );
    }

    #[test]
    fn unknown_members_are_accepted_if_they_are_null_and_few() {
        check(
            &[r#"{"x":null,"Must":1,"é":null,"É":null}"#],
            &[r#"{"Must":1,"x":1}"#, r#"{"Must":1,"x":[]}"#],
        );
        let many = |count: usize| {
            let members: String = (0..count).map(|n| format!(",\"x{n}\":null")).collect();
            judge().accepts(format!("{{\"Must\":1{members}}}").as_bytes())
        };
        assert!(many(UNKNOWN_MAX));
        assert!(!many(UNKNOWN_MAX + 1));
    }

    #[test]
    fn values_of_another_kind_are_undecided() {
        check(
            &[],
            &[
                r#"{"Must":1,"Many":1}"#,
                r#"{"Must":1,"Many":[null]}"#,
                r#"{"Must":1,"Many":[[1]]}"#,
                r#"{"Must":1,"One":[{"a":1}]}"#,
                r#"{"Must":1,"One":{}}"#,
                r#"{"Must":1,"Rows":[{"a":1},{}]}"#,
                r#"{"Must":1,"Text":[]}"#,
                r#"{"Must":1,"Any":[1e400]}"#,
                r#"{"Must":1,"Place":"POINT(1 2)"}"#,
            ],
        );
    }

    #[test]
    fn json_is_nested_up_to_a_depth() {
        let nested = |depth| {
            let value = "[".repeat(depth) + &"]".repeat(depth);
            judge().accepts(format!("{{\"Must\":1,\"Any\":{value}}}").as_bytes())
        };
        assert!(nested(JSON_DEPTH));
        assert!(!nested(JSON_DEPTH + 1));
        assert!(!nested(1_000_000));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_undecided() {
        assert!(!judge().accepts(b"{\"Must\":1,\"Text\":\"\xff\"}"));
        assert!(!judge().accepts(b"{\"Must\":1,\"Text\":\"\xed\xa0\x80\"}"));
    }

    #[test]
    fn any_object_is_an_object() {
        for good in ["{}", r#"{"a":{"b":[1e400,"x",null,false]},"a":1}"#] {
            assert!(Judge::Objects.accepts(good.as_bytes()), "{good}");
        }
        for other in ["", "[]", "1", r#"{"a":NaN}"#, r#"{"a":"\ud800"}"#, r#"{"a":tru}"#] {
            assert!(!Judge::Objects.accepts(other.as_bytes()), "{other}");
        }
    }
}
