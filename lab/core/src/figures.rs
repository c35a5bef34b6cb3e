//! Figures for people: numbers of readable length.

/// `1234567` as `1,234,567`; small numbers keep three digits.
pub fn count(value: f64) -> String {
    if value.abs() < 100.0 {
        return three_digits(value);
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = String::from(if value < 0.0 { "-" } else { "" });
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Three digits: `0.123`, `1.23`, `12.3`, `123`.
pub fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v == 0.0 || v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// Microseconds as `12.3 us`, `4.5 ms`, `6.7 s`.
pub fn micros(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{} s", three_digits(us / 1e6)),
        us if us >= 1e3 => format!("{} ms", three_digits(us / 1e3)),
        us => format!("{} us", three_digits(us)),
    }
}

/// A day of the calendar and a time of day, in UTC: `2026-11-21 01:05`.
pub fn utc(unix_seconds: u64) -> String {
    let (days, seconds) = ((unix_seconds / 86_400) as i64, unix_seconds % 86_400);
    // Days from a March 1st that begins a cycle of 400 years, after Howard Hinnant's `civil_from_days`.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(count(1_234_567.4), "1,234,567");
        assert_eq!(count(12.345), "12.3");
        assert_eq!(count(999.6), "1,000");
        assert_eq!(three_digits(0.12345), "0.123");
        assert_eq!(micros(1_500.0), "1.50 ms");
    }

    #[test]
    fn dates_are_right() {
        assert_eq!(utc(0), "1970-01-01 00:00");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00");
        assert_eq!(utc(1_795_223_100), "2026-11-21 01:05");
    }
}
