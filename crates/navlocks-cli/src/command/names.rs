//! Names as they come from a shell.

use std::ffi::OsString;

use navlocks::{Name, Scope};

use crate::exit::{Exit, Failure};

/// The scope of these names.
pub(super) fn scope(names: &[OsString]) -> Result<Scope, Failure> {
    let names: Vec<Name> = names.iter().map(name).collect::<Result<_, _>>()?;
    Scope::new(names).map_err(|_| Failure::new(Exit::NoName, "no name was given: say what to lock"))
}

/// One name that exists already, whatever it is: other programs may use names that a shell should
/// not.
pub(super) fn existing(argument: &OsString) -> Result<Name, Failure> {
    match argument.to_str() {
        Some(text) => Ok(Name::from(text)),
        None => name(argument),
    }
}

/// One name. An empty one is allowed by the standard, and in a shell always a mistake.
pub(super) fn name(argument: &OsString) -> Result<Name, Failure> {
    let Some(text) = argument.to_str() else {
        let message = format!("the name {argument:?} is not UTF-8: choose another");
        return Err(Failure::new(Exit::NotText, message));
    };
    if text.is_empty() {
        let message = "a name is empty: is a variable not set that should name the lock?";
        return Err(Failure::new(Exit::EmptyName, message));
    }
    let name = Name::from(text);
    if name.starts_with_hyphen() {
        let message =
            format!("the name '{name}' starts with '-', which is reserved: choose another");
        return Err(Failure::new(Exit::ReservedName, message));
    }
    Ok(name)
}
