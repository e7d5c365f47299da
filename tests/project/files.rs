//! The project's text files, named by their path from its root.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders that tools write. `.git` is a folder, and a file in a worktree.
const MADE: [&str; 8] =
    ["target", "node_modules", ".git", "artifacts", "coverage", "corpus", "cjs", "packages"];

/// One file: its path and its text.
#[derive(Clone)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into() }
    }
}

/// Returns the root of the project.
pub(crate) fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap().to_path_buf()
}

/// Reads one file by its path from the root, if it exists.
pub(crate) fn read(path: &str) -> Option<File> {
    let text = fs::read_to_string(root().join(path)).ok()?;
    Some(File::new(path, text))
}

/// Returns every Rust file below `folder`, sorted by path.
pub(crate) fn rust_below(folder: &str) -> Vec<File> {
    below(folder).into_iter().filter(|file| file.path.ends_with(".rs")).collect()
}

/// Returns every text file below `folder`, sorted by path. Files that are not UTF-8 are no text.
pub(crate) fn below(folder: &str) -> Vec<File> {
    let mut paths = Vec::new();
    walk(&root().join(folder), &mut paths);
    paths.sort();
    paths
        .iter()
        .filter_map(|path| {
            let text = fs::read_to_string(path).ok()?;
            let path = path.strip_prefix(root()).unwrap();
            Some(File::new(path.to_str().unwrap(), text))
        })
        .collect()
}

/// Returns every Rust file that is compiled into some target of the workspace. A file without a
/// module is not.
pub(crate) fn compiled() -> Vec<File> {
    let packages = ["crates", "tests", "bench"].map(below).into_iter().flatten();
    let mut files: BTreeMap<String, File> =
        packages.map(|file| (file.path.clone(), file)).collect();
    let manifests = files.values().filter(|file| file.path.ends_with("/Cargo.toml"));
    let roots: Vec<String> =
        manifests.flat_map(|manifest| target_roots(manifest, files.keys())).collect();
    let mut paths: Vec<(String, bool)> = roots.into_iter().map(|root| (root, true)).collect();
    let mut compiled = Vec::new();
    while let Some((path, is_root)) = paths.pop() {
        // Taken out, so that a file that two targets share counts once.
        if let Some(file) = files.remove(&path) {
            paths.extend(submodules(&file, is_root).into_iter().map(|path| (path, false)));
            compiled.push(file);
        }
    }
    compiled
}

/// Returns the root files of a package's targets: those of its manifest and those that cargo finds
/// by their place.
fn target_roots<'a>(manifest: &File, paths: impl Iterator<Item = &'a String>) -> Vec<String> {
    let folder = manifest.path.strip_suffix("Cargo.toml").unwrap();
    let named = manifest.text.lines().filter_map(|line| {
        let path = line.strip_prefix("path = \"")?.strip_suffix('"')?;
        Some(format!("{folder}{path}"))
    });
    let placed = paths.filter(|path| {
        let place = path.strip_prefix(folder).unwrap_or_default();
        let found_alone = ["tests/", "examples/", "src/bin/", "benches/"]
            .iter()
            .filter_map(|known| place.strip_prefix(known))
            .any(|file| file.strip_suffix("/main.rs").unwrap_or(file).split('/').count() == 1);
        (found_alone && place.ends_with(".rs")) || place == "src/lib.rs" || place == "src/main.rs"
    });
    named.chain(placed.cloned()).collect()
}

/// Returns where the modules of a file may be: at the `#[path]` above; else beside the root of a
/// target or a `mod.rs`; else in a folder with the name of the file.
fn submodules(file: &File, is_root: bool) -> Vec<String> {
    let (folder, name) = file.path.rsplit_once('/').unwrap();
    let beside = is_root || name == "mod.rs";
    let inner = if beside { folder } else { file.path.strip_suffix(".rs").unwrap() };
    let mut found = Vec::new();
    let mut line_above = "";
    for line in file.text.lines().map(str::trim) {
        let declared = line.strip_suffix(';').and_then(|line| line.rsplit_once("mod "));
        if let Some((before, name)) = declared
            && (before.is_empty() || before.starts_with("pub"))
        {
            match line_above.strip_prefix("#[path = \"").and_then(|path| path.strip_suffix("\"]")) {
                Some(path) => found.push(format!("{folder}/{path}")),
                None => {
                    found.extend([format!("{inner}/{name}.rs"), format!("{inner}/{name}/mod.rs")])
                }
            }
        }
        line_above = line;
    }
    found
}

fn walk(folder: &Path, paths: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("cannot list {}: {error}", folder.display()));
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        if MADE.contains(&name.as_ref()) {
            continue;
        }
        if path.is_dir() {
            walk(&path, paths);
        } else {
            paths.push(path);
        }
    }
}

#[test]
fn targets_and_their_modules_are_found() {
    let manifest = File::new("a/Cargo.toml", "[[test]]\npath = \"b/main.rs\"\n");
    let paths = [
        "a/src/lib.rs",
        "a/src/c.rs",
        "a/tests/d.rs",
        "a/tests/d.txt",
        "a/tests/e/f.rs",
        "g/src/lib.rs",
    ];
    let paths = paths.map(String::from);
    assert_eq!(
        target_roots(&manifest, paths.iter()),
        ["a/b/main.rs", "a/src/lib.rs", "a/tests/d.rs"]
    );
    let root = File::new("a/b/main.rs", "mod h;\n// mod i;\nmod j {\n}\n");
    assert_eq!(submodules(&root, true), ["a/b/h.rs", "a/b/h/mod.rs"]);
    let inner = File::new("a/b/h.rs", "    pub(crate) mod k;\n#[path = \"l/m.rs\"]\nmod n;\n");
    assert_eq!(submodules(&inner, false), ["a/b/h/k.rs", "a/b/h/k/mod.rs", "a/b/l/m.rs"]);
}

#[test]
fn file_without_module_is_not_compiled() {
    let compiled = compiled();
    let has = |path: &str| compiled.iter().any(|file| file.path == path);
    assert!(has("tests/project/files.rs") && has("crates/navlocks-core/src/lib.rs"));
    assert!(!has("tests/project/embedder.rs"));
}
