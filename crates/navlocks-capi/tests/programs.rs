//! Programs in C and C++ against the header and the static library, under AddressSanitizer.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the static library, which cargo builds for these tests.
fn library() -> PathBuf {
    let program = env::current_exe().expect("a test has a program");
    let folder = program.parent().expect("it is in a folder");
    folder.join("libnavlocks_capi.a")
}

/// Builds a program and runs it; returns its output.
fn run(compiler: &str, standard: &str, source: &str) -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(source.replace('.', "-"));
    let mut build = Command::new(compiler);
    build.args([standard, "-Wall", "-Wextra", "-Werror", "-g", "-fsanitize=address,undefined"]);
    build.arg("-I").arg(here.join("include")).arg(here.join("tests").join(source));
    build.arg(library()).args(["-lpthread", "-ldl", "-lm", "-o"]).arg(&program);
    let built = build.output().unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let ran = Command::new(&program).output().expect("the program starts");
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    said
}

#[test]
fn c_program_requests_queries_and_cancels() {
    assert_eq!(run("cc", "-std=c11", "locks.c"), "ok\n");
}

#[test]
fn cpp_guard_releases_at_the_end_of_its_scope() {
    assert_eq!(run("c++", "-std=c++17", "raii.cpp"), "ok\n");
}
