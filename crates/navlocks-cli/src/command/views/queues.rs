//! Queues as rows, for the screen: holders, a bar, waiters in order.

use std::collections::BTreeMap;
use std::time::Duration;

use navlocks::{Mode, Name, RequestInfo, Snapshot};

use crate::command::duration::say;
use crate::printer::{Harmless, Palette};

/// The most rows, and the most requests of one row that are named.
const ROWS_MAX: usize = 12;
const CHIPS_MAX: usize = 6;

/// The requests of one name.
#[derive(Default)]
struct Row<'a> {
    held: Vec<&'a RequestInfo>,
    waiting: Vec<&'a RequestInfo>,
}

/// Returns a line for each name that a request waits for, the longest wait first.
pub(crate) fn lines(now: &Snapshot, palette: Palette) -> Vec<String> {
    let mut rows: BTreeMap<&Name, Row<'_>> = BTreeMap::new();
    for info in &now.pending {
        for name in info.scope.names() {
            rows.entry(name).or_default().waiting.push(info);
        }
    }
    for info in &now.held {
        for name in info.scope.names() {
            if let Some(row) = rows.get_mut(name) {
                row.held.push(info);
            }
        }
    }
    let wait = |row: &Row<'_>| row.waiting.first().map_or(Duration::ZERO, |info| info.age);
    let mut rows: Vec<(&Name, Row<'_>)> = rows.into_iter().collect();
    rows.sort_by(|(a, x), (b, y)| wait(y).cmp(&wait(x)).then_with(|| a.cmp(b)));
    let left_out = rows.len().saturating_sub(ROWS_MAX);
    let mut lines: Vec<String> = Vec::new();
    for (name, row) in rows.iter().take(ROWS_MAX) {
        let held = chips(&row.held);
        let waiting = chips(&row.waiting);
        let count = row.waiting.len();
        let line = format!("{name}  ▐{held}▌ {waiting}");
        lines.push(format!(
            "{line}  {}",
            palette.faint(&format!("{count} wait, {}", say(wait(row))))
        ));
    }
    if left_out > 0 {
        lines.push(palette.faint(&format!("and {left_out} more names with waiters")));
    }
    lines
}

/// Returns requests in order, with shared neighbours in parentheses.
fn chips(infos: &[&RequestInfo]) -> String {
    let mut text = String::new();
    let mut shared = false;
    for (index, info) in infos.iter().take(CHIPS_MAX).enumerate() {
        let is_shared = info.mode != Mode::Exclusive;
        if shared && !is_shared {
            text.push(')');
        }
        if index > 0 {
            text.push(' ');
        }
        if is_shared && !shared {
            text.push('(');
        }
        shared = is_shared;
        text.push_str(&chip(info));
    }
    if shared {
        text.push(')');
    }
    if infos.len() > CHIPS_MAX {
        text.push_str(&format!(" +{}", infos.len() - CHIPS_MAX));
    }
    text
}

fn chip(info: &RequestInfo) -> String {
    match (&info.tag, info.pid) {
        (Some(tag), _) => Harmless(tag).to_string().chars().take(16).collect(),
        (None, Some(pid)) => format!("pid {pid}"),
        (None, None) => format!("client {}", info.client),
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use navlocks::Locks;
    use navlocks::blocking::block_on;

    use super::*;

    #[test]
    fn queue_is_a_row_with_holders_before_the_bar_and_shared_neighbours_together() {
        let locks = Locks::new();
        let shared = |tag: &str| locks.request("a").shared().tag(tag).into_future();
        let held = [block_on(shared("r1")), block_on(shared("r2"))];
        assert!(held.iter().all(Result::is_ok));
        let mut context = Context::from_waker(Waker::noop());
        let mut writer = pin!(locks.request("a").tag("w").into_future());
        let mut reader = pin!(shared("r3"));
        assert!(writer.as_mut().poll(&mut context).is_pending());
        assert!(reader.as_mut().poll(&mut context).is_pending());
        let mut now = block_on(locks.query()).expect("a snapshot");
        now.pending[0].age = Duration::from_secs(9);
        let lines = lines(&now, Palette::plain());
        assert_eq!(lines, ["a  ▐(r1 r2)▌ w (r3)  2 wait, 9 s"]);
    }
}
