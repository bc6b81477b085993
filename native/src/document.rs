//! Reads JSON (RFC 8259) from bytes that are valid UTF-8.
//!
//! **Invariant:** what is read here is read by `jostler/schema/document.py`, too, as the same value;
//! the reverse need not hold.  No input makes it panic, allocate or recurse.

/// The document is left to the Python judges.
#[derive(Debug)]
pub struct Undecided;

pub type Read<T> = Result<T, Undecided>;

/// Returns `Ok` if a condition holds.
pub fn only_if(condition: bool) -> Read<()> {
    if condition { Ok(()) } else { Err(Undecided) }
}

/// The text of a string between its quotes.
pub struct Text<'a> {
    pub raw: &'a [u8],
    /// Whether it has escapes; without any, `raw` is the text itself.
    pub escaped: bool,
}

/// A number; it is kept as its literal.
pub struct Number<'a> {
    pub literal: &'a [u8],
    /// How many digits stand before the point.
    pub whole: usize,
    /// How many digits stand after the point; 0 without a point.
    pub fraction: usize,
    /// The exponent, at most `EXPONENT_MAX` either way; `None` if there is none.
    pub exponent: Option<i32>,
}

const EXPONENT_MAX: i32 = 9999;

impl Number<'_> {
    /// Whether it is written as an integer: neither a point nor an exponent.
    pub fn is_integer(&self) -> bool {
        self.fraction == 0 && self.exponent.is_none()
    }

    /// Returns an n with |number| < 10^n.
    pub fn magnitude(&self) -> usize {
        self.whole + self.exponent.map_or(0, |exponent| exponent.max(0) as usize)
    }
}

/// A position in a document.
pub struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the next byte; 0, which JSON has nowhere, at the end.
    pub fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    pub fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    pub fn skip_space(&mut self) {
        if self.peek() > b' ' {
            return; // nearly always
        }
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    /// Reads the given bytes if they come next.
    #[inline]
    pub fn takes(&mut self, bytes: &[u8]) -> bool {
        let found = begins(&self.text[self.at..], bytes);
        if found {
            self.at += bytes.len();
        }
        found
    }

    pub fn expect(&mut self, bytes: &[u8]) -> Read<()> {
        only_if(self.takes(bytes))
    }

    /// Reads what begins a container; returns whether the container is empty.
    pub fn opens(&mut self, brackets: [u8; 2]) -> Read<bool> {
        self.expect(&brackets[..1])?;
        self.skip_space();
        Ok(self.takes(&brackets[1..]))
    }

    /// Reads what follows a value of a container: a comma, or the bracket that ends it.
    pub fn closes(&mut self, brackets: [u8; 2]) -> Read<bool> {
        self.skip_space();
        let found = self.peek();
        only_if(found == b',' || found == brackets[1])?;
        self.at += 1;
        if found == b',' {
            self.skip_space();
        }
        Ok(found != b',')
    }

    /// Reads a string.
    ///
    /// Undecided: NUL and lone surrogates, which no column can hold.
    pub fn string(&mut self) -> Read<Text<'a>> {
        self.expect(b"\"")?;
        let start = self.at;
        let mut escaped = false;
        loop {
            self.at = plain_end(self.text, self.at);
            match self.peek() {
                b'"' => break,
                b'\\' => self.escape()?,
                _ => return Err(Undecided),
            }
            escaped = true;
        }
        let raw = &self.text[start..self.at];
        self.at += 1;
        Ok(Text { raw, escaped })
    }

    fn escape(&mut self) -> Read<()> {
        self.at += 1;
        let letter = self.peek();
        self.at += 1;
        match letter {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(()),
            b'u' => match self.code_unit()? {
                0 | 0xDC00..=0xDFFF => Err(Undecided),
                0xD800..=0xDBFF => {
                    self.expect(b"\\u")?;
                    only_if(matches!(self.code_unit()?, 0xDC00..=0xDFFF))
                }
                _ => Ok(()),
            },
            _ => Err(Undecided),
        }
    }

    fn code_unit(&mut self) -> Read<u32> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = char::from(self.peek()).to_digit(16).ok_or(Undecided)?;
            unit = unit << 4 | digit;
            self.at += 1;
        }
        Ok(unit)
    }

    pub fn number(&mut self) -> Read<Number<'a>> {
        let start = self.at;
        self.takes(b"-");
        let zero = self.peek() == b'0';
        let whole = self.digits();
        only_if(whole > 0 && (whole == 1 || !zero))?;
        let mut fraction = 0;
        if self.takes(b".") {
            fraction = self.digits();
            only_if(fraction > 0)?;
        }
        let exponent = match self.peek() {
            b'e' | b'E' => Some(self.exponent()?),
            _ => None,
        };
        let literal = &self.text[start..self.at];
        Ok(Number { literal, whole, fraction, exponent })
    }

    /// Reads an integer of at most 15 digits, if one comes next and nothing but it, as nearly all
    /// numbers are.
    #[inline]
    pub fn takes_short_integer(&mut self) -> bool {
        let at = self.at + usize::from(self.peek() == b'-');
        let Some(sixteen) = self.text.get(at..).and_then(|rest| rest.first_chunk::<16>()) else {
            return false; // the end is near
        };
        let word = |from| u64::from_le_bytes(std::array::from_fn(|nth| sixteen[from + nth]));
        let mut count = digits_of(word(0));
        if count == 8 {
            count += digits_of(word(8));
        }
        let has_form = match count {
            0 | 16 => false,
            1 => true,
            _ => sixteen[0] != b'0',
        };
        let found = has_form && matches!(sixteen[count], b',' | b'}' | b']');
        if found {
            self.at = at + count;
        }
        found
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while let Some(eight) = self.text[self.at..].first_chunk::<8>() {
            let count = digits_of(u64::from_le_bytes(*eight));
            self.at += count;
            if count < 8 {
                return self.at - start;
            }
        }
        let rest = &self.text[self.at..];
        self.at += rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at - start
    }

    fn exponent(&mut self) -> Read<i32> {
        self.at += 1;
        let negative = self.takes(b"-");
        if !negative {
            self.takes(b"+");
        }
        let start = self.at;
        only_if(self.digits() > 0)?;
        let exponent = self.text[start..self.at]
            .iter()
            .fold(0, |sum: i32, digit| (sum * 10 + i32::from(digit - b'0')).min(EXPONENT_MAX));
        Ok(if negative { -exponent } else { exponent })
    }
}

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGHS: u64 = ONES << 7;

/// Returns how many of eight bytes, the first one being the lowest, are digits before another one.
fn digits_of(word: u64) -> usize {
    // Of a digit the high half is 3, and 6 more do not change that.
    let high = ONES * 0xF0;
    let threes = ONES * 0x30;
    let other = ((word & high) ^ threes) | ((word.wrapping_add(ONES * 6) & high) ^ threes);
    (other.trailing_zeros() / 8) as usize
}

/// Returns whether a text begins with some bytes; a call of memcmp would take longer than most keys.
#[inline]
fn begins(text: &[u8], bytes: &[u8]) -> bool {
    let Some(text) = text.get(..bytes.len()) else {
        return false;
    };
    let word =
        |of: &[u8], at: usize| of[at..].first_chunk().map(|eight| u64::from_ne_bytes(*eight));
    let Some(last) = bytes.len().checked_sub(8) else {
        return text.iter().zip(bytes).all(|(one, other)| one == other);
    };
    // The last eight may overlap with those before.
    (0..last).step_by(8).chain([last]).all(|at| word(text, at) == word(bytes, at))
}

/// Returns where the first quote, backslash or control character from `at` on is, or the end.
///
/// It looks at eight bytes at once.  A subtraction borrows from a byte only if a byte below it is
/// one that is looked for, so the lowest mark is always right.
fn plain_end(text: &[u8], mut at: usize) -> usize {
    while let Some(eight) = text[at..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*eight);
        let is_zero = |word: u64| word.wrapping_sub(ONES) & !word;
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let quote = is_zero(word ^ (ONES * u64::from(b'"')));
        let backslash = is_zero(word ^ (ONES * u64::from(b'\\')));
        let found = (control | quote | backslash) & HIGHS;
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    text[at..].iter().position(special).map_or(text.len(), |more| at + more)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> Option<(usize, bool)> {
        let mut cursor = Cursor::new(text.as_bytes());
        cursor.string().ok().map(|found| (found.raw.len(), found.escaped))
    }

    #[test]
    fn a_string_ends_at_its_quote_wherever_that_is() {
        for length in 0..40 {
            let text = format!("\"{}\" and more", "x".repeat(length));
            assert_eq!(string(&text), Some((length, false)));
        }
    }

    #[test]
    fn control_characters_stand_in_no_string() {
        for at in 0..20 {
            let text = format!("\"{}\n{}\"", "é".repeat(at), "x".repeat(at));
            assert_eq!(string(&text), None);
        }
        assert_eq!(string("\"\u{7f}\u{80}\""), Some((3, false)));
    }

    #[test]
    fn escapes_are_those_of_json() {
        assert_eq!(string(r#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00""#), Some((34, true)));
        for wrong in [r#""\x""#, r#""\u12""#, r#""\u12g4""#, r#""\""#, r#""\u+123""#, "\"\\"] {
            assert_eq!(string(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn nul_and_lone_surrogates_are_left_undecided() {
        for wrong in [r#""\u0000""#, r#""\ud800""#, r#""\udc00""#, r#""\ud800\u0041""#] {
            assert_eq!(string(wrong), None, "{wrong}");
        }
    }

    fn number(text: &str) -> Option<(usize, usize, Option<i32>)> {
        let mut cursor = Cursor::new(text.as_bytes());
        let found = cursor.number().ok()?;
        cursor.is_at_end().then_some((found.whole, found.fraction, found.exponent))
    }

    #[test]
    fn numbers_are_those_of_json() {
        assert_eq!(number("-0"), Some((1, 0, None)));
        assert_eq!(number("12.50"), Some((2, 2, None)));
        assert_eq!(number("1E+2"), Some((1, 0, Some(2))));
        assert_eq!(number("1.5e-07"), Some((1, 1, Some(-7))));
        assert_eq!(number("1e99999999999999999999"), Some((1, 0, Some(EXPONENT_MAX))));
        for wrong in ["", "-", "+1", "01", "-01", "1.", ".5", "1e", "1e+", "0x1", "1 ", "NaN"] {
            assert_eq!(number(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn short_integers_are_what_is_read_as_a_number() {
        for (text, count) in
            [("0", 1), ("-0", 2), ("7", 1), ("-12345678", 9), ("123456789012345", 15)]
        {
            assert_eq!(number(text).map(|found| found.1), Some(0));
            for end in [",", "}", "]"] {
                let padded = format!("{text}{end}                ");
                let mut cursor = Cursor::new(padded.as_bytes());
                assert!(cursor.takes_short_integer(), "{padded}");
                assert_eq!(cursor.at, count);
            }
        }
        for other in [
            "",
            "-",
            "--1",
            "01",
            "-01",
            "+1",
            "1.5",
            "1e5",
            "1 ",
            "1\"",
            "x",
            "1234567890123456",
            "/",
            ":",
        ] {
            let padded = format!("{other},                ");
            let mut cursor = Cursor::new(padded.as_bytes());
            assert!(!cursor.takes_short_integer(), "{padded}");
            assert_eq!(cursor.at, 0);
        }
    }

    #[test]
    fn digits_are_counted_up_to_the_first_other_byte() {
        for byte in 0..=u8::MAX {
            for at in 0..8 {
                let mut eight = *b"90817263";
                eight[at] = byte;
                let expected = if byte.is_ascii_digit() { 8 } else { at };
                assert_eq!(digits_of(u64::from_le_bytes(eight)), expected, "{byte} at {at}");
            }
        }
    }

    #[test]
    fn a_text_begins_with_bytes_of_any_length() {
        let text = b"the quick brown fox jumps over the lazy dog";
        for length in 0..=text.len() {
            assert!(begins(text, &text[..length]));
            for wrong in 0..length {
                let mut other = text[..length].to_vec();
                other[wrong] ^= 1;
                assert!(!begins(text, &other));
            }
        }
        assert!(!begins(b"the", b"the quick"));
    }
}
