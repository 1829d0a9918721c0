//! Dates and times, in ISO form: PostgreSQL reads it whatever its DateStyle is.

use crate::units::DAY;

/// Days from 0000-03-01, where Hinnant's algorithm begins, to 2000-01-01.
const EPOCH: i64 = 730_425;
/// Days of 400 years.
const ERA: i64 = 146_097;

/// Year, month, day of a number of days from 2000-01-01, in the Gregorian calendar (Howard Hinnant,
/// "chrono-compatible low-level date algorithms", `civil_from_days`).
fn civil(days: i64) -> (i64, i64, i64) {
    let from_march = days + EPOCH;
    let (era, day_of_era) = (from_march.div_euclid(ERA), from_march.rem_euclid(ERA));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March, in which the leap day comes last.
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = year_of_era + era * 400;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

/// Appends `2000-01-01` for 0 days.
pub(super) fn date(days: i64, out: &mut Vec<u8>) {
    let (year, month, day) = civil(days);
    padded(year, 4, out);
    out.push(b'-');
    padded(month, 2, out);
    out.push(b'-');
    padded(day, 2, out);
}

/// Appends `00:00:00.000001` for a microsecond, and hours past 24 as such.
pub(super) fn time(microseconds: i64, out: &mut Vec<u8>) {
    let (seconds, fraction) = (microseconds / 1_000_000, microseconds % 1_000_000);
    padded(seconds / 3_600, 2, out);
    out.push(b':');
    padded(seconds / 60 % 60, 2, out);
    out.push(b':');
    padded(seconds % 60, 2, out);
    if fraction != 0 {
        out.push(b'.');
        padded(fraction, 6, out);
    }
}

/// Appends `2000-01-01 00:00:00` for 0 microseconds.
pub(super) fn timestamp(microseconds: i64, out: &mut Vec<u8>) {
    date(microseconds.div_euclid(DAY), out);
    out.push(b' ');
    time(microseconds.rem_euclid(DAY), out);
}

/// At least so many digits.
fn padded(number: i64, width: usize, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(number).as_bytes();
    out.resize(out.len() + width.saturating_sub(digits.len()), b'0');
    out.extend_from_slice(digits);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(function: fn(i64, &mut Vec<u8>), value: i64) -> String {
        let mut out = Vec::new();
        function(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_day_is_the_calendar_s() {
        let epoch = jiff::civil::date(2000, 1, 1);
        let mut day = jiff::civil::date(1, 1, 1);
        while day < jiff::civil::date(3000, 1, 1) {
            let days = i64::from(epoch.until(day).unwrap().get_days());
            assert_eq!(written(date, days), day.to_string());
            day = day.tomorrow().unwrap();
        }
    }

    #[test]
    fn times() {
        assert_eq!(written(time, 0), "00:00:00");
        assert_eq!(written(time, 3_723_000_040), "01:02:03.000040");
        assert_eq!(written(time, 360_000_000_000), "100:00:00");
        assert_eq!(written(timestamp, -1), "1999-12-31 23:59:59.999999");
        // The last one that PostgreSQL has.
        assert_eq!(written(timestamp, 9_223_371_331_199_999_999), "294276-12-31 23:59:59.999999");
    }
}
