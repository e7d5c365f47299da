//! The crates and the directions of their dependencies, as ARCHITECTURE.md draws them.

use std::env;
use std::process::Command;

use crate::files;
use crate::source::shipped_code;

/// The most crates that a program gets with the default `navlocks`.
const DEFAULT_DEPENDENCIES_MAX: usize = 10;

/// Each crate with its dependencies in this project, lowest first. All arrows point up this list.
const ARROWS: [(&str, &[&str]); 11] = [
    ("crates/navlocks-core", &[]),
    ("crates/navlocks-threads", &["navlocks-core"]),
    ("crates/navlocks-wire", &["navlocks-core"]),
    ("crates/navlocks-client", &["navlocks-core", "navlocks-wire"]),
    ("crates/navlocks", &["navlocks-client", "navlocks-core", "navlocks-wire"]),
    ("crates/navlocks-server", &["navlocks-core", "navlocks-wire"]),
    ("crates/navlocks-dashboard", &["navlocks-core", "navlocks-server", "navlocks-wire"]),
    ("crates/navlocks-etcd", &["navlocks-server"]),
    (
        "crates/navlocks-cli",
        &["navlocks", "navlocks-dashboard", "navlocks-etcd", "navlocks-server", "navlocks-wire"],
    ),
    ("crates/navlocks-capi", &["navlocks-core", "navlocks-threads"]),
    ("js/native", &["navlocks-core", "navlocks-threads"]),
];

#[test]
fn dependencies_of_crates_point_one_way() {
    for (folder, expected) in ARROWS {
        let manifest = files::read(&format!("{folder}/Cargo.toml")).unwrap();
        let ours: Vec<&str> = dependencies(&manifest.text)
            .into_iter()
            .filter(|name| name.split('-').next() == Some("navlocks"))
            .collect();
        assert_eq!(ours, expected, "{folder}");
    }
    let crates = files::below("crates")
        .into_iter()
        .filter(|file| file.path.ends_with("/Cargo.toml") && file.path.matches('/').count() == 2);
    for manifest in crates {
        let folder = manifest.path.strip_suffix("/Cargo.toml").unwrap();
        assert!(ARROWS.iter().any(|(known, _)| *known == folder), "{folder} is not in the list");
    }
}

#[test]
fn client_and_engine_leave_serialization_to_the_wire_crate() {
    for folder in ["crates/navlocks-core", "crates/navlocks-client", "crates/navlocks"] {
        let manifest = files::read(&format!("{folder}/Cargo.toml")).unwrap();
        let serde = |name: &&str| name.starts_with("serde");
        assert_eq!(dependencies(&manifest.text).into_iter().find(serde), None, "{folder}");
    }
}

#[test]
fn default_async_crate_brings_few_crates_and_no_network() {
    let found = tree("navlocks", &[]);
    assert!(found.contains(&"navlocks-core".to_owned()), "{found:?}");
    assert!(found.len() <= DEFAULT_DEPENDENCIES_MAX, "{} crates: {found:?}", found.len());
    for network in ["tokio", "rustls", "tokio-tungstenite", "serde", "navlocks-wire"] {
        assert!(!found.contains(&network.to_owned()), "{network}: {found:?}");
    }
}

#[test]
fn network_of_the_async_crate_is_noticed() {
    let found = tree("navlocks", &["--features", "service"]);
    assert!(found.contains(&"tokio".to_owned()) && found.len() > DEFAULT_DEPENDENCIES_MAX);
}

/// The machine of a client has no runtime, no socket and no clock: its dependencies are the engine,
/// the messages, and the crates that write these.
#[test]
fn client_machine_brings_only_the_messages() {
    let found = tree("navlocks-client", &[]);
    assert!(found.contains(&"navlocks-wire".to_owned()), "{found:?}");
    assert_eq!(found, tree_with_itself("navlocks-wire", &[]));
}

/// The clocks of std are no crates, so its source must not name them.
#[test]
fn client_machine_reads_no_clock_and_no_randomness() {
    let worldly =
        ["Instant", "SystemTime", "RandomState", "std::net::Tcp", "std::io", "std::thread"];
    for file in files::rust_below("crates/navlocks-client/src") {
        for (number, line) in shipped_code(&file.text) {
            let found = worldly.iter().find(|word| line.contains(**word));
            assert_eq!(found, None, "{}:{number}: {line}", file.path);
        }
    }
}

/// Returns all crates that a crate brings on any platform, without itself.
fn tree(package: &str, features: &[&str]) -> Vec<String> {
    let all = tree_with_itself(package, features);
    all.into_iter().filter(|name| name != package).collect()
}

fn tree_with_itself(package: &str, features: &[&str]) -> Vec<String> {
    let output = Command::new(env::var_os("CARGO").unwrap())
        .args(["tree", "--locked", "--package", package, "--edges", "normal"])
        .args(["--prefix", "none", "--format", "{p}"])
        .args(features)
        .env("CARGO_TERM_COLOR", "never")
        .current_dir(files::root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stdout = String::from_utf8(output.stdout).unwrap();
    let names = stdout.lines().filter_map(|line| line.split(' ').next());
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the names below `[dependencies]` of a manifest, in order.
fn dependencies(manifest: &str) -> Vec<&str> {
    let lines = manifest.lines().map(str::trim).skip_while(|line| *line != "[dependencies]");
    let section = lines.skip(1).take_while(|line| !line.starts_with('['));
    let mut names: Vec<&str> = section
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(key, _)| key.trim().split('.').next().unwrap())
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn dependencies_of_a_manifest_are_found() {
    let manifest = "[lib]\nname = \"x\"\n[dependencies]\n# c = 1\nb.workspace = true\na = \"1\"\n[dev-dependencies]\nd = \"1\"\n";
    assert_eq!(dependencies(manifest), ["a", "b"]);
}
