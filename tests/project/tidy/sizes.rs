//! Sizes: a file is about one noun, and a folder is one room. A longer file is about two.

use std::collections::BTreeMap;

use crate::files::{self, File};

/// The most lines of a source file, and the most files of a folder.
const FILE_LINES_MAX: usize = 450;
const FOLDER_FILES_MAX: usize = 16;

/// Longer files, to be divided. A file that is short enough leaves this list.
const LONG_FILES: [&str; 2] = [
    "crates/navlocks-client/src/route.rs",
    "crates/navlocks-server/src/hub/partitions/partition.rs",
];

/// Fuller folders, to be divided. A folder that is small enough leaves this list.
const FULL_FOLDERS: [&str; 1] = ["crates/navlocks-server/src/hub"];

#[test]
fn files_are_small() {
    assert_exactly(&long_files(&sources()), &LONG_FILES);
}

#[test]
fn folders_are_small() {
    assert_exactly(&full_folders(&sources()), &FULL_FOLDERS);
}

fn sources() -> Vec<File> {
    let mut all = files::below(".");
    all.retain(|file| [".rs", ".js", ".ts"].iter().any(|end| file.path.ends_with(end)));
    all
}

#[track_caller]
fn assert_exactly(found: &BTreeMap<String, usize>, known: &[&str]) {
    let new: Vec<_> = found.iter().filter(|(path, _)| !known.contains(&path.as_str())).collect();
    assert!(new.is_empty(), "too large: {new:?}");
    let over: Vec<_> = known.iter().filter(|path| !found.contains_key(**path)).collect();
    assert!(over.is_empty(), "small enough now, so not in the list any more: {over:?}");
}

fn long_files(sources: &[File]) -> BTreeMap<String, usize> {
    let lines = sources.iter().map(|file| (file.path.clone(), file.text.lines().count()));
    lines.filter(|(_, lines)| *lines > FILE_LINES_MAX).collect()
}

fn full_folders(sources: &[File]) -> BTreeMap<String, usize> {
    let mut folders: BTreeMap<String, usize> = BTreeMap::new();
    for file in sources {
        let (folder, _) = file.path.rsplit_once('/').unwrap_or_default();
        *folders.entry(folder.to_owned()).or_default() += 1;
    }
    folders.retain(|_, count| *count > FOLDER_FILES_MAX);
    folders
}

#[test]
fn long_file_and_full_folder_are_found() {
    let file = |path: &str, lines| File::new(path, "\n".repeat(lines));
    let files = [file("a/b.rs", FILE_LINES_MAX), file("a/c.rs", FILE_LINES_MAX + 1)];
    assert_eq!(long_files(&files), [("a/c.rs".to_owned(), FILE_LINES_MAX + 1)].into());
    let many = |count: usize| (0..count).map(|n| file(&format!("a/{n}.rs"), 1)).collect::<Vec<_>>();
    assert!(full_folders(&many(FOLDER_FILES_MAX)).is_empty());
    assert_eq!(full_folders(&many(FOLDER_FILES_MAX + 1)).len(), 1);
}
