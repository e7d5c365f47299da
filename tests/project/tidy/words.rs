//! Words: comments have at most 100 columns, sentences have subjects, and only documents of this
//! repository are cited.

use crate::files::{self, File};

/// The most columns of a comment, and of a line of prose.
const COLUMNS_MAX: usize = 100;

/// No subjects: the reader has to guess which client, request or task is meant.
const NO_SUBJECTS: [&str; 7] = ["Who", "Whoever", "Whose", "What", "Nobody", "Somebody", "Anybody"];

/// Words that leave open which client, request or task is meant, wherever they stand.
const VAGUE: [&str; 4] = ["nobody", "somebody", "whom", "whoever"];

#[test]
fn comments_and_prose_follow_the_rules() {
    let mut all = files::below(".");
    let pages: Vec<String> = all.iter().map(|file| file.path.clone()).collect();
    // Written by a tool.
    all.retain(|file| file.path != "docs/proofs.md");
    let mut found = Vec::new();
    for file in &all {
        let lines = prose(file);
        found.extend(wide_lines(file, &lines));
        found.extend(sentences_without_subject(file, &lines));
        found.extend(vague_words(file, &lines));
        found.extend(private_references(file, &lines, &pages));
    }
    super::assert_clean(&found);
}

/// A line of a comment or of a page: its 1-based number, its width, and its text.
struct Prose<'a> {
    number: usize,
    columns: usize,
    text: &'a str,
}

/// Marks of comments in Rust and JavaScript.
const SLASHES: &[&str] = &["//!", "///", "//", "/**", "* "];

/// The mark of comments in scripts and settings.
const HASH: &[&str] = &["# "];

/// Returns the lines of prose of a file: comments of code, scripts and settings, text of pages.
/// Examples between fences, headings and images are no prose; a table has no lines to wrap.
fn prose(file: &File) -> Vec<Prose<'_>> {
    let extension = file.path.rsplit(['.', '/']).next().unwrap_or_default();
    let is_script = file.text.starts_with("#!") && !file.text.starts_with("#![");
    let marks = match extension {
        "md" => &[""],
        "rs" | "js" | "ts" | "mjs" | "cjs" => SLASHES,
        "toml" | "yml" | "service" | "socket" | "sysusers" => HASH,
        _ if is_script => HASH,
        _ => return Vec::new(),
    };
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in file.text.lines().enumerate() {
        let comment = line.trim_start();
        let Some(text) = marks.iter().find_map(|mark| comment.strip_prefix(mark)) else {
            fenced = false;
            continue;
        };
        let text = text.trim();
        if text.starts_with("```") {
            fenced = !fenced;
        } else if !fenced && !text.starts_with(['|', '#']) && !text.starts_with("![") {
            found.push(Prose { number: index + 1, columns: line.chars().count(), text });
        }
    }
    found
}

fn wide_lines(file: &File, lines: &[Prose<'_>]) -> Vec<String> {
    let wide = lines.iter().filter(|line| line.columns > COLUMNS_MAX);
    wide.filter(|line| !line.text.contains("https://"))
        .map(|line| format!("{}:{}: {} columns", file.path, line.number, line.columns))
        .collect()
}

/// Sentences that begin with a word of [`NO_SUBJECTS`]. A question may.
fn sentences_without_subject(file: &File, lines: &[Prose<'_>]) -> Vec<String> {
    let mut found = Vec::new();
    let mut before = ("", 0);
    for line in lines {
        let text = line.text.trim_start_matches(['-', '*', ' ']);
        let continues = before.1 + 1 == line.number
            && !before.0.is_empty()
            && !before.0.ends_with(['.', '!', '?', ':'])
            && !line.text.starts_with(['-', '*']);
        for sentence in text.split(". ").skip(usize::from(continues)) {
            let word = sentence.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            if NO_SUBJECTS.contains(&word) && !sentence.ends_with('?') {
                found.push(format!("{}:{}: begins with {word}", file.path, line.number));
            }
        }
        before = (line.text, line.number);
    }
    found
}

/// Finds words of [`VAGUE`]. The rule itself has them in italics.
fn vague_words(file: &File, lines: &[Prose<'_>]) -> Vec<String> {
    let mut found = Vec::new();
    for line in lines {
        for word in line.text.split_whitespace() {
            let word =
                word.trim_matches(|c: char| c.is_ascii_punctuation() && c != '*' && c != '`');
            let word = word.trim_end_matches("'s").to_lowercase();
            if VAGUE.contains(&word.as_str()) {
                found.push(format!("{}:{}: says {word}", file.path, line.number));
            }
        }
    }
    found
}

/// References to documents that are not in the repository: pages that do not exist, and numbers of
/// sources or decisions that only their authors know.
fn private_references(file: &File, lines: &[Prose<'_>], pages: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for line in lines {
        let words = line.text.split(|c: char| c.is_whitespace() || "`()[],;\"'".contains(c));
        let mut before = "";
        for word in words {
            let number = word.starts_with(|c: char| c.is_ascii_digit());
            let numbered = ["seed", "seeds", "decision", "decisions"];
            let private = number && numbered.contains(&before.to_lowercase().as_str());
            let page = word.trim_end_matches(['.', ':']);
            let page =
                page.strip_suffix(".md").is_some_and(|name| !name.is_empty()).then_some(page);
            let missing = page.is_some_and(|page| {
                let name = page.trim_start_matches("../").split('#').next().unwrap_or(page);
                !page.contains("://") && !pages.iter().any(|known| known.ends_with(name))
            });
            if private || missing {
                let reference = if private { format!("{before} {word}") } else { word.to_owned() };
                found.push(format!("{}:{}: cites {reference}", file.path, line.number));
            }
            before = word;
        }
    }
    found
}

/// Each check on a snippet that has exactly the one fault.
mod finds {
    use super::*;

    fn check(text: &str, check: fn(&File, &[Prose<'_>]) -> Vec<String>) -> Vec<String> {
        let file = File::new("bad.rs", text);
        check(&file, &prose(&file))
    }

    #[test]
    fn wide_comment_is_found_and_wide_code_is_not() {
        let wide = "x".repeat(COLUMNS_MAX);
        let text = format!("{wide}y\n// {wide}\n//! | {wide} |\n/// ```\n/// {wide}\n/// ```\n");
        assert_eq!(check(&text, wide_lines), ["bad.rs:2: 103 columns"]);
    }

    #[test]
    fn wide_comments_of_scripts_and_settings_are_found() {
        let wide = format!("x\n# {}\n", "y".repeat(COLUMNS_MAX));
        for (path, text) in
            [("run", format!("#!/bin/sh\n{wide}")), ("a.toml", wide.clone()), ("b.txt", wide)]
        {
            let file = File::new(path, text);
            let found = wide_lines(&file, &prose(&file)).len();
            assert_eq!(found, usize::from(path != "b.txt"), "{path}");
        }
    }

    #[test]
    fn sentence_without_subject_is_found_wherever_it_begins() {
        let text =
            "// Who waits.\n/// It waits. Nobody\n//! - What is\n\n// See\n// What we see.\n";
        let expected = ["1: begins with Who", "2: begins with Nobody", "3: begins with What"];
        assert_eq!(
            check(text, sentences_without_subject),
            expected.map(|end| format!("bad.rs:{end}"))
        );
    }

    #[test]
    fn vague_word_is_found_inside_a_sentence() {
        let text =
            "// A lock that nobody, or\n/// somebody's client has. Not `nobody`.\nlet whom = 1;\n";
        let expected = ["1: says nobody", "2: says somebody"];
        assert_eq!(check(text, vague_words), expected.map(|end| format!("bad.rs:{end}")));
    }

    #[test]
    fn private_reference_is_found_and_a_page_of_the_repository_is_not() {
        let text = concat!("// As de", "cision 4 and docs/a.md say, and se", "ed 000, GONE.md.\n");
        let file = File::new("bad.rs", text);
        let pages = ["docs/a.md".to_owned()];
        let found = private_references(&file, &prose(&file), &pages);
        let expected = [concat!("de", "cision 4"), concat!("se", "ed 000"), "GONE.md."];
        assert_eq!(found, expected.map(|reference| format!("bad.rs:1: cites {reference}")));
    }
}
