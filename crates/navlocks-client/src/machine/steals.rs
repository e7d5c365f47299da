//! The pending steals of a session, by the names that they take.

use std::collections::BTreeSet;

use navlocks_core::Name;
use navlocks_wire::Request;

use crate::requests::is_steal;

/// Pending steals by client, name and number. A lookup costs the names of the lock, whatever the
/// number of steals.
#[derive(Debug, Default)]
pub(super) struct Steals(BTreeSet<(u64, Name, u64)>);

impl Steals {
    /// Adds a request, if it steals.
    pub(super) fn add(&mut self, request: &Request) {
        if is_steal(request) {
            self.0.extend(keys(request));
        }
    }

    /// Removes a request that is pending no more. Returns true if it was a pending steal.
    pub(super) fn remove(&mut self, request: &Request) -> bool {
        is_steal(request) && keys(request).filter(|key| self.0.remove(key)).count() > 0
    }

    /// Returns the first later steal of the same client that takes this lock.
    pub(super) fn thief_of(&self, lock: &Request) -> Option<u64> {
        if self.0.is_empty() {
            return None;
        }
        let later = keys(lock).filter_map(|(client, name, id)| {
            let all = (client, name.clone(), id + 1)..=(client, name, u64::MAX);
            self.0.range(all).next().map(|(.., thief)| *thief)
        });
        later.min()
    }
}

fn keys(request: &Request) -> impl Iterator<Item = (u64, Name, u64)> {
    let names = request.names.0.names().iter();
    names.map(|name| (request.client, name.clone(), request.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use navlocks_wire::ToService;

    fn request(message: &str) -> Request {
        match navlocks_wire::read(message) {
            Ok(ToService::Request(request)) => request,
            other => panic!("{message}: {other:?}"),
        }
    }

    #[test]
    fn lock_is_taken_by_the_first_later_steal_of_its_client_on_its_names() {
        let held = request(r#"{"request":{"id":7,"names":["a","b"]}}"#);
        let cases = [
            (r#"{"request":{"id":8,"names":["b"],"wait":"steal"}}"#, Some(8)),
            (r#"{"request":{"id":8,"names":["b"],"wait":"steal-all"}}"#, Some(8)),
            (r#"{"request":{"id":8,"names":["c"],"wait":"steal"}}"#, None),
            (r#"{"request":{"id":6,"names":["b"],"wait":"steal"}}"#, None),
            (r#"{"request":{"id":8,"client":1,"names":["b"],"wait":"steal"}}"#, None),
            (r#"{"request":{"id":8,"names":["b"]}}"#, None),
        ];
        for (message, thief) in cases {
            let (mut steals, other) = (Steals::default(), request(message));
            steals.add(&other);
            assert_eq!(steals.thief_of(&held), thief, "{message}");
            steals.remove(&other);
            assert_eq!(steals.thief_of(&held), None, "{message}");
        }
        let mut steals = Steals::default();
        for id in [10, 9, 12] {
            let name = if id == 9 { "b" } else { "a" };
            steals.add(&request(&format!(
                r#"{{"request":{{"id":{id},"names":["{name}"],"wait":"steal"}}}}"#
            )));
        }
        assert_eq!(steals.thief_of(&held), Some(9));
    }
}
