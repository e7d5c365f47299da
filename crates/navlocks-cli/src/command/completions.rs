//! `navlocks completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::exit::Failure;
use crate::printer;

/// Print a script that completes what is typed
///
/// For bash: `source <(navlocks completions bash)`.
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    pub(super) fn perform(&self) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::Cli::command(), "navlocks", &mut script);
        printer::print_bytes(&script).map(|_| ())
    }
}
