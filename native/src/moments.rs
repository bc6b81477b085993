//! The texts of DATE, TIME, DATETIME and TIMESTAMP columns in their common forms.
//!
//! **Invariant:** a text that is accepted here is accepted by `jostler/schema/moments.py`.  Forms
//! that hardly any program writes are left undecided: a TIMESTAMP with slashes or without seconds,
//! an offset without minutes.

/// `YYYY-MM-DD`
pub fn is_date(text: &[u8]) -> bool {
    text.len() == 10 && date_year(text).is_some()
}

/// `HH:MM:SS[.SSSSSS]`
pub fn is_time(text: &[u8]) -> bool {
    clock_end(text).is_some_and(|rest| rest.is_empty() || (rest.len() <= 7 && is_fraction(rest)))
}

/// `YYYY-MM-DD HH:MM:SS[.SSSSSS]`
pub fn is_datetime(text: &[u8]) -> bool {
    text.get(10) == Some(&b' ') && is_date(&text[..10]) && is_time(&text[11..])
}

/// `YYYY-MM-DD`, `T` or a space, `HH:MM:SS` with any fraction, and a zone or none.
pub fn is_timestamp(text: &[u8]) -> bool {
    let Some(year) = text.get(..10).and_then(date_year) else {
        return false;
    };
    if !matches!(text.get(10), Some(b'T' | b' ')) {
        return false;
    }
    let Some(rest) = clock_end(&text[11..]) else {
        return false;
    };
    let is_digit = |byte: &&u8| byte.is_ascii_digit();
    let fraction = match rest.first() {
        Some(b'.') => 1 + rest[1..].iter().take_while(is_digit).count(),
        _ => 0,
    };
    // With an offset a moment of the first or last year may lie outside of the years 1 to 9999.
    let is_inside = (2..=9998).contains(&year);
    fraction != 1
        && match &rest[fraction..] {
            b"" | b"Z" | b" UTC" => true,
            [b'+' | b'-', offset @ ..] => is_inside && is_offset(offset),
            _ => false,
        }
}

/// Returns the year of a real day, 1 to 9999.
fn date_year(text: &[u8]) -> Option<u32> {
    if text[4] != b'-' || text[7] != b'-' {
        return None;
    }
    let (year, month, day) = (number(&text[..4])?, number(&text[5..7])?, number(&text[8..10])?);
    let leaps = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leaps),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (year >= 1 && (1..=days).contains(&day)).then_some(year)
}

/// Returns what follows `HH:MM:SS`.
fn clock_end(text: &[u8]) -> Option<&[u8]> {
    let (clock, rest) = text.split_at_checked(8)?;
    let fits = clock[2] == b':'
        && clock[5] == b':'
        && number(&clock[..2])? < 24
        && number(&clock[3..5])? < 60
        && number(&clock[6..])? < 60;
    fits.then_some(rest)
}

/// A point and one digit or more.
fn is_fraction(text: &[u8]) -> bool {
    text.len() > 1 && text[0] == b'.' && text[1..].iter().all(u8::is_ascii_digit)
}

/// `HH:MM`, at most 13:59.
fn is_offset(text: &[u8]) -> bool {
    text.len() == 5
        && text[2] == b':'
        && number(&text[..2]).is_some_and(|hours| hours < 14)
        && number(&text[3..]).is_some_and(|minutes| minutes < 60)
}

/// Returns the number that a few digits are.
fn number(digits: &[u8]) -> Option<u32> {
    digits
        .iter()
        .try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + u32::from(byte - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_a_real_day() {
        for good in ["0001-01-01", "2020-02-29", "2000-02-29", "9999-12-31"] {
            assert!(is_date(good.as_bytes()), "{good}");
        }
        for wrong in ["0000-01-01", "2021-02-29", "1900-02-29", "2021-04-31", "2021-13-01"] {
            assert!(!is_date(wrong.as_bytes()), "{wrong}");
        }
        for wrong in ["2021-1-1", "2021/01/01", "2021-01-1x", "2021-01-011", "", "२०२१"] {
            assert!(!is_date(wrong.as_bytes()), "{wrong}");
        }
    }

    #[test]
    fn a_time_has_seconds_and_up_to_six_digits_more() {
        for good in ["00:00:00", "23:59:59.1", "12:34:56.123456"] {
            assert!(is_time(good.as_bytes()), "{good}");
        }
        for wrong in ["24:00:00", "00:60:00", "00:00:60", "00:00", "00:00:00.", "00:00:00.1234567"]
        {
            assert!(!is_time(wrong.as_bytes()), "{wrong}");
        }
    }

    #[test]
    fn a_datetime_has_a_space_and_no_zone() {
        assert!(is_datetime(b"2020-02-29 12:34:56.5"));
        for wrong in ["2020-02-29T12:34:56", "2020-02-29 12:34:56Z", "2020-02-29", "2020-02-29 "] {
            assert!(!is_datetime(wrong.as_bytes()), "{wrong}");
        }
    }

    #[test]
    fn a_timestamp_has_a_zone_that_leaves_it_within_the_years() {
        for good in ["Z", "", " UTC", "+00:00", "-13:59", ".123456789Z", ".1+05:30"] {
            assert!(is_timestamp(format!("2020-03-18T00:06:56{good}").as_bytes()), "{good}");
            assert!(is_timestamp(format!("2020-03-18 00:06:56{good}").as_bytes()), "{good}");
        }
        for wrong in ["z", ".Z", "+14:01", "+1", "+0100", " +01:00", "UTC", "+01:60", "Z "] {
            assert!(!is_timestamp(format!("2020-03-18T00:06:56{wrong}").as_bytes()), "{wrong}");
        }
        assert!(is_timestamp(b"9999-12-31T23:59:59Z"));
        assert!(!is_timestamp(b"9999-12-31T23:59:59-01:00"));
        assert!(!is_timestamp(b"0001-01-01T00:00:00+01:00"));
        assert!(!is_timestamp(b"2020-03-18"));
    }
}
