//! The help texts of the command. `UPDATE_SNAPSHOTS=1` accepts changes.

use crate::support::{World, assert_ended, text};
use std::fs;
use std::path::Path;

#[track_caller]
fn assert_snapshot(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/snapshots").join(name);
    let (known, text) = (trimmed(&fs::read_to_string(&path).unwrap_or_default()), trimmed(text));
    if known != text && std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        return fs::write(&path, text).expect("the folder of snapshots");
    }
    assert!(known == text, "{name} has changed; if it should, UPDATE_SNAPSHOTS=1\n{text}");
}

/// Returns the text without the blanks of empty lines, which git refuses.
fn trimmed(text: &str) -> String {
    text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

const COMMANDS: [&str; 17] = [
    "run",
    "lock",
    "unlock",
    "query",
    "watch",
    "why",
    "graph",
    "dashboard",
    "leader",
    "steal",
    "release",
    "serve",
    "stop",
    "doctor",
    "cluster",
    "completions",
    "man",
];

#[test]
fn help_texts_equal_their_snapshots() {
    let world = World::new();
    let short = world.run("-h");
    assert_ended(&short, 0, "");
    assert_snapshot("navlocks-short.txt", text(&short));
    assert_snapshot("navlocks.txt", text(&world.run("--help")));
    for command in COMMANDS {
        let help = world.run(&format!("{command} --help"));
        assert_ended(&help, 0, "");
        assert_snapshot(&format!("{command}.txt"), text(&help));
    }
}

#[test]
fn snapshots_cover_every_subcommand() {
    let world = World::new();
    let help = world.run("-h");
    let section = text(&help).split("Commands:\n").nth(1).unwrap();
    let listed = section.lines().take_while(|line| !line.is_empty());
    let mut listed: Vec<&str> = listed.filter_map(|line| line.split_whitespace().next()).collect();
    let mut known = COMMANDS.to_vec();
    known.push("help");
    known.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, known);
}

#[test]
fn help_has_colours_only_on_a_terminal() {
    let world = World::new();
    assert!(!text(&world.run("run --help")).contains('\x1b'));
}

#[test]
fn completions_and_manual_have_every_subcommand() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = world.run(&format!("completions {shell}"));
        assert_ended(&script, 0, "");
        assert!(COMMANDS.iter().all(|command| text(&script).contains(command)), "{shell}");
        assert!(text(&script).contains("if-available"), "{shell}");
    }
    let page = world.run("man");
    assert!(text(&page).contains(".TH navlocks"));
    assert!(text(&page).contains("EXIT STATUS"), "{}", text(&page));
    let page = world.run("man run");
    assert!(text(&page).contains(".TH navlocks\\-run") || text(&page).contains(".TH navlocks-run"));
    assert!(text(&page).contains("grace"));
    assert_ended(&world.run("man frobnicate"), 64, "there is no command 'frobnicate'");
}
