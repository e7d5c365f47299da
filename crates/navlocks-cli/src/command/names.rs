//! Names as they come from a shell.

use std::ffi::OsString;
use std::fmt::Display;

use navlocks::{Name, Scope};

use crate::exit::{Exit, Failure};

/// The most characters of a name in a sentence.
const SHOWN_CHARS_MAX: usize = 100;

/// Returns a name or a scope for a sentence; a longer one is cut.
pub(crate) fn short(name: &impl Display) -> String {
    let text = name.to_string();
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Returns the scope of these names.
pub(super) fn scope(names: &[OsString]) -> Result<Scope, Failure> {
    let names: Vec<Name> = names.iter().map(name).collect::<Result<_, _>>()?;
    Scope::new(names).map_err(|_| Failure::new(Exit::NoName, "no name was given: say what to lock"))
}

/// Returns a name that exists already: other programs may use names that `run` refuses.
pub(super) fn existing(argument: &OsString) -> Result<Name, Failure> {
    match argument.to_str() {
        Some(text) => Ok(Name::from(text)),
        None => name(argument),
    }
}

/// Returns a name for a new request. The standard allows the empty name, but in a shell it is
/// always a mistake.
pub(super) fn name(argument: &OsString) -> Result<Name, Failure> {
    let Some(text) = argument.to_str() else {
        let name = short(&argument.display());
        let message = format!("the name '{name}' is not UTF-8: choose another");
        return Err(Failure::new(Exit::NotText, message));
    };
    if text.is_empty() {
        let message = "a name is empty: is a variable not set that should name the lock?";
        return Err(Failure::new(Exit::EmptyName, message));
    }
    let name = Name::from(text);
    if name.starts_with_hyphen() {
        let message = format!(
            "the name '{}' starts with '-', which is reserved: choose another",
            short(&name)
        );
        return Err(Failure::new(Exit::ReservedName, message));
    }
    Ok(name)
}
