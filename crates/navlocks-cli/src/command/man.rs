//! `navlocks man`.

use clap::{Args, CommandFactory};

use crate::exit::{Exit, Failure};
use crate::printer;

/// Print a page of the manual
///
/// To read it: `navlocks man | man -l -`.
#[derive(Debug, Args)]
pub(super) struct Man {
    /// The command the page is about; without it the page is about all
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
}

impl Man {
    pub(super) fn perform(&self) -> Result<(), Failure> {
        let mut all = super::Cli::command();
        all.build();
        let about = match &self.command {
            None => all,
            Some(name) => {
                let Some(command) = all.find_subcommand(name) else {
                    return Err(Failure::new(Exit::Usage, format!("there is no command '{name}'")));
                };
                command.clone()
            }
        };
        let mut page = Vec::new();
        // The page has a section of its own for exit codes.
        clap_mangen::Man::new(about.after_long_help(None)).render(&mut page).map_err(|error| {
            Failure::new(Exit::Output, format!("the page cannot be written: {error}"))
        })?;
        page.extend(more().into_bytes());
        printer::print_bytes(&page).map(|_| ())
    }
}

/// The variables that the command reads, and those that it sets for a command under a lock.
const ENVIRONMENT: [(&str, &str); 15] = [
    (
        "NAVLOCKS_URL",
        "The service to use; the user's own otherwise. Set for a command under a lock of --url.",
    ),
    ("NAVLOCKS_PARTITION", "The lock space to use."),
    ("NAVLOCKS_TOKEN, NAVLOCKS_TOKEN_FILE", "The access token, or a file with it."),
    ("NAVLOCKS_CA_FILE", "The certificates to trust for wss://."),
    ("NAVLOCKS_ANSWER_TIMEOUT", "How long the service may take to answer."),
    ("NAVLOCKS_DIR", "The folder of the user's own service, instead of navlocks-UID in /tmp."),
    ("NAVLOCKS_IDLE_EXIT", "For how long a service that started by itself stays idle."),
    ("NAVLOCKS_LOG", "What a service logs, such as warn or debug."),
    ("NO_COLOR", "Without colours."),
    ("TRACEPARENT", "The trace of a request, in W3C's form: queries, events and logs show it."),
    (
        "NAVLOCKS_NAME, NAVLOCKS_NAMES",
        "Set for a command or shell under a lock: its name, its names.",
    ),
    (
        "NAVLOCKS_MODE",
        "Set for a command or shell under a lock: exclusive, shared, or such as limit 4.",
    ),
    (
        "NAVLOCKS_FENCING_TOKEN",
        "Set for a command or shell under a lock: larger than every token before.",
    ),
    (
        "NAVLOCKS_REQUEST",
        "Set for a command or shell under a lock: by it deadlocks of nested runs are found.",
    ),
    ("LISTEN_FDS, LISTEN_PID", "Sockets that were opened for serve."),
];

const FILES: [(&str, &str); 3] = [
    ("navlocks-UID/socket in /tmp", "The socket of the user's own service."),
    ("navlocks-UID/log in /tmp", "What a service that started by itself has to say."),
    ("navlocks-UID/service.json in /var/tmp", "What outlives it: which fencing tokens it gave."),
];

/// Returns the table of the variables, for the help.
pub(super) fn environment() -> String {
    let lines = ENVIRONMENT.map(|(head, body)| format!("  {head}\n          {body}\n"));
    format!("Environment:\n{}", lines.concat())
}

/// Returns the sections that follow from no option.
fn more() -> String {
    let mut text = String::from(".SH \"EXIT STATUS\"\n");
    let entry = |text: &mut String, head: &str, body: &str| {
        text.push_str(&format!(".TP\n\\fB{}\\fR\n{}\n", escape(head), escape(body)));
    };
    for exit in Exit::ALL {
        entry(&mut text, &exit.code().to_string(), exit.meaning());
    }
    entry(&mut text, "otherwise", Exit::OF_COMMAND);
    for (title, entries) in [("ENVIRONMENT", &ENVIRONMENT[..]), ("FILES", &FILES[..])] {
        text.push_str(&format!(".SH {title}\n"));
        for (head, body) in entries {
            entry(&mut text, head, body);
        }
    }
    text
}

/// Escapes text for roff.
fn escape(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}
