//! The published packages: their manifests, and that the crates can be packed.

use std::process::Command;

use crate::files;

/// The crates in the order in which they are published.
pub(crate) const CRATES: [&str; 10] = [
    "navlocks-core",
    "navlocks-threads",
    "navlocks-capi",
    "navlocks-wire",
    "navlocks-client",
    "navlocks",
    "navlocks-server",
    "navlocks-dashboard",
    "navlocks-etcd",
    "navlocks-cli",
];

#[test]
fn published_crates_have_a_readme_and_a_repository() {
    for name in CRATES {
        let text = |file: &str| {
            let path = format!("crates/{name}/{file}");
            files::read(&path).unwrap_or_else(|| panic!("{path} is missing")).text
        };
        assert!(text("README.md").starts_with(&format!("# {name}\n")), "{name}");
        let manifest = text("Cargo.toml");
        for member in
            ["description", "license", "repository", "documentation", "keywords", "categories"]
        {
            let has = |line: &str| line.starts_with(member);
            assert!(manifest.lines().any(has), "{name} has no {member}");
        }
    }
}

#[test]
fn published_crates_can_be_packed_in_order() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["package", "--offline", "--no-verify", "--allow-dirty", "--quiet"]);
    // A folder of its own, because cargo locks the folder in which tests are built.
    let target = std::env::temp_dir().join(format!("navlocks-packages-{}", std::process::id()));
    cargo.arg("--target-dir").arg(&target).current_dir(files::root());
    let packed = CRATES.iter().fold(&mut cargo, |cargo, name| cargo.args(["--package", name]));
    let packed = packed.output().expect("cargo runs");
    let said = String::from_utf8_lossy(&packed.stderr);
    assert!(packed.status.success(), "{said}");
    assert!(!said.contains("warning"), "{said}");
    for name in CRATES {
        let version = env!("CARGO_PKG_VERSION");
        assert!(target.join(format!("package/{name}-{version}.crate")).exists(), "{name}");
    }
    std::fs::remove_dir_all(target).expect("the folder goes");
}

/// npm rewrites a lock file that does not describe its package.
#[test]
fn npm_lock_file_describes_the_package() {
    let json = |path: &str| -> serde_json::Value {
        let file = files::read(path).unwrap_or_else(|| panic!("{path} is missing"));
        serde_json::from_str(&file.text).expect("it is JSON")
    };
    let (package, lock) = (json("js/package.json"), json("js/package-lock.json"));
    for key in ["name", "version", "license", "bin", "engines", "dependencies", "devDependencies"] {
        assert_eq!(lock["packages"][""][key], package[key], "{key}");
    }
}
