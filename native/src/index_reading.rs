//! Reads index rows; docs/format.md, "index1", has the form.
//!
//! **Invariant:** only rows are taken whose bytes are exactly those that jostler writes for their
//! values; `index_text` has the same form for writing.

use memchr::memchr;

use crate::hash::{HASH_BYTES, Hash};
use crate::index::{Row, Run, Shared, Span};

const DIGITS_MOST: usize = 18;

/// Reads the rows of an index; `None` if it has another form, or is that of another bundle.
pub fn rows(text: &[u8], runs: &[Run], shared: &Shared) -> Option<Vec<Row>> {
    u32::try_from(text.len()).ok()?;
    if memchr(b'\\', text).is_some() || simdutf8::basic::from_utf8(text).is_err() {
        return None;
    }
    let Shared { date, datatype, url, index_url, folder, first } = shared;
    let begin = format!("{{\"date\":\"{date}\",\"archiver\":{{\"Version\":\"");
    let middle = format!(",\"ArchiveURL\":\"{index_url}\",\"Filename\":\"");
    let mut cursor = Cursor { text, at: 0 };
    let mut rows: Vec<Row> = Vec::new();
    let mut before = Span::default();
    for (node, (name, many)) in runs.iter().enumerate() {
        let of_node = format!(
            ",\"Datatype\":\"{datatype}\",\"Node\":\"{name}\",\"ArchiveURL\":\"{url}\",\"Line\":"
        );
        for _ in 0..*many {
            // In most rows all is as in the row before, up to the Filename.
            let starts = cursor.at;
            let (version, commit) = match rows.last() {
                Some(Row { version, commit, .. }) if cursor.eat(before.of(text)).is_some() => {
                    (*version, *commit)
                }
                _ => {
                    cursor.eat(begin.as_bytes())?;
                    let version = cursor.string()?;
                    cursor.eat(b",\"GitCommit\":\"")?;
                    let commit = cursor.string()?;
                    cursor.eat(middle.as_bytes())?;
                    (version, commit)
                }
            };
            before = span(starts, cursor.at);
            let filename = cursor.string()?;
            if !filename.of(text).starts_with(folder.as_bytes()) {
                return None;
            }
            cursor.eat(b"},\"raw\":{\"Filename\":\"")?;
            cursor.eat(filename.of(text))?;
            cursor.eat(b"\"")?;
            cursor.eat(b",\"Size\":")?;
            let size = cursor.number()?;
            cursor.eat(b",\"TimeAdded\":\"")?;
            let added = cursor.string()?;
            cursor.eat(of_node.as_bytes())?;
            if cursor.number()? != (first + rows.len()) as u64 + 1 {
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
            let start = cursor.fact()?;
            cursor.eat(b",\"End\":")?;
            let end = cursor.fact()?;
            cursor.eat(b",\"WorkID\":")?;
            let facts = [start, end, cursor.fact()?];
            let last = span(begins, cursor.at);
            cursor.eat(b"}}\n")?;
            rows.push(Row {
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
            });
        }
    }
    // The only control characters are the line feeds: others would have to be escaped.
    let controls = |part: &[u8]| part.iter().map(|byte| u8::from(*byte < b' ')).sum::<u8>();
    let controls: usize = text.chunks(255).map(|part| usize::from(controls(part))).sum();
    (cursor.at == text.len() && !rows.is_empty() && controls == rows.len()).then_some(rows)
}

/// A part of a text that is shorter than 4 GiB.
fn span(start: usize, end: usize) -> Span {
    Span(start as u32, end as u32)
}

fn hash_of(digits: &[u8]) -> Option<Hash> {
    let nibble = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut hash = [0; HASH_BYTES];
    if digits.len() != 2 * HASH_BYTES {
        return None;
    }
    for (byte, two) in hash.iter_mut().zip(digits.chunks(2)) {
        *byte = nibble(two[0])? << 4 | nibble(two[1])?;
    }
    Some(hash)
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

    fn fact(&mut self) -> Option<Span> {
        if self.eat(b"null").is_some() {
            return Some(Span::default());
        }
        self.eat(b"\"")?;
        self.string()
    }

    fn number(&mut self) -> Option<u64> {
        let rest = &self.text[self.at..];
        let digits = rest.iter().take(DIGITS_MOST + 1).take_while(|byte| byte.is_ascii_digit());
        let many = digits.clone().count();
        if many == 0 || many > DIGITS_MOST || (many > 1 && rest[0] == b'0') {
            return None;
        }
        self.at += many;
        Some(digits.fold(0, |value, digit| 10 * value + u64::from(digit - b'0')))
    }
}
