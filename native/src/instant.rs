//! How an instant is written: as `jostler/format/row.py: instant` does.

const SECOND_US: i64 = 1_000_000;
const DAY_S: i64 = 86_400;
/// The end of the year 9999.
const END_S: i64 = 253_402_300_800;

/// `2022-09-29T01:02:03.000004Z`
pub type Text = [u8; 27];

/// Writes microseconds since 1970, UTC; None if they are not of the years 1970 to 9999.
pub fn text(micros: i64) -> Option<Text> {
    let (seconds, micro) = (micros / SECOND_US, micros % SECOND_US);
    if micros < 0 || seconds >= END_S {
        return None;
    }
    let (year, month, day) = date(seconds / DAY_S);
    let second = seconds % DAY_S;
    let mut text = *b"0000-00-00T00:00:00.000000Z";
    digits(&mut text[..4], year);
    digits(&mut text[5..7], month);
    digits(&mut text[8..10], day);
    digits(&mut text[11..13], second / 3600);
    digits(&mut text[14..16], second / 60 % 60);
    digits(&mut text[17..19], second % 60);
    digits(&mut text[20..26], micro);
    Some(text)
}

fn digits(out: &mut [u8], mut value: i64) {
    for digit in out.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// Returns year, month and day, given days since 1970-01-01.
///
/// Years are counted from March on, so that a leap day is the last of its year
/// (howardhinnant.github.io/date_algorithms.html, `civil_from_days`).
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468; // since 0000-03-01
    let (era, of_era) = (days / 146_097, days % 146_097); // 400 years
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(micros: i64) -> String {
        String::from_utf8(text(micros).unwrap().to_vec()).unwrap()
    }

    #[test]
    fn an_instant_has_microseconds() {
        assert_eq!(written(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(written(1_582_979_696_000_001), "2020-02-29T12:34:56.000001Z");
        assert_eq!(written(END_S * SECOND_US - 1), "9999-12-31T23:59:59.999999Z");
    }

    #[test]
    fn each_day_follows_the_one_before() {
        let mut before = written(0)[..10].to_owned();
        for day in 1..END_S / DAY_S {
            let today = written(day * DAY_S * SECOND_US)[..10].to_owned();
            assert!(today > before && crate::moments::is_date(today.as_bytes()), "{today}");
            before = today;
        }
        assert_eq!(before, "9999-12-31");
    }

    #[test]
    fn other_years_are_left_undecided() {
        assert!([-1, i64::MIN, END_S * SECOND_US, i64::MAX].iter().all(|it| text(*it).is_none()));
    }
}
