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
        clap_mangen::Man::new(about).render(&mut page).map_err(|error| {
            Failure::new(Exit::Output, format!("the page cannot be written: {error}"))
        })?;
        printer::print_bytes(&page).map(|_| ())
    }
}
