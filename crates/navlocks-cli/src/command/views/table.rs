//! Locks and requests as a table, for people.

use navlocks::{PartitionSnapshot, RequestInfo, Snapshot};

use crate::command::duration::say;
use crate::printer::{Harmless, Palette};

const HEAD: [&str; 7] = ["NAME", "MODE", "STATE", "FOR", "PID", "TAG", "TOKEN"];

/// The longest name or tag in a table; longer ones are cut.
const CELL_CHARS_MAX: usize = 40;

/// Returns a line for each request, held ones first, in queue order.
pub(crate) fn lines(snapshot: &Snapshot, palette: Palette) -> Vec<String> {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(snapshot.held.iter().map(|info| row(info, "held")));
    rows.extend(snapshot.pending.iter().map(|info| row(info, "waits")));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; HEAD.len()] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let paint = |(index, row): (usize, &[String; HEAD.len()])| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ").trim_end().to_owned();
        match index {
            0 => palette.bold(&line),
            index if index > snapshot.held.len() => palette.faint(&line),
            _ => line,
        }
    };
    rows.iter().enumerate().map(paint).collect()
}

/// Returns the title of a partition's table.
pub(crate) fn title(partition: &PartitionSnapshot) -> String {
    let mut title = match partition.partition.as_str() {
        "" => "the default partition".to_owned(),
        name => format!("partition {}", Harmless(name)),
    };
    if !partition.tenant.is_empty() {
        title.push_str(&format!(" of tenant {}", Harmless(&partition.tenant)));
    }
    if !partition.origin.is_empty() {
        title.push_str(&format!(" of {}", Harmless(&partition.origin)));
    }
    title
}

fn row(info: &RequestInfo, state: &str) -> [String; HEAD.len()] {
    let some = |number: Option<String>| number.unwrap_or_default();
    [
        cut(&info.scope.to_string()),
        info.mode.to_string(),
        if info.stopped { format!("{state}, stopped") } else { state.to_owned() },
        held_for(info),
        some(info.pid.map(|pid| pid.to_string()).or_else(|| info.process.as_deref().map(cut))),
        cut(&some(info.tag.as_deref().map(|tag| Harmless(tag).to_string()))),
        some(info.token.map(|token| token.to_string())),
    ]
}

/// Returns the age of a request, and the longest time of its lock if there is one: `12 s of 30 s`.
fn held_for(info: &RequestInfo) -> String {
    match info.left {
        Some(left) => format!("{} of {}", say(info.age), say(info.age + left)),
        None => say(info.age),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(CELL_CHARS_MAX) {
        None => text.to_owned(),
        Some(_) => text.chars().take(CELL_CHARS_MAX - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use navlocks::blocking::block_on;
    use navlocks::{FencingToken, Locks};
    use std::time::Duration;

    #[test]
    fn columns_line_up_and_long_names_are_cut() {
        let locks = Locks::new();
        let long = "n".repeat(CELL_CHARS_MAX + 1);
        let mut snapshot = block_on(async {
            let _lock = locks.request(long.as_str()).tag("make\x07").await.unwrap();
            locks.query().await.unwrap()
        });
        snapshot.held[0].age = Duration::from_secs(61);
        snapshot.held[0].token = Some(FencingToken::new(7));
        let mut waits = snapshot.held[0].clone();
        snapshot.held[0].left = Some(Duration::from_secs(239));
        waits.scope = "ä".into();
        (waits.token, waits.tag, waits.pid) = (None, None, Some(12));
        snapshot.pending.push(waits);
        let (name, gap) = ("n".repeat(CELL_CHARS_MAX - 1), " ".repeat(CELL_CHARS_MAX - 4));
        let expected = [
            format!("NAME{gap}  MODE       STATE  FOR                     PID  TAG        TOKEN"),
            format!("{name}…  exclusive  held   1 min 1 s of 5 min 0 s       make\\u{{7}}  7"),
            format!("ä   {gap}  exclusive  waits  1 min 1 s               12"),
        ];
        assert_eq!(lines(&snapshot, Palette::plain()), expected);
    }
}
