//! A line-based reader of Rust source. It relies on rustfmt: an item ends at the first `}` of its
//! own indentation.

/// A function with the lines above it and inside it.
pub(crate) struct Function<'a> {
    pub(crate) name: &'a str,
    /// 1-based line of the `fn`.
    pub(crate) line: usize,
    /// Doc comments and attributes directly above, first line first.
    pub(crate) above: Vec<&'a str>,
    /// The lines from the `fn` to the end of its body.
    pub(crate) body: Vec<&'a str>,
}

impl Function<'_> {
    pub(crate) fn has_attribute(&self, attribute: &str) -> bool {
        self.above.iter().any(|line| line.trim() == attribute)
    }
}

/// Returns all functions of a file, in order, nested ones included.
pub(crate) fn functions(text: &str) -> Vec<Function<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let above = item_start(&lines, index);
        found.push(Function {
            name,
            line: index + 1,
            above: lines[above..index].to_vec(),
            body: lines[index..=item_end(&lines, index)].to_vec(),
        });
    }
    found
}

/// Returns the lines of shipped code, with their 1-based numbers: no comments, no items under
/// `#[cfg(test)]`.
pub(crate) fn shipped_code(text: &str) -> Vec<(usize, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut code = Vec::new();
    let mut index = 0;
    while index < lines.len() {
        let line = lines[index];
        if line.trim() == "#[cfg(test)]" {
            index = item_end(&lines, index) + 1;
            continue;
        }
        if !line.trim_start().starts_with("//") {
            let statement = line.split(" // ").next().unwrap_or(line);
            code.push((index + 1, statement));
        }
        index += 1;
    }
    code
}

/// Returns the name if the line begins a function, with any words before `fn`.
fn function_name(line: &str) -> Option<&str> {
    let mut words = line.trim_start();
    loop {
        if let Some(rest) = words.strip_prefix("fn ") {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
            return (end > 0).then(|| &rest[..end]);
        }
        let (word, rest) = words.split_once(' ')?;
        let qualifies = word.starts_with("pub(")
            || ["pub", "const", "async", "unsafe", "extern", "\"C\""].contains(&word);
        if !qualifies {
            return None;
        }
        words = rest;
    }
}

/// Returns the index of the first doc comment or attribute directly above `item`. An attribute may
/// span several lines.
fn item_start(lines: &[&str], item: usize) -> usize {
    let mut start = item;
    let mut inside_attribute = false;
    for (index, line) in lines.iter().enumerate().take(item).rev() {
        let line = line.trim();
        if line.starts_with("///") || line.starts_with("#[") {
            start = index;
            inside_attribute = false;
        } else if line == ")]" {
            inside_attribute = true;
        } else if !inside_attribute {
            break;
        }
    }
    start
}

/// Returns the index of the last line of the item, field or statement that begins at `start`.
fn item_end(lines: &[&str], start: usize) -> usize {
    let indent = indentation(lines[start]);
    let mut has_body = false;
    for (index, line) in lines.iter().enumerate().skip(start) {
        let code = line.trim();
        has_body |= code.ends_with('{');
        let complete = !has_body && code.ends_with([';', ',', '}']);
        if indentation(line) == indent && (code.starts_with('}') || complete) {
            return index;
        }
    }
    lines.len() - 1
}

/// Returns the names of the modules that only tests have: `#[cfg(test)] mod name;`.
pub(crate) fn test_modules(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines.windows(2).filter(|pair| pair[0] == "#[cfg(test)]");
    pairs.filter_map(|pair| pair[1].strip_prefix("mod ")?.strip_suffix(';')).collect()
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[test]
fn functions_are_found_with_their_docs_and_bodies() {
    let text = "\
/// One.
#[inline]
pub(crate) fn first(a: u8) -> u8 {
    if a > 0 {
        a
    } else {
        0
    }
}

// fn commented() {}
impl X {
    /// Two.
    #[expect(
        lint,
        reason = \"\"
    )]
    pub const fn second<T>(
        self,
    ) -> T {
        inner
    }
}
fn third();
";
    let found = functions(text);
    let names: Vec<&str> = found.iter().map(|f| f.name).collect();
    assert_eq!(names, ["first", "second", "third"]);
    assert_eq!(found[0].above, ["/// One.", "#[inline]"]);
    assert!(found[0].has_attribute("#[inline]") && !found[1].has_attribute("#[inline]"));
    assert_eq!((found[0].line, found[0].body.len()), (3, 7));
    assert_eq!((found[1].line, found[1].body.len()), (18, 5));
    assert_eq!((found[1].above.len(), found[1].above[0].trim()), (5, "/// Two."));
    assert_eq!(found[2].body, ["fn third();"]);
}

#[test]
fn shipped_code_leaves_out_tests_and_comments() {
    let text = "\
//! Docs.
use a;
#[cfg(test)]
use b;
fn c() {} // said
#[cfg(test)]
mod tests {
    fn d() {}
}
struct E {
    #[cfg(test)]
    f: u8,
    g: u8,
}
#[cfg(test)]
mod h;
";
    let code: Vec<usize> = shipped_code(text).iter().map(|(number, _)| *number).collect();
    assert_eq!(code, [2, 5, 10, 13, 14]);
    assert_eq!(shipped_code(text)[1], (5, "fn c() {}"));
    assert_eq!(test_modules(text), ["h"]);
}
