//! The shell blocks of all pages: those with the fence `sh run` run here, and the commands of the
//! others have options that exist. The stage demo of the test command runs those of the README.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{World, assert_ended, finish, program, text};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns all pages, with their paths from the root.
fn pages() -> Vec<(String, String)> {
    let mut git = Command::new("git");
    git.args(["ls-files", "*.md"]).current_dir(root());
    let listed = finish(git);
    assert_ended(&listed, 0, "");
    let read = |path: &str| Some((path.to_owned(), fs::read_to_string(root().join(path)).ok()?));
    text(&listed).lines().filter_map(read).collect()
}

/// Returns the shell blocks of a page, and whether they are to be run.
fn blocks(page: &str) -> Vec<(bool, String)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(fence) = lines.by_ref().find(|line| line.starts_with("```")) {
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        if fence == "```sh" || fence == "```sh run" {
            blocks.push((fence == "```sh run", block.join("\n")));
        }
    }
    blocks
}

#[test]
fn marked_blocks_of_pages_run() {
    let world = World::new();
    let folder = program().parent().expect("it is in a folder");
    let mut count = 0;
    for (path, page) in pages().into_iter().filter(|(path, _)| path != "README.md") {
        for (_, script) in blocks(&page).into_iter().filter(|(run, _)| *run) {
            fs::create_dir_all(world.file(&path)).unwrap();
            let mut shell = Command::new("sh");
            world.settle(&mut shell);
            let script = format!("PATH=$1:$PATH\n{script}");
            shell.args(["-ec", &script, "sh"]).arg(folder).current_dir(world.file(&path));
            assert_ended(&finish(shell), 0, "");
            count += 1;
        }
    }
    assert!(count > 0, "no page has a block to run");
}

#[test]
fn commands_of_pages_have_options_that_exist() {
    let world = World::new();
    let mut helps = BTreeMap::new();
    for (path, page) in pages() {
        for (_, block) in blocks(&page) {
            let lines = block.replace("\\\n", " ");
            let commands = lines.lines().filter_map(|line| line.strip_prefix("navlocks "));
            for command in commands {
                let command = command.split(" # ").next().unwrap_or_default();
                let own = command.split(" -- ").next().unwrap_or_default();
                let mut words = own.split_whitespace();
                let Some(name) = words.next().filter(|name| !name.starts_with('-')) else {
                    continue;
                };
                let help = helps.entry(name.to_owned()).or_insert_with(|| {
                    let help = world.run(&format!("{name} --help"));
                    assert_ended(&help, 0, "");
                    text(&help).to_owned()
                });
                for option in words.filter(|word| word.starts_with("--")) {
                    let option = option.split('=').next().unwrap_or(option);
                    let is_there = help.split([' ', ',', '\n']).any(|word| word == option);
                    assert!(is_there, "{path}: navlocks {name} has no {option}");
                }
            }
        }
    }
    assert!(helps.len() > 3, "{helps:?}");
}
