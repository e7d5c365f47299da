//! Sessions of an earlier service whose clients have not come back, in words.

use navlocks::{Name, UnclaimedSession};

use crate::command::duration;

/// Returns a sentence about a session that the service waits for, and until when.
pub(crate) fn sentence(unclaimed: &UnclaimedSession) -> String {
    let holds = match unclaimed.held {
        0 => "requests".to_owned(),
        1 => "a lock".to_owned(),
        held => format!("{held} locks"),
    };
    let until = match unclaimed.left {
        Some(left) => format!("for {} at most", duration::say(left)),
        None => "until its process ends".to_owned(),
    };
    format!(
        "{} had {holds} when the service was started again, and has not come back: the service waits {until}; navlocks steal NAME gets past it",
        who(unclaimed)
    )
}

/// Returns a line for each session that lost a lock: it held more locks before.
pub(crate) fn taken(name: &Name, before: &[UnclaimedSession], now: &[UnclaimedSession]) -> String {
    let left = |session: u32| {
        now.iter().find(|known| known.session == session).map_or(0, |known| known.held)
    };
    let victims = before.iter().filter(|known| known.held > left(known.session));
    victims.map(|victim| format!("took '{name}' from {}\n", who(victim))).collect()
}

fn who(unclaimed: &UnclaimedSession) -> String {
    let pid = unclaimed.pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
    format!("session {}{pid}", unclaimed.session)
}
