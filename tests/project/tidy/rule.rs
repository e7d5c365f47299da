//! One rule: the engine alone compares modes to decide which request may hold its lock.

use super::{assert_clean, shipped};
use crate::files::File;
use crate::source::shipped_code;

/// Files that compare modes for another reason.
const OTHER_REASONS: [(&str, &str); 7] = [
    ("crates/navlocks-core/", "the engine"),
    ("crates/navlocks-wire/src/info.rs", "writes modes and reads them"),
    ("crates/navlocks-server/src/store/request_table.rs", "writes modes and reads them"),
    ("crates/navlocks-server/src/hub/claim.rs", "tells whether a record is of the same request"),
    ("crates/navlocks-dashboard/src/views/survey.rs", "shows the requests of one mode"),
    ("crates/navlocks/src/election.rs", "tells a leader from other holders"),
    ("crates/navlocks-cli/", "shows modes"),
];

#[test]
fn engine_alone_compares_modes() {
    assert_clean(&comparisons(&shipped()));
}

/// Finds comparisons of modes, and patterns with modes.
fn comparisons(sources: &[File]) -> Vec<String> {
    let signs = ["mode ==", "mode !=", "mode <", "mode >", "== mode", "!= mode", ".mode.cmp("];
    let mut found = Vec::new();
    for file in sources {
        if OTHER_REASONS.iter().any(|(path, _)| file.path.starts_with(path)) {
            continue;
        }
        for (number, line) in shipped_code(&file.text) {
            let is_pattern = line.contains("Mode::")
                && ["matches!(", "let Mode::", "== ", "!= "].iter().any(|sign| line.contains(sign));
            let is_arm = line.split_once("=>").is_some_and(|(arm, _)| arm.contains(" Mode::"));
            if is_pattern || is_arm || signs.iter().any(|sign| line.contains(sign)) {
                found.push(format!("{}:{number}: {}", file.path, line.trim()));
            }
        }
    }
    found
}

#[test]
fn comparison_of_modes_is_found() {
    let lines = [
        "    if mode != Mode::Shared {",
        "    let both = other.mode == mode;",
        "        Mode::Exclusive | Mode::Limited(_) => &mut self.exclusive,",
        "    if matches!(mode, Mode::Limited(_)) {",
    ];
    for line in lines {
        let bad = File::new("crates/a/src/bad.rs", line);
        assert_eq!(comparisons(&[bad]).len(), 1, "{line}");
    }
    let good = "    let mode = if shared { Mode::Shared } else { Mode::Exclusive };\n    1 => request.mode(Mode::Shared),\n";
    assert!(comparisons(&[File::new("crates/a/src/good.rs", good)]).is_empty());
}

#[test]
fn files_with_other_reasons_exist() {
    let sources = shipped();
    for (path, _) in OTHER_REASONS {
        assert!(sources.iter().any(|file| file.path.starts_with(path)), "{path}");
    }
}
