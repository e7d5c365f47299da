//! `navlocks leader`.

use std::ffi::OsString;

use clap::Args;

use super::steal::single;
use crate::command::short;
use crate::command::target::{Stay, Target, unanswered};
use crate::exit::{Exit, Failure};
use crate::printer::{self, Harmless, Reader};

/// Print the leader of a name
///
/// Prints the term of the leader, which is its fencing token, and its value: the text of navlocks
/// run --leader, or of elect in a program. Without a leader it ends with the exit code 1.
#[derive(Debug, Args)]
pub(crate) struct Leader {
    /// The name
    #[arg(value_name = "NAME")]
    name: Vec<OsString>,
    /// Print each later leader too, and '-' while there is none
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    target: Target,
}

impl Leader {
    pub(crate) async fn perform(self) -> Result<(), Failure> {
        let name = single(&self.name)?;
        let none = || Failure::new(Exit::Conflict, format!("'{}' has no leader", short(&name)));
        let locks = if self.follow {
            self.target
                .connect_within(self.target.answer_timeout, Stay::Long, async |_| ())
                .await?
                .0
        } else {
            self.target.connect_if_used().await?.ok_or_else(none)?
        };
        let mut leaders = locks.leaders(name.clone());
        let mut leader = self.target.answer(leaders.next()).await?;
        let done = loop {
            let line = match &leader {
                Some(leader) => format!("{} {}\n", leader.term, Harmless(&leader.value)),
                None if self.follow => "-\n".to_owned(),
                None => break Err(none()),
            };
            match printer::print_bytes(line.as_bytes()) {
                Ok(Reader::Reads) if self.follow => {}
                printed => break printed.map(|_| ()),
            }
            leader = match leaders.next().await {
                Ok(leader) => leader,
                Err(error) => break Err(unanswered(error)),
            };
        };
        drop(leaders);
        Target::finish(locks).await;
        done
    }
}
