//! Web origins: which pages may come in, and which of them share their locks.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use super::{Config, explain};

/// The word for programs, which have no origin, among origins that share their locks.
const PROGRAMS: &str = "programs";

/// Origins whose pages share one lock space. The operator chooses them; a page cannot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedOrigins {
    /// In their normal form.
    origins: Vec<String>,
    programs: bool,
}

impl SharedOrigins {
    /// Reads a list of origins between commas, such as
    /// `https://shop.example,https://m.shop.example`. The service takes all of them for the first.
    /// With the word `programs` they share the locks of programs, which have no origin.
    ///
    /// # Errors
    ///
    /// One of them is no origin, or there are fewer than two.
    pub fn parse(list: &str) -> io::Result<Self> {
        let words: Vec<&str> = list.split(',').map(str::trim).collect();
        let programs = words.contains(&PROGRAMS);
        let origins = words.iter().filter(|&&word| word != PROGRAMS);
        let origins: Vec<String> = origins.map(|word| checked(word)).collect::<io::Result<_>>()?;
        if origins.len() + usize::from(programs) < 2 || origins.is_empty() {
            return Err(invalid(format!(
                "'{list}' is one origin: name two at least, or one and the word {PROGRAMS}"
            )));
        }
        Ok(Self { origins, programs })
    }

    /// Returns the origin that the service takes all of them for; empty for that of programs.
    fn space(&self) -> &str {
        if self.programs { "" } else { &self.origins[0] }
    }
}

/// The origins that may come in, each with the one that the service takes it for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins(BTreeMap<String, String>);

impl Origins {
    pub(crate) fn new(config: &Config) -> io::Result<Self> {
        let mut spaces = BTreeMap::new();
        for shared in &config.shared_origins {
            for origin in &shared.origins {
                if spaces.insert(origin.clone(), shared.space().to_owned()).is_some() {
                    return Err(invalid(format!("the origin {origin} is listed twice")));
                }
            }
        }
        let listed = config.origins_file.as_deref().map(read_list).transpose()?;
        let allowed = config.allow_origins.iter().map(|origin| normal(origin));
        for origin in allowed.chain(listed.into_iter().flatten()) {
            spaces.entry(origin.clone()).or_insert(origin);
        }
        Ok(Self(spaces))
    }

    /// Returns what the service takes this origin for, if pages of it may come in.
    pub(crate) fn space(&self, origin: &str) -> Option<&str> {
        self.0.get(origin).map(String::as_str)
    }
}

/// Reads origins from a file, one on a line; empty lines and those that begin with # do not count.
fn read_list(path: &Path) -> io::Result<Vec<String>> {
    let unreadable = |error| explain(error, "cannot read the origins", path);
    let text = fs::read_to_string(path).map_err(unreadable)?;
    let lines = text.lines().map(str::trim).filter(|it| !it.is_empty() && !it.starts_with('#'));
    lines.map(checked).collect()
}

/// Returns the normal form: scheme and host do not care for case, and a slash at the end says
/// nothing.
pub(crate) fn normal(origin: &str) -> String {
    origin.trim().trim_end_matches('/').to_ascii_lowercase()
}

fn checked(word: &str) -> io::Result<String> {
    let origin = normal(word);
    match origin.split_once("://") {
        Some((scheme, host))
            if !scheme.is_empty() && !host.is_empty() && !host.contains(['/', '?', '#', ' ']) =>
        {
            Ok(origin)
        }
        _ => Err(invalid(format!(
            "'{word}' is no web origin: write scheme, host and port, such as https://shop.example"
        ))),
    }
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}
