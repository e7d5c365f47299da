//! `navlocks release`.

use std::ffi::OsString;

use clap::Args;

use super::steal::{holders, not_held, single, taken};
use crate::command::services::recovery;
use crate::command::target::Target;
use crate::exit::{Exit, Failure};
use crate::printer;

/// Release all locks that have a name, as an operator
///
/// As `steal`, except that the loss of the holders is force-released, and that no thief holds the
/// lock even for a moment: the first waiter has it.
#[derive(Debug, Args)]
pub(crate) struct Release {
    /// The name
    #[arg(value_name = "NAME")]
    name: Vec<OsString>,
    /// Confirm that the holder is not asked
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    target: Target,
}

impl Release {
    pub(crate) async fn perform(self) -> Result<(), Failure> {
        let name = single(&self.name)?;
        if !self.force {
            let message = "only its holder releases a lock: --force takes it away";
            return Err(Failure::new(Exit::Usage, message));
        }
        let Some(locks) = self.target.connect_if_used().await? else {
            return Err(not_held(&name));
        };
        let victims = holders(&self.target, &locks, &name).await?;
        let waited_for = self.target.answer(locks.unclaimed_sessions()).await?;
        let released = self.target.answer(locks.force_release(&name)).await?;
        let now = self.target.answer(locks.unclaimed_sessions()).await?;
        Target::finish(locks).await;
        let unclaimed = recovery::taken(&name, &waited_for, &now);
        if released == 0 && unclaimed.is_empty() {
            return Err(not_held(&name));
        }
        // The holders are those of a moment before; their number is exact.
        let victims = victims.held.iter();
        let text = victims.map(|info| taken(&name, info.client, info.tag.as_deref(), info.pid));
        printer::print(&(text.collect::<String>() + &unclaimed))
    }
}
