//! The engine needs no operating system: it builds into a program without one, and no dependency
//! brings one.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::files;
use crate::source::shipped_code;

/// The only dependencies of the engine, with their features: `name feature,feature`.
const DEPENDENCIES: [&str; 2] = ["hashbrown ", "navlocks-core "];

fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap());
    cargo.env("CARGO_TERM_COLOR", "never");
    cargo
}

#[test]
fn engine_has_only_the_chosen_dependencies() {
    let output = cargo()
        .args(["tree", "--locked", "--package", "navlocks-core"])
        .args(["--edges", "normal,build", "--target", "all"])
        .args(["--prefix", "none", "--format", "{p} {f}"])
        .current_dir(files::root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let stdout = String::from_utf8(output.stdout).unwrap();
    let mut found: Vec<String> = stdout.lines().map(name_and_features).collect();
    found.sort();
    assert_eq!(found, DEPENDENCIES);
}

/// Returns `hashbrown v0.17.1 a,b` without the version; a path in parentheses may follow it.
fn name_and_features(line: &str) -> String {
    let name = line.split(' ').next().unwrap();
    let last = line.rsplit(' ').next().unwrap();
    format!("{name} {last}")
}

#[test]
fn engine_declares_no_std() {
    let sources = files::rust_below("crates/navlocks-core/src");
    let lib = sources.iter().find(|file| file.path.ends_with("src/lib.rs"));
    let code = shipped_code(&lib.unwrap().text);
    assert!(code.iter().any(|(_, line)| *line == "#![no_std]"));
    for file in &sources {
        for (number, line) in shipped_code(&file.text) {
            assert!(!names_std(line), "{}:{number}: {line}", file.path);
        }
    }
}

fn names_std(line: &str) -> bool {
    let mut before = line.match_indices("std::").map(|(at, _)| &line[..at]);
    line.contains("extern crate std")
        || before.any(|text| !text.ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

#[test]
fn std_in_source_is_found() {
    assert!(names_std("use std::fmt;") && names_std("    ::std::mem::swap(a, b)"));
    assert!(names_std("extern crate std;"));
    assert!(!names_std("use core::fmt;") && !names_std("use no_std::x;"));
}

/// A library with its own allocator and panic handler links only if no part of it brings std, which
/// has both.
#[test]
fn program_without_std_embeds_the_engine() {
    let output = build("embedder", "");
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn program_with_std_fails_to_build() {
    let output = build("embedder-with-std", "extern crate std;\n");
    let said = said(&output);
    assert!(!output.status.success(), "std went unnoticed");
    assert!(said.contains("panic_impl"), "{said}");
}

/// Builds `embedder.rs`, with `more` below it, as a package of its own, without network.
fn build(name: &str, more: &str) -> Output {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
         [lib]\npath = \"lib.rs\"\ncrate-type = [\"staticlib\"]\n\
         [dependencies]\nnavlocks-core = {{ path = {:?} }}\n\
         [profile.dev]\npanic = \"abort\"\n\
         [workspace]\n",
        files::root().join("crates/navlocks-core")
    );
    write(&folder, "Cargo.toml", &manifest);
    write(&folder, "lib.rs", &format!("{}{more}", include_str!("embedder.rs")));
    // The project's own versions; cargo drops the ones that this package does not need.
    write(&folder, "Cargo.lock", &files::read("Cargo.lock").unwrap().text);
    cargo()
        .args(["build", "--offline", "--quiet"])
        .arg("--target-dir")
        .arg(folder.join("target"))
        .current_dir(&folder)
        .output()
        .unwrap()
}

fn write(folder: &Path, name: &str, text: &str) {
    fs::create_dir_all(folder).unwrap();
    let path: PathBuf = folder.join(name);
    fs::write(path, text).unwrap();
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
