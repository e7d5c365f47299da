//! The settings of a service besides its arguments: the environment and a file.
//!
//! Both name the same options as the command line. Each setting becomes an argument, so that one
//! definition of an option has its type, its default and its help.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use clap::{Arg, ArgAction, Args as _, Command};
use serde_json::Value;

use super::Serve;
use crate::exit::{Exit, Failure};

/// The settings that only an argument has; the environment may name the file, too.
const CONFIG: &str = "config";
const CHECK: &str = "check";

/// The arguments of `navlocks serve` with its settings.
pub(crate) struct Completed {
    pub(crate) arguments: Vec<OsString>,
    /// The origin of each option that is no argument.
    sources: BTreeMap<String, String>,
}

impl Completed {
    /// Returns the origin of an option that a usage error names, such as `--lease <TIME>`.
    pub(crate) fn source(&self, option: &str) -> Option<&str> {
        let name = option.trim_start_matches('-').split([' ', '=']).next()?;
        self.sources.get(name).map(String::as_str)
    }
}

/// Adds the settings of the environment and of the file of `--config` to the arguments. An argument
/// has precedence over the environment, and the environment over the file.
///
/// # Errors
///
/// The file cannot be read, or has no settings; a variable is no text.
pub(crate) fn complete(arguments: &[OsString]) -> Result<Completed, Failure> {
    let command = Serve::augment_args(Command::new("serve"));
    let mut known = Known::of(&command, arguments);
    let mut arguments = arguments.to_vec();
    let mut sources = BTreeMap::new();
    let file = config_file(&arguments);
    let layers = [Some(environment(&command)?), file.as_deref().map(read).transpose()?];
    for Layer { origin, settings } in layers.into_iter().flatten() {
        let mut set = Vec::new();
        for (name, value) in settings {
            if known.excludes(&name) {
                continue;
            }
            let values = words(&command, &name, &value)
                .map_err(|why| Failure::new(Exit::Usage, format!("{name} in {origin} {why}")))?;
            arguments.extend(values);
            sources.insert(name.clone(), origin.clone());
            set.push(name);
        }
        known.add(set);
    }
    Ok(Completed { arguments, sources })
}

/// The settings of one origin.
struct Layer {
    origin: String,
    settings: Vec<(String, Value)>,
}

/// The options that have a value, and those that contradict them.
struct Known<'a> {
    command: &'a Command,
    names: BTreeSet<String>,
}

impl<'a> Known<'a> {
    /// Returns the options among the arguments, and those that clap reads from the environment.
    fn of(command: &'a Command, arguments: &[OsString]) -> Self {
        let typed = arguments.iter().filter_map(|word| word.to_str()?.strip_prefix("--"));
        let typed = typed.map(|word| word.split('=').next().unwrap_or(word).to_owned());
        let is_set = |arg: &&Arg| {
            let value = arg.get_env().and_then(std::env::var_os);
            value.is_some_and(|value| !value.is_empty())
        };
        let inherited = command.get_arguments().filter(is_set).filter_map(Arg::get_long);
        let names = typed.chain(inherited.map(str::to_owned)).collect();
        Self { command, names }
    }

    /// Returns true if an option or one that contradicts it has a value of an earlier layer.
    fn excludes(&self, name: &str) -> bool {
        let contradicts = |known: &String| {
            let rivals =
                find(self.command, known).map(|it| self.command.get_arg_conflicts_with(it));
            rivals.into_iter().flatten().any(|rival| rival.get_long() == Some(name))
        };
        let is_contradicted = || {
            let rivals = find(self.command, name).map(|it| self.command.get_arg_conflicts_with(it));
            let mut names = rivals.into_iter().flatten().filter_map(Arg::get_long);
            names.any(|rival| self.names.contains(rival))
        };
        self.names.contains(name) || self.names.iter().any(contradicts) || is_contradicted()
    }

    fn add(&mut self, names: Vec<String>) {
        self.names.extend(names);
    }
}

fn find<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| arg.get_long() == Some(name))
}

/// Returns the file that the arguments name, or else the environment.
fn config_file(arguments: &[OsString]) -> Option<OsString> {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(word) = word.to_str() else { continue };
        match word.strip_prefix("--config") {
            Some("") => return words.next().cloned(),
            Some(rest) if rest.starts_with('=') => return Some(rest[1..].into()),
            _ => {}
        }
    }
    std::env::var_os(variable(CONFIG)).filter(|file| !file.is_empty())
}

/// Returns the variable of an option: `NAVLOCKS_LEASE_MAX` of `--lease-max`.
pub(crate) fn variable(name: &str) -> String {
    format!("NAVLOCKS_{}", name.replace('-', "_").to_uppercase())
}

/// Reads the variables of all options. Several values of one option have spaces between them.
fn environment(command: &Command) -> Result<Layer, Failure> {
    let mut settings = Vec::new();
    let is_mine = |arg: &&Arg| arg.get_env().is_none();
    for arg in command.get_arguments().filter(is_mine) {
        let Some(name) = arg.get_long().filter(|&name| name != CONFIG && name != CHECK) else {
            continue;
        };
        let variable = variable(name);
        let Some(text) = std::env::var_os(&variable).filter(|text| !text.is_empty()) else {
            continue;
        };
        let Some(text) = text.to_str() else {
            return Err(Failure::new(Exit::Usage, format!("{variable} is no text")));
        };
        let value = match (arg.get_action(), text) {
            (ArgAction::Append, text) => text.split_whitespace().collect(),
            (ArgAction::SetTrue, "true" | "1") => Value::Bool(true),
            (ArgAction::SetTrue, "false" | "0") => Value::Bool(false),
            (_, text) => text.into(),
        };
        settings.push((name.to_owned(), value));
    }
    Ok(Layer { origin: "the environment".to_owned(), settings })
}

/// Reads the file.
fn read(path: &OsStr) -> Result<Layer, Failure> {
    let origin = Path::new(path).display().to_string();
    let failed = |why: String| {
        Failure::new(Exit::Usage, format!("cannot use the settings in {origin}: {why}"))
    };
    let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let settings: BTreeMap<String, Value> =
        basic_toml::from_str(&text).map_err(|error| failed(error.to_string()))?;
    for name in [CONFIG, CHECK] {
        if settings.contains_key(name) {
            return Err(failed(format!("{name} is an argument alone: remove it")));
        }
    }
    Ok(Layer { settings: settings.into_iter().collect(), origin })
}

/// Returns the words of a command line that say the same.
fn words(command: &Command, name: &str, value: &Value) -> Result<Vec<OsString>, &'static str> {
    if find(command, name).is_none() {
        // The parser of arguments says that there is none of this name, and which one is meant.
        return Ok(vec![format!("--{name}").into()]);
    }
    let is_flag = find(command, name).is_some_and(|arg| !arg.get_action().takes_values());
    let is_list =
        find(command, name).is_some_and(|arg| matches!(arg.get_action(), ArgAction::Append));
    let one = |value: &Value| match value {
        Value::String(text) => Ok(format!("--{name}={text}").into()),
        Value::Number(number) => Ok(format!("--{name}={number}").into()),
        _ if is_list => Err("needs a text, or a list of texts"),
        _ => Err("needs a text or a number"),
    };
    match value {
        Value::Bool(true) if is_flag => Ok(vec![format!("--{name}").into()]),
        Value::Bool(false) if is_flag => Ok(Vec::new()),
        _ if is_flag => Err("needs true or false"),
        Value::Array(values) if is_list => values.iter().map(one).collect(),
        value => one(value).map(|word| vec![word]),
    }
}
