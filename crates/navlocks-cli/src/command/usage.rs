//! Usage errors, in one sentence each.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::short;
use crate::exit::{Exit, Failure};
use crate::printer::{self, Palette};

/// Prints the help that was asked for, or returns the usage error.
pub(super) fn explain(error: &clap::Error, arguments: &[OsString]) -> Result<u8, Failure> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let text = error.render();
            let coloured = Palette::of_stdout().has_colours();
            let text = if coloured { text.ansi().to_string() } else { text.to_string() };
            printer::print(&text).map(|()| Exit::Success.code())
        }
        kind => {
            let help = match subcommand(arguments) {
                Some(name) => format!("navlocks {name} --help"),
                None => "navlocks --help".to_owned(),
            };
            let sentence = sentence(error, kind, arguments);
            Err(Failure::new(Exit::Usage, format!("{sentence}; see {help}")))
        }
    }
}

/// Returns the argument that a usage error is about; empty if it is about none.
pub(super) fn argument(error: &clap::Error) -> String {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(text)) => short(text),
        _ => String::new(),
    }
}

fn sentence(error: &clap::Error, kind: ErrorKind, arguments: &[OsString]) -> String {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(short(text)),
        Some(ContextValue::Strings(texts)) => Some(texts.join(", ")),
        _ => None,
    };
    let argument = context(ContextKind::InvalidArg).unwrap_or_default();
    let meant =
        |kind| context(kind).map(|text| format!(", did you mean {text}?")).unwrap_or_default();
    match kind {
        ErrorKind::UnknownArgument => {
            let meant = meant(ContextKind::SuggestedArg);
            let argument = argument.split(' ').next().unwrap_or(&argument);
            if argument.starts_with('-') {
                let hint = if meant.is_empty() { hint(arguments) } else { "" };
                format!("there is no option '{argument}'{meant}{hint}")
            } else {
                format!("'{argument}' is one argument too many")
            }
        }
        ErrorKind::InvalidSubcommand => {
            let name = context(ContextKind::InvalidSubcommand).unwrap_or_default();
            let known = meant(ContextKind::SuggestedSubcommand);
            let meant = if known.is_empty() { near(&name) } else { known };
            format!("there is no command '{name}'{meant}")
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "say what to do, such as: navlocks run NAME -- COMMAND".to_owned()
        }
        ErrorKind::ArgumentConflict => {
            let other = context(ContextKind::PriorArg).unwrap_or_default();
            if other == argument {
                format!("{argument} can be said only once")
            } else {
                format!("{argument} and {other} contradict each other")
            }
        }
        ErrorKind::ValueValidation | ErrorKind::InvalidValue => {
            let value = context(ContextKind::InvalidValue).unwrap_or_default();
            let allowed = context(ContextKind::ValidValue).map(|all| format!("one of {all}"));
            let why = std::error::Error::source(error).map(ToString::to_string).or(allowed);
            match (value.is_empty(), why) {
                (true, _) => format!("{argument} needs a value"),
                (false, Some(why)) => format!("{argument} cannot be '{value}': {why}"),
                (false, None) => format!("{argument} cannot be '{value}'"),
            }
        }
        ErrorKind::MissingRequiredArgument => format!("{argument} is missing"),
        _ => first_line(&error.render().to_string()),
    }
}

/// Returns a hint about `--`, where that would help.
fn hint(arguments: &[OsString]) -> &'static str {
    match subcommand(arguments) {
        _ if arguments.iter().any(|argument| argument == "--") => "",
        Some("run") => " (a command goes after --)",
        Some("steal" | "release" | "why") => " (a name that starts with '-' goes after --)",
        _ => "",
    }
}

/// Returns the subcommands that differ by one typing error, such as two letters in the wrong order.
fn near(typed: &str) -> String {
    use clap::CommandFactory;
    let without_one = |text: &str| -> Vec<String> {
        let all: Vec<char> = text.chars().collect();
        let without = |skip: usize| [&all[..skip], &all[skip + 1..]].concat().into_iter().collect();
        (0..all.len()).map(without).collect()
    };
    let shorter = without_one(typed);
    let is_near = |name: &&str| {
        let others = without_one(name);
        let name = (*name).to_owned();
        others.iter().any(|it| it == typed || shorter.contains(it)) || shorter.contains(&name)
    };
    let all = super::Cli::command();
    let names: Vec<&str> = all.get_subcommands().map(|it| it.get_name()).filter(is_near).collect();
    if names.is_empty() { String::new() } else { format!(", did you mean {}?", names.join(", ")) }
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// Returns the subcommand among the arguments, if it exists.
fn subcommand(arguments: &[OsString]) -> Option<&str> {
    use clap::CommandFactory;
    let typed = arguments.get(1)?.to_str()?;
    super::Cli::command().find_subcommand(typed)?;
    Some(typed)
}
