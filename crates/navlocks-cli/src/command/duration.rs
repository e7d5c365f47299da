//! Lengths of time, as people type and read them.

use std::time::Duration;

/// The units, longest first, by their names and their length in milliseconds.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// The longest length of time: a longer one is as good as without end, and added to a clock it
/// would overflow.
const LONGEST: Duration = Duration::from_secs(1000 * 365 * 86_400);

/// Reads `10`, `2.5s`, `500ms`, `3m`, `1h`, `7d`, `1m30s`. A number without a unit is seconds, as
/// in flock(1).
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let wrong =
        || "a length of time is a number and one of ms, s, m, h, d, such as 1m30s".to_owned();
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    if let Ok(seconds) = text.parse::<f64>()
        && text.chars().all(is_number)
    {
        return seconds_of(seconds);
    }
    let (mut rest, mut sum, mut units) = (text, 0.0, UNITS.iter());
    while !rest.is_empty() {
        let (number, more) = rest.split_at(rest.find(|c| !is_number(c)).ok_or_else(wrong)?);
        let (unit, more) = more.split_at(more.find(is_number).unwrap_or(more.len()));
        // Each unit may come once, the longest first.
        let (_, length) = units.find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        sum += number.parse::<f64>().map_err(|_| wrong())? * *length as f64 / 1000.0;
        rest = more;
    }
    if text.is_empty() { Err(wrong()) } else { seconds_of(sum) }
}

fn seconds_of(seconds: f64) -> Result<Duration, String> {
    let length = Duration::try_from_secs_f64(seconds).map_err(|_| "that is too long".to_owned())?;
    Ok(length.min(LONGEST))
}

/// Returns a duration in one or two units, rounded.
pub(crate) fn say(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600, seconds / 60);
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{minutes} min {} s", seconds % 60),
        3600..86_400 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type_is_understood() {
        let cases = [
            ("0", 0),
            ("10", 10_000),
            ("2.5s", 2500),
            (".5", 500),
            ("500ms", 500),
            ("3m", 180_000),
            ("1h", 3_600_000),
            ("7d", 604_800_000),
            ("1m30s", 90_000),
            ("1h0.5m250ms", 3_630_250),
        ];
        for (text, milliseconds) in cases {
            assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn length_that_would_overflow_a_clock_is_cut() {
        assert_eq!(parse("9223372036854775808"), Ok(LONGEST));
        assert!(std::time::Instant::now().checked_add(LONGEST).is_some());
    }

    #[test]
    fn what_is_no_length_of_time_is_refused() {
        for text in [
            "",
            "s",
            "-1",
            "1x",
            "1 s",
            "1e3",
            "1..5",
            "ten",
            "30s1m",
            "1m1m",
            "1m30",
            "9999999999999999999999d",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn lengths_are_said_in_two_units_at_most() {
        let cases = [
            (950, "950 ms"),
            (1000, "1 s"),
            (61_000, "1 min 1 s"),
            (3_660_000, "1 h 1 min"),
            (90_000_000, "1 d 1 h"),
        ];
        for (milliseconds, said) in cases {
            assert_eq!(say(Duration::from_millis(milliseconds)), said);
        }
    }
}
