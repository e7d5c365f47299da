//! Timestamps.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the time of the wall clock, as `2026-11-17T16:06:49.123Z`.
pub(super) fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    say(since.as_secs(), since.subsec_millis())
}

fn say(seconds: u64, milliseconds: u32) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March here, so that a leap day is the last day of a year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + later;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_said_in_years_months_and_days() {
        assert_eq!(say(0, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(say(951_782_400, 7), "2000-02-29T00:00:00.007Z");
        assert_eq!(say(951_868_799, 999), "2000-02-29T23:59:59.999Z");
        assert_eq!(say(1_794_931_609, 5), "2026-11-17T16:06:49.005Z");
        assert_eq!(say(4_107_542_399, 0), "2100-02-28T23:59:59.000Z");
        assert_eq!(say(4_107_542_400, 0), "2100-03-01T00:00:00.000Z");
    }
}
