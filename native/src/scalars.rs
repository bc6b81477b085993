//! The values of each column type except RECORD in their common forms.
//!
//! **Invariant:** a value that is accepted here is accepted by `jostler/schema/scalars.py`.
//! GEOGRAPHY and RANGE are left undecided whatever the value is.

use crate::document::{Cursor, Number, Read, Text, Undecided, only_if};
use crate::moments;

/// How many digits before the point a number may have to be certainly a finite 64-bit float.
const FINITE_DIGITS: usize = 308;
/// Numbers of so many digits are certainly integers of 64 bits.
const INT64_DIGITS: usize = 18;
/// |epoch| < 10^13 is a TIMESTAMP of the years 1 to 9999, in seconds and in milliseconds.
const EPOCH_DIGITS: usize = 13;
const BOOLEANS: [&[u8]; 10] =
    [b"true", b"false", b"1", b"0", b"t", b"f", b"yes", b"no", b"y", b"n"];

/// What a column that is no RECORD accepts.
pub enum Scalar {
    /// STRING of at most so many characters.
    Text(Option<usize>),
    /// BYTES of at most so many bytes.
    Bytes(Option<usize>),
    Integer,
    Float,
    Boolean,
    Decimal(Digits),
    Timestamp,
    Date,
    Time,
    DateTime,
    Json,
    /// A type whose values are left to the Python judges.
    Other,
}

/// The digits that a NUMERIC or BIGNUMERIC column keeps.
pub struct Digits {
    /// How many before the point.
    pub whole: usize,
    /// How many after the point.  Further ones are rounded, which may need one digit more before it.
    pub scale: usize,
}

impl Scalar {
    pub fn text(&self, text: &Text) -> Read<()> {
        if let Self::Text(most) = self {
            // An escape has more characters than it stands for.
            return only_if(most.is_none_or(|most| characters(text.raw) <= most));
        }
        let raw = text.raw;
        only_if(!text.escaped)?;
        match self {
            Self::Bytes(most) => only_if(is_base64(raw, *most)),
            Self::Boolean => only_if(BOOLEANS.iter().any(|word| raw.eq_ignore_ascii_case(word))),
            Self::Timestamp => only_if(moments::is_timestamp(raw)),
            Self::Date => only_if(moments::is_date(raw)),
            Self::Time => only_if(moments::is_time(raw)),
            Self::DateTime => only_if(moments::is_datetime(raw)),
            Self::Float if matches!(raw, b"NaN" | b"Infinity" | b"-Infinity") => Ok(()),
            Self::Integer | Self::Float | Self::Decimal(_) => {
                let mut cursor = Cursor::new(raw);
                let number = cursor.number()?;
                only_if(cursor.is_at_end())?;
                self.number(&number)
            }
            _ => Err(Undecided),
        }
    }

    pub fn number(&self, number: &Number) -> Read<()> {
        match self {
            Self::Text(most) => only_if(most.is_none_or(|most| number.literal.len() <= most)),
            Self::Integer => only_if(number.is_integer() && is_int64(number)),
            Self::Float | Self::Json => only_if(number.magnitude() <= FINITE_DIGITS),
            Self::Boolean => only_if(matches!(number.literal, b"1" | b"0")),
            Self::Decimal(digits) => only_if(digits.fit(number)),
            Self::Timestamp => only_if(number.magnitude() <= EPOCH_DIGITS),
            _ => Err(Undecided),
        }
    }

    pub fn boolean(&self) -> Read<()> {
        only_if(matches!(self, Self::Boolean | Self::Json | Self::Text(None)))
    }
}

impl Digits {
    fn fit(&self, number: &Number) -> bool {
        let is_rounded = number.exponent.is_some() || number.fraction > self.scale;
        number.fraction <= FINITE_DIGITS
            && number.magnitude() + usize::from(is_rounded) <= self.whole
    }
}

fn is_int64(number: &Number) -> bool {
    number.whole <= INT64_DIGITS
        || (number.whole == INT64_DIGITS + 1
            && std::str::from_utf8(number.literal).is_ok_and(|text| text.parse::<i64>().is_ok()))
}

/// Returns how many characters a text in UTF-8 has.
fn characters(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

/// Whether a text is base64 with padding, as encoders write it, of at most `most` bytes.
fn is_base64(text: &[u8], most: Option<usize>) -> bool {
    if text.len() % 4 != 0 {
        return false;
    }
    let padding = text.iter().rev().take(2).take_while(|byte| **byte == b'=').count();
    let (digits, _) = text.split_at(text.len() - padding);
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    // The last digit has bits that stand for nothing; encoders leave them zero.
    let is_clean = match (padding, digits.last()) {
        (1, Some(last)) => b"AEIMQUYcgkosw048".contains(last),
        (2, Some(last)) => b"AQgw".contains(last),
        _ => padding == 0,
    };
    is_clean
        && digits.iter().all(is_digit)
        && most.is_none_or(|most| text.len() / 4 * 3 - padding <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(scalar: &Scalar, literal: &str) -> bool {
        let mut cursor = Cursor::new(literal.as_bytes());
        let found = if literal.starts_with('"') {
            cursor.string().and_then(|text| scalar.text(&text))
        } else {
            cursor.number().and_then(|number| scalar.number(&number))
        };
        found.is_ok() && cursor.is_at_end()
    }

    #[track_caller]
    fn check(scalar: &Scalar, good: &[&str], others: &[&str]) {
        for literal in good {
            assert!(accepts(scalar, literal), "{literal}");
        }
        for literal in others {
            assert!(!accepts(scalar, literal), "{literal}");
        }
    }

    #[test]
    fn integers_have_64_bits() {
        let good = ["0", "-0", "9223372036854775807", "-9223372036854775808", "\"12\"", "\"-1\""];
        let others = ["9223372036854775808", "1.0", "1e3", "\"1.5\"", "\"\"", "\" 1\"", "\"+1\""];
        check(&Scalar::Integer, &good, &others);
    }

    #[test]
    fn floats_are_finite_or_named() {
        let good = ["1.5", "-1e300", "1e-9999", "\"NaN\"", "\"-Infinity\"", "\"1e5\""];
        check(&Scalar::Float, &good, &["1e309", "\"nan\"", "\"1e400\"", "\"1 \"", "\"inf\""]);
    }

    #[test]
    fn decimals_keep_room_for_rounding() {
        let money = Scalar::Decimal(Digits { whole: 3, scale: 2 });
        check(&money, &["999.99", "\"-1.5\"", "99.999", "1e1"], &["1000", "999.995", "1e3"]);
    }

    #[test]
    fn booleans_are_words_in_any_case() {
        check(&Scalar::Boolean, &["1", "0", "\"YES\"", "\"t\""], &["2", "1.0", "\"ye\u{17f}\""]);
    }

    #[test]
    fn text_is_counted_in_characters() {
        let good = ["\"éé\"", "\"a\"", "12"];
        check(&Scalar::Text(Some(2)), &good, &["\"abc\"", "123", "\"\\u00e9\""]);
    }

    #[test]
    fn base64_is_padded_and_clean() {
        let good = ["\"\"", "\"YQ==\"", "\"YWI=\"", "\"YWJj\"", "\"+/+/\""];
        let others = ["\"YR==\"", "\"YQ=\"", "\"YQ\"", "\"====\"", "\"Y===\"", "\"-_-_\"", "1"];
        check(&Scalar::Bytes(None), &good, &others);
        check(&Scalar::Bytes(Some(1)), &["\"YQ==\""], &["\"YWI=\""]);
    }

    #[test]
    fn an_epoch_lies_within_the_years_in_milliseconds() {
        let good = ["1534680695", "1.534680695e12", "-62135596800", "0.5"];
        check(&Scalar::Timestamp, &good, &["99999999999999", "1e14", "\"1534680695\""]);
    }

    #[test]
    fn other_types_accept_nothing() {
        check(&Scalar::Other, &[], &["1", "\"POINT(1 2)\""]);
    }
}
