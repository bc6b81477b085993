//! Reads index rows; docs/format.md, "index1", has the form.
//!
//! **Invariant:** only rows are taken whose bytes are exactly those that jostler writes for their
//! values; `index_text` has the same form for writing.

use memchr::memchr;

use crate::hash::{HASH_BYTES, Hash};
use crate::index::{Row, Run, Shared, Span};
use crate::moments;

const DIGITS_MOST: usize = 18;
/// Bytes that are looked at together: a count of them fits into a byte, and they fill registers.
const TOGETHER: usize = 240;

/// Whose rows an index has.
#[derive(Clone, Copy)]
pub enum Nodes<'a> {
    /// Those of one node, however many.
    One(&'a str),
    /// Those of nodes, so many of each, in order.
    Runs(&'a [Run]),
    /// Those of the nodes that the rows name.
    Any,
}

/// Reads the rows of an index; `None` if it has another form, or is that of another bundle.
///
/// The node of a row is its place in `Nodes::Runs`, else 0.
pub fn rows(text: &[u8], nodes: Nodes, shared: &Shared) -> Option<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    each(text, nodes, shared, |_, row| rows.push(row))?;
    Some(rows)
}

/// Hands over each row of an index with the name of its node; returns how many they are.
///
/// `None` as of `rows`, and then some rows may have been handed over.
pub fn each(
    text: &[u8],
    nodes: Nodes,
    shared: &Shared,
    mut take: impl FnMut(&[u8], Row),
) -> Option<usize> {
    u32::try_from(text.len()).ok()?;
    if memchr(b'\\', text).is_some() || simdutf8::basic::from_utf8(text).is_err() {
        return None;
    }
    let mut lines = Lines::new(text, shared);
    let (mut runs, mut left) = match nodes {
        Nodes::Runs(runs) => (runs.iter().enumerate(), Some(0)),
        Nodes::One(_) | Nodes::Any => ([].iter().enumerate(), None),
    };
    match nodes {
        Nodes::One(name) => lines.expect_node(name.as_bytes()),
        Nodes::Any => lines.takes_any_node = true,
        Nodes::Runs(_) => (),
    }
    let (mut node, mut rows) = (0, 0);
    while lines.cursor.at < text.len() {
        while left == Some(0) {
            let (number, (name, many)) = runs.next()?;
            lines.expect_node(name.as_bytes());
            (node, left) = (number, Some(*many));
        }
        let row = lines.row(shared.first + rows, node)?;
        take(&lines.node, row);
        left = left.map(|many| many - 1);
        rows += 1;
    }
    // The only control characters are the line feeds: others would have to be escaped.
    let controls = |part: &[u8]| part.iter().map(|byte| u8::from(*byte < b' ')).sum::<u8>();
    let controls: usize = text.chunks(TOGETHER).map(|part| usize::from(controls(part))).sum();
    let is_whole = left.unwrap_or(0) == 0 && runs.all(|(_, (_, many))| *many == 0);
    (is_whole && rows > 0 && controls == rows).then_some(rows)
}

/// The rows of an index, one after another.
struct Lines<'a> {
    cursor: Cursor<'a>,
    begin: String,
    middle: String,
    folder: &'a [u8],
    /// From the datatype to the name of the node.
    before_node: String,
    /// From the end of that name to the line.
    after_node: String,
    node: Vec<u8>,
    /// All three together.
    of_node: Vec<u8>,
    takes_any_node: bool,
    /// All of the row before up to its Filename, with its version and commit.
    before: Option<(Span, Span, Span)>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a [u8], shared: &Shared<'a>) -> Self {
        let Shared { date, datatype, url, index_url, folder, .. } = shared;
        Self {
            cursor: Cursor { text, at: 0 },
            begin: format!("{{\"date\":\"{date}\",\"archiver\":{{\"Version\":\""),
            middle: format!(",\"ArchiveURL\":\"{index_url}\",\"Filename\":\""),
            folder: folder.as_bytes(),
            before_node: format!(",\"Datatype\":\"{datatype}\",\"Node\":\""),
            after_node: format!("\",\"ArchiveURL\":\"{url}\",\"Line\":"),
            node: Vec::new(),
            of_node: b"\n".to_vec(), // no row has it there
            takes_any_node: false,
            before: None,
        }
    }

    fn expect_node(&mut self, name: &[u8]) {
        self.node = name.to_vec();
        self.of_node = [self.before_node.as_bytes(), name, self.after_node.as_bytes()].concat();
    }

    /// Takes what tells datatype, node and bundle.
    fn place(&mut self) -> Option<()> {
        if self.cursor.eat(&self.of_node).is_some() {
            return Some(());
        }
        if !self.takes_any_node {
            return None;
        }
        self.cursor.eat(self.before_node.as_bytes())?;
        let rest = &self.cursor.text[self.cursor.at..];
        let name = &rest[..memchr(b'"', rest)?];
        self.cursor.at += name.len();
        self.cursor.eat(self.after_node.as_bytes())?;
        self.expect_node(name);
        Some(())
    }

    /// Takes the next row, given how many come before it.
    fn row(&mut self, rows: usize, node: usize) -> Option<Row> {
        let text = self.cursor.text;
        // In most rows all is as in the row before, up to the Filename.
        let starts = self.cursor.at;
        let (version, commit) = match self.before {
            Some((head, version, commit)) if self.cursor.eat(head.of(text)).is_some() => {
                (version, commit)
            }
            _ => {
                self.cursor.eat(self.begin.as_bytes())?;
                let version = self.cursor.string()?;
                self.cursor.eat(b",\"GitCommit\":\"")?;
                let commit = self.cursor.string()?;
                self.cursor.eat(self.middle.as_bytes())?;
                (version, commit)
            }
        };
        self.before = Some((span(starts, self.cursor.at), version, commit));
        let filename = self.cursor.string()?;
        if !filename.of(text).starts_with(self.folder) {
            return None;
        }
        self.cursor.eat(b"},\"raw\":{\"Filename\":\"")?;
        self.cursor.eat(filename.of(text))?;
        self.cursor.eat(b"\",\"Size\":")?;
        let size = self.cursor.number()?;
        self.cursor.eat(b",\"TimeAdded\":\"")?;
        let added = self.cursor.instant()?;
        self.place()?;
        let cursor = &mut self.cursor;
        if cursor.number()? != rows as u64 + 1 {
            return None;
        }
        cursor.eat(b",\"Hash\":\"")?;
        let hash = hash_of(cursor.string()?.of(text))?;
        cursor.eat(b",\"Offset\":")?;
        let offset = cursor.number()?;
        cursor.eat(b",\"Length\":")?;
        let length = cursor.number()?;
        cursor.eat(b",\"Start\":")?;
        let begins = cursor.at;
        let start = cursor.fact(Cursor::instant)?;
        cursor.eat(b",\"End\":")?;
        let end = cursor.fact(Cursor::instant)?;
        cursor.eat(b",\"WorkID\":")?;
        let facts = [start, end, cursor.fact(Cursor::string)?];
        let last = span(begins, cursor.at);
        cursor.eat(b"}}\n")?;
        Some(Row {
            version,
            commit,
            filename,
            size,
            added,
            node,
            hash,
            offset,
            length,
            facts,
            last,
        })
    }
}

/// A part of a text that is shorter than 4 GiB.
fn span(start: usize, end: usize) -> Span {
    Span(start as u32, end as u32)
}

/// What each byte is as a hexadecimal digit; `NO_DIGIT` if it is none.
const DIGITS: [u8; 256] = {
    let mut made = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < 16 {
        made[b"0123456789abcdef"[digit] as usize] = digit as u8;
        digit += 1;
    }
    made
};
const NO_DIGIT: u8 = 0xff;

fn hash_of(digits: &[u8]) -> Option<Hash> {
    let digits: &[u8; 2 * HASH_BYTES] = digits.try_into().ok()?;
    let mut hash = [0; HASH_BYTES];
    let mut all = 0;
    for (byte, two) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        let [high, low] = [DIGITS[usize::from(two[0])], DIGITS[usize::from(two[1])]];
        all |= high | low;
        *byte = high << 4 | low & 15;
    }
    (all < 16).then_some(hash)
}

struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn eat(&mut self, literal: &[u8]) -> Option<()> {
        let is_there = self.text[self.at..].starts_with(literal);
        is_there.then(|| self.at += literal.len())
    }

    /// Takes a text and the quote behind it; the quote before it is eaten already.
    fn string(&mut self) -> Option<Span> {
        let start = self.at;
        let end = start + memchr(b'"', &self.text[start..])?;
        self.at = end + 1;
        Some(span(start, end))
    }

    /// Takes an instant, as `jostler/format/row.py: instant` writes it, and the quote behind it.
    fn instant(&mut self) -> Option<Span> {
        let taken = self.string()?;
        let text = taken.of(self.text);
        let is_instant = text.len() == 27 && text[26] == b'Z' && moments::is_timestamp(text);
        is_instant.then_some(taken)
    }

    /// Takes null, or what `value` takes behind a quote.
    fn fact(&mut self, value: fn(&mut Self) -> Option<Span>) -> Option<Span> {
        if self.eat(b"null").is_some() {
            return Some(Span::default());
        }
        self.eat(b"\"")?;
        value(self)
    }

    fn number(&mut self) -> Option<u64> {
        let rest = &self.text[self.at..];
        let (mut value, mut many) = (0, 0);
        while let Some(digit) = rest.get(many).filter(|byte| byte.is_ascii_digit()) {
            if many == DIGITS_MOST {
                return None;
            }
            value = 10 * value + u64::from(digit - b'0');
            many += 1;
        }
        if many == 0 || (many > 1 && rest[0] == b'0') {
            return None;
        }
        self.at += many;
        Some(value)
    }
}
