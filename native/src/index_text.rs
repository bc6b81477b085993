//! The form of index rows, as they are written; docs/format.md, "index1", describes it.
//!
//! **Invariant:** the bytes are those that `jostler/format/index_row.py` makes of the same values.

use crate::hash::{self, Hash};

/// An index row.  Its texts have no quotes, and nothing in them has to be escaped.
pub struct IndexRow<'a> {
    /// What `head` returned.
    pub head: &'a [u8],
    pub filename: &'a [u8],
    pub size: u64,
    pub added: &'a [u8],
    /// What `shared` returned.
    pub shared: &'a [u8],
    pub line: u64,
    pub hash: &'a Hash,
    /// Offset and length of its block.
    pub block: (u64, u64),
    /// From the value of Start on, to the end of `raw`.
    pub last: &'a [u8],
}

impl IndexRow<'_> {
    /// Appends the row with its line feed.
    pub fn write(&self, out: &mut Vec<u8>) {
        let hash = hash::digits(self.hash);
        let numbers = [self.size, self.line, self.block.0, self.block.1].map(|it| it.to_string());
        let [size, line, offset, length] = numbers.each_ref().map(|number| number.as_bytes());
        append(
            out,
            &[
                self.head,
                b"\"",
                self.filename,
                b"\"},\"raw\":{\"Filename\":\"",
                self.filename,
                b"\",\"Size\":",
                size,
                b",\"TimeAdded\":\"",
                self.added,
                b"\",",
                self.shared,
                b",\"Line\":",
                line,
                b",\"Hash\":\"",
                &hash,
                b"\",\"Offset\":",
                offset,
                b",\"Length\":",
                length,
                b",\"Start\":",
                self.last,
                b"}}\n",
            ],
        );
    }
}

/// Returns what a row has before its Filename; date and URL are JSON, with quotes.
pub fn head(date: &[u8], version: &[u8], commit: &[u8], index_url: &[u8]) -> Vec<u8> {
    let mut made = Vec::new();
    append(
        &mut made,
        &[
            b"{\"date\":",
            date,
            b",\"archiver\":{\"Version\":\"",
            version,
            b"\",\"GitCommit\":\"",
            commit,
            b"\",\"ArchiveURL\":",
            index_url,
            b",\"Filename\":",
        ],
    );
    made
}

/// Returns the members that say which bundle it is; datatype and URL are JSON, with quotes.
pub fn shared(datatype: &[u8], node: &[u8], url: &[u8]) -> Vec<u8> {
    let mut made = Vec::new();
    append(
        &mut made,
        &[b"\"Datatype\":", datatype, b",\"Node\":\"", node, b"\",\"ArchiveURL\":", url],
    );
    made
}

/// Returns the members from the value of Start on; texts are without quotes, None is null.
pub fn last(start: Option<&[u8]>, end: Option<&[u8]>, work_id: Option<&[u8]>) -> Vec<u8> {
    let mut made = Vec::new();
    for (name, value) in [("", start), (",\"End\":", end), (",\"WorkID\":", work_id)] {
        match value {
            None => append(&mut made, &[name.as_bytes(), b"null"]),
            Some(text) => append(&mut made, &[name.as_bytes(), b"\"", text, b"\""]),
        }
    }
    made
}

fn append(out: &mut Vec<u8>, parts: &[&[u8]]) {
    for part in parts {
        out.extend_from_slice(part);
    }
}
