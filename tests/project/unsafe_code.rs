//! The list of files with unsafe code.

use crate::files;

/// Returns true for a line that needs the compiler's permission.
fn is_unsafe(line: &str) -> bool {
    let words = ["unsafe {", "unsafe fn", "unsafe extern", "unsafe impl", "unsafe("];
    words.iter().any(|word| line.contains(word))
}

#[test]
fn files_with_unsafe_code_are_listed_with_a_reason() {
    let folders = ["crates", "js/native", "bench", "tests", "fuzz"];
    let sources = folders.into_iter().flat_map(files::rust_below);
    let this = "tests/project/unsafe_code.rs";
    let mut found: Vec<String> = sources
        .filter(|file| file.path != this && file.text.lines().any(is_unsafe))
        .map(|file| file.path)
        .collect();
    found.sort();
    let page = files::read("docs/unsafe.md").expect("the page is there").text;
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let mut listed: Vec<String> = rows.map(|(path, _)| path.to_owned()).collect();
    listed.sort();
    assert_eq!(found, listed, "docs/unsafe.md");
}
