//! The front documents do what they show: marked commands run, and every snippet names its
//! language.
//!
//! Rust snippets are compiled and run as doctests of this package's library
//! (`tests/src/readme.rs`). A shell block with the fence `sh run` is run here as one script, at the
//! root of the project, with its own lock service.

use std::env;
use std::path::Path;
use std::process::Command;

use crate::files;

const DOCUMENTS: [&str; 2] = ["README.md", "ARCHITECTURE.md"];

/// A fenced block: its info string, its first line, its text.
#[derive(Debug, PartialEq)]
struct Block<'a> {
    info: &'a str,
    line: usize,
    lines: Vec<&'a str>,
}

fn blocks(markdown: &str) -> Vec<Block<'_>> {
    let mut found: Vec<Block<'_>> = Vec::new();
    let mut open = false;
    for (index, line) in markdown.lines().enumerate() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            if !open {
                found.push(Block { info: info.trim(), line: index + 1, lines: Vec::new() });
            }
            open = !open;
        } else if open && let Some(block) = found.last_mut() {
            block.lines.push(line);
        }
    }
    found
}

/// Returns the commands of a block to be run; a leading `$ ` is the prompt.
fn commands<'a>(block: &Block<'a>) -> Vec<&'a str> {
    if block.info != "sh run" {
        return Vec::new();
    }
    let lines = block.lines.iter().map(|line| line.trim());
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.strip_prefix("$ ").unwrap_or(line))
        .collect()
}

#[test]
#[ignore = "it builds the command, so it is the stage demo of the test command"]
fn marked_commands_run() {
    for document in DOCUMENTS {
        let file = files::read(document).unwrap_or_else(|| panic!("{document} is missing"));
        for block in blocks(&file.text) {
            let commands = commands(&block);
            let line = block.line;
            let tests = commands.iter().any(|command| command.starts_with("./test"));
            assert!(!tests, "{document}:{line}: the test command cannot run itself");
            run(&commands.join("\n"));
        }
    }
}

/// Runs a script with the cargo of this test first on the path, so that nothing is built twice.
fn run(script: &str) {
    let place = tempfile::tempdir().unwrap();
    let cargo = env::var_os("CARGO").unwrap();
    let mut path = vec![Path::new(&cargo).parent().unwrap().to_path_buf()];
    path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    let mut shell = Command::new("sh");
    shell
        .args(["-ec", script])
        .current_dir(files::root())
        .env("NAVLOCKS_DIR", place.path().join("own"))
        .env("PATH", env::join_paths(path).unwrap());
    // Removed because the build script of `ring` watches them: with them half of the service is
    // built again.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            shell.env_remove(&*name);
        }
    }
    let output = shell.output().unwrap();
    assert!(
        output.status.success(),
        "`{script}` gave {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A fence without a language is Rust for doctests, and nothing for a reader.
#[test]
fn every_snippet_names_its_language() {
    for document in DOCUMENTS {
        let file = files::read(document).unwrap_or_else(|| panic!("{document} is missing"));
        for block in blocks(&file.text) {
            assert!(
                !block.info.is_empty(),
                "{document}:{}: a fence without a language",
                block.line
            );
        }
    }
}

#[test]
fn blocks_and_commands_are_found() {
    let text = "a\n```sh run\n# why\n$ one\ntwo --x\n\n```\n```sh\nthree\n```\n```\nx\n```\n";
    let found = blocks(text);
    let infos: Vec<(&str, usize)> = found.iter().map(|b| (b.info, b.line)).collect();
    assert_eq!(infos, [("sh run", 2), ("sh", 8), ("", 11)]);
    assert_eq!(commands(&found[0]), ["one", "two --x"]);
    assert!(commands(&found[1]).is_empty());
}

#[test]
#[should_panic(expected = "`exit 3` gave")]
fn failing_command_is_found() {
    run("exit 3");
}
