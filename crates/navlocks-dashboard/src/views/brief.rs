//! Requests as a dashboard shows them: names are cut to what people read.

use std::time::Instant;

use navlocks_core::{Name, RequestId, Scope};
use navlocks_server::inspect::{Noted, PartitionView};
use navlocks_wire as wire;

use crate::shown::Entry;

/// The longest part of a name that a list shows, in UTF-16 code units.
pub(super) const NAME_UNITS_MAX: usize = 160;

/// The most names of one request that a list shows.
const NAMES_MAX: usize = 6;

/// Returns the beginning of a name, and its whole length if that is longer.
pub(super) fn cut(name: &Name) -> (Name, u64) {
    // A code unit takes at least one byte, and a long name is not counted for nothing.
    if name.len_bytes() <= NAME_UNITS_MAX || name.len_utf16() <= NAME_UNITS_MAX {
        return (name.clone(), 0);
    }
    let mut units: Vec<u16> = name.encode_utf16().take(NAME_UNITS_MAX).collect();
    // Half of a pair would be shown as a lone surrogate.
    if units.last().is_some_and(|last| (0xD800..0xDC00).contains(last)) {
        units.pop();
    }
    (Name::from_utf16(&units), name.len_utf16() as u64)
}

/// Returns the first names of a scope, and how many are left out.
pub(super) fn names(scope: &Scope) -> (Vec<Name>, u64) {
    let all = scope.names();
    let shown = all.iter().take(NAMES_MAX).map(|name| cut(name).0).collect();
    (shown, all.len().saturating_sub(NAMES_MAX) as u64)
}

/// Returns the milliseconds from a moment to a later one.
pub(super) fn age(since: Instant, now: Instant) -> u64 {
    now.saturating_duration_since(since).as_millis() as u64
}

/// Returns what a dashboard shows of a live request.
pub(crate) fn entry(partition: PartitionView<'_>, id: RequestId, now: Instant) -> Option<Entry> {
    let wire::Info { about, token, ms, left_ms, .. } = partition.info(id, now)?;
    let wire::About { request, client, names: wire::Names(scope), mode, tag, pid, .. } = about;
    let (names, more) = names(&scope);
    let stopped = false;
    Some(Entry { request, client, names, more, mode, tag, pid, token, ms, left_ms, stopped })
}

/// Returns the same, and looks whether the client's process is stopped.
pub(super) fn watched_entry(
    partition: PartitionView<'_>,
    id: RequestId,
    now: Instant,
) -> Option<Entry> {
    let entry = entry(partition, id, now)?;
    Some(Entry { stopped: partition.is_stopped(entry.client.session), ..entry })
}

/// Returns what a dashboard shows of a request that may be over.
pub(super) fn noted(noted: &Noted) -> Entry {
    let (names, more) = names(&noted.scope);
    let Noted { request, client, mode, pid, .. } = *noted;
    let (tag, token, left_ms, stopped) = (noted.tag.clone(), None, None, false);
    Entry { request, client, names, more, mode, tag, pid, token, ms: 0, left_ms, stopped }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_name_is_cut_between_characters() {
        let short = Name::from("ä".repeat(NAME_UNITS_MAX));
        assert_eq!(cut(&short), (short.clone(), 0));
        let long = Name::from(format!("a{}", "😀".repeat(NAME_UNITS_MAX)));
        let (shown, length) = cut(&long);
        assert_eq!(length, 1 + 2 * NAME_UNITS_MAX as u64);
        assert_eq!(shown.len_utf16(), NAME_UNITS_MAX - 1);
        assert!(shown.to_str().is_some(), "no half of a pair");
    }
}
