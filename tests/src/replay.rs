//! The state is a function of the live entries in their order: requests in that order get the same
//! locks.

use std::collections::BTreeMap;

use navlocks_core::{HashKey, LockManager, Request, Snapshot, State, Wait};

/// Feeds the snapshot to a new engine, held entries and then pending ones, and objects unless
/// exactly the held ones are held.
pub fn replay(snapshot: &Snapshot) -> Result<(), String> {
    // Another key than the engine under test has: nothing may depend on it.
    let mut manager = LockManager::new(HashKey::from_bytes(*b"another hash key"));
    let mut clients = BTreeMap::new();
    let mut again = Vec::new();
    for info in snapshot.held.iter().chain(&snapshot.pending) {
        let client = *clients.entry(info.client).or_insert_with(|| manager.add_client());
        let request = Request { scope: info.scope.clone(), mode: info.mode, wait: Wait::Queue };
        let made = manager.request(client, request).map_err(|error| format!("replay: {error}"))?;
        again.push(made.0);
    }
    for (place, (info, &request)) in
        snapshot.held.iter().chain(&snapshot.pending).zip(&again).enumerate()
    {
        let held = matches!(manager.state(request), Some(State::Held(_)));
        if held != (place < snapshot.held.len()) {
            return Err(format!("replay: {} held {held} in a fresh engine", info.request));
        }
    }
    Ok(())
}
