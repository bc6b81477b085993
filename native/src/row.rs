//! Judges, cuts and identifies the rows of a bundle; `loader/spark/row.py` describes both.
//!
//! **Invariant:** rows are taken in order, each only if it has the usual form and its judge accepts
//! it; the first other row ends the work.  Identities are those of `row.identity`.

use blake2b_simd::Params;
use memchr::{memchr, memmem};
use xxhash_rust::xxh3::xxh3_128;

use crate::judge::Judge;

const NAME_BYTES: usize = 8;

/// What the usual rows of a bundle share.
pub struct Form<'a> {
    /// Everything before the Filename.
    pub start: &'a [u8],
    /// From the quote after the Filename to before `raw`.
    pub end: &'a [u8],
    /// `2022/09/29/`
    pub day: &'a [u8],
    /// What names are hashed after: table, day and node.
    pub salt: &'a [u8],
    /// The size of the longest row that is taken.
    pub most: usize,
}

/// The rows that were taken.
#[derive(Default)]
pub struct Taken {
    /// Where in the block the first row begins that was not taken.
    pub end: usize,
    pub rows: usize,
    /// The identities of the rows, 24 bytes each.
    pub keys: Vec<u8>,
}

/// Takes rows from a place in a block on.
pub fn take(judge: &Judge, block: &[u8], at: usize, form: &Form) -> Taken {
    let mut salted = Params::new().hash_length(NAME_BYTES).to_state();
    salted.update(form.salt);
    let inside = memmem::Finder::new(form.day);
    let mut taken = Taken { end: at, ..Taken::default() };
    while taken.end < block.len() {
        let rest = &block[taken.end..];
        let line = &rest[..memchr(b'\n', rest).unwrap_or(rest.len())];
        let Some((name, raw)) = cut(line, form) else {
            break;
        };
        if line.len() > form.most || !judge.accepts(line) {
            break;
        }
        let name = relative(name, form.day, &inside);
        taken.keys.extend_from_slice(salted.clone().update(name).finalize().as_bytes());
        taken.keys.extend_from_slice(&xxh3_128(raw).to_be_bytes());
        taken.rows += 1;
        taken.end += line.len() + 1; // beyond the block if its last line has no line feed
    }
    taken
}

/// Returns the Filename and `raw` of a row of the usual form.
fn cut<'a>(line: &'a [u8], form: &Form) -> Option<(&'a [u8], &'a [u8])> {
    let rest = line.strip_prefix(form.start)?;
    let (name, rest) = rest.split_at(memchr(b'"', rest)?);
    let raw = rest.strip_prefix(form.end)?.strip_suffix(b"}")?;
    (!name.contains(&b'\\')).then_some((name, raw))
}

/// Returns the end of a Filename from its day on, if the name has the day as a directory.
fn relative<'a>(name: &'a [u8], day: &[u8], inside: &memmem::Finder) -> &'a [u8] {
    if name.starts_with(day) {
        return name;
    }
    let mut found = inside.find_iter(name).filter(|at| *at > 0 && name[at - 1] == b'/');
    found.next().map_or(name, |at| &name[at..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Judge;

    const FORM: Form = Form {
        start: b"{\"archiver\":{\"Filename\":\"",
        end: b"\"},\"raw\":",
        day: b"2022/09/29/",
        salt: b"table",
        most: 1000,
    };

    fn row(name: &str, raw: &str) -> String {
        format!("{{\"archiver\":{{\"Filename\":\"{name}\"}},\"raw\":{raw}}}")
    }

    fn taken(block: &str) -> (usize, usize, usize) {
        let taken = take(&Judge::Objects, block.as_bytes(), 0, &FORM);
        (taken.end, taken.rows, taken.keys.len())
    }

    #[test]
    fn rows_are_taken_up_to_the_first_other_one() {
        let good = row("2022/09/29/a", "{\"a\":1}");
        assert_eq!(taken(""), (0, 0, 0));
        assert_eq!(taken(&good), (good.len() + 1, 1, 24));
        assert_eq!(taken(&format!("{good}\n{good}\n")), (2 * good.len() + 2, 2, 48));
        let long = row("a", &format!("{{\"a\":\"{}\"}}", "x".repeat(1000)));
        for other in ["", "{}", "{", &row("a\\\"b", "{}"), &row("a", "{\"a\":01}"), &long] {
            let block = format!("{good}\n{other}\n{good}\n");
            assert_eq!(taken(&block), (good.len() + 1, 1, 24), "{other}");
        }
    }

    #[test]
    fn a_key_is_the_hash_of_the_name_and_that_of_the_content() {
        let keys = |raw: &str| take(&Judge::Objects, row("a", raw).as_bytes(), 0, &FORM).keys;
        assert_eq!(keys("{}")[8..], xxh3_128(b"{}").to_be_bytes());
        assert_eq!(keys("{}")[..8], keys("{\"a\":1}")[..8]);
    }

    #[test]
    fn absolute_names_count_from_their_day_on() {
        let keys = |name: &str| take(&Judge::Objects, row(name, "{}").as_bytes(), 0, &FORM).keys;
        let usual = keys("2022/09/29/a");
        assert_eq!(keys("/var/spool/2022/09/29/a"), usual);
        assert_eq!(keys("/x2022/09/29/b/2022/09/29/a"), usual);
        assert_ne!(keys("/x2022/09/29/a"), usual);
        assert_ne!(keys("2022/09/29/b"), usual);
    }
}
