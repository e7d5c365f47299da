//! JavaScript runtimes that run a case and print its cost.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::harness::Unit;
use servers as server;

/// A program that gets a case and prints a number.
pub(in crate::suites) struct Runtime {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
}

/// Returns flags for a small nursery, so that garbage is not counted as memory.
fn v8_flags(unit: Unit) -> &'static [&'static str] {
    match unit {
        Unit::Bytes => &["--expose-gc", "--max-semi-space-size=1"],
        Unit::Nanoseconds | Unit::Rate | Unit::Count => &[],
    }
}

fn js() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../js")
}

fn peer(name: &str) -> PathBuf {
    js().join("peers/node_modules/.bin").join(name)
}

/// Checks that the package is built and the runtimes exist; returns the reason if not.
pub(in crate::suites) fn npm_package() -> Result<(), String> {
    let steps: [(PathBuf, &[&str]); 3] = [
        (js().join("node_modules"), &["ci"]),
        (js().join("peers/node_modules"), &["install", "--no-package-lock", "--prefix", "peers"]),
        (js().join("native/navlocks.node"), &["run", "build"]),
    ];
    for (made, words) in steps {
        if made.exists() {
            continue;
        }
        let step = format!("npm {}", words.join(" "));
        if !server::may_install() {
            return Err(format!("it is not built; please run in js: {step}"));
        }
        eprintln!("bench: {step}");
        let mut npm = Command::new("npm");
        npm.args(words).args(["--no-audit", "--no-fund"]).current_dir(js());
        server::output(npm.stdin(Stdio::null())).map_err(|error| format!("{step}: {error}"))?;
    }
    Ok(())
}

/// Returns the versions of the runtimes.
pub(super) fn versions() -> String {
    let version = |name| {
        let said = server::output(Command::new(peer(name)).arg("--version"));
        said.map(|text| text.lines().next().unwrap_or_default().to_string())
    };
    let said = ["node", "deno"].map(|name| version(name).unwrap_or_else(|error| error));
    format!("runtimes: Node {}, {}", said[0], said[1])
}

/// Returns our side and the browser's own, in a page of Chromium.
pub(super) fn in_chromium() -> Result<[Runtime; 2], String> {
    with_browser("bench/chromium.js", ["navlocks", "native"])
}

/// Returns a service with and without a dashboard that is open in a page of Chromium.
pub(in crate::suites) fn dashboards() -> Result<[Runtime; 2], String> {
    with_browser("bench/dashboard.js", ["with", "alone"])
}

/// Returns a program of the package that opens a browser, for each side.
fn with_browser(program: &str, sides: [&str; 2]) -> Result<[Runtime; 2], String> {
    let chromium = server::program("chromium", "chromium")?;
    let command = server::navlocks_command()?;
    Ok(sides.map(|side| Runtime {
        program: peer("node"),
        arguments: vec![js().join(program).into(), side.into()],
        environment: vec![
            ("NAVLOCKS_CHROMIUM", chromium.clone().into()),
            ("NAVLOCKS_BIN", command.clone().into()),
        ],
    }))
}

impl Runtime {
    pub(super) fn node(side: &str, unit: Unit) -> Self {
        let mut arguments: Vec<OsString> = v8_flags(unit).iter().map(OsString::from).collect();
        arguments.extend([js().join("bench/child.js").into(), side.into()]);
        Self { program: peer("node"), arguments, environment: Vec::new() }
    }

    pub(super) fn deno(unit: Unit) -> Self {
        let mut arguments: Vec<OsString> =
            ["run", "--quiet", "--allow-all"].map(OsString::from).into();
        let flags = v8_flags(unit).join(",");
        if !flags.is_empty() {
            arguments.push(format!("--v8-flags={flags}").into());
        }
        arguments.extend([js().join("bench/child.js").into(), "native".into()]);
        Self { program: peer("deno"), arguments, environment: Vec::new() }
    }

    /// Runs once and returns the printed number.
    pub(in crate::suites) fn measure(&self, words: &[&str]) -> f64 {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(words).envs(self.environment.iter().cloned());
        let said = server::output(command.stdin(Stdio::null()))
            .unwrap_or_else(|error| panic!("{}: {words:?}: {error}", self.program.display()));
        let number = said.trim().parse();
        number.unwrap_or_else(|_| panic!("{words:?} printed no number: {said}"))
    }
}
