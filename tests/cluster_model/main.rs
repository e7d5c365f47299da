//! The protocol of a cluster under an explicit-state model checker.
//!
//! Nodes, clients, etcd and the network take every possible step in every order, within the bounds
//! of a scenario. See `docs/cluster.md` for the protocol. `NAVLOCKS_SOAK=1` runs larger scenarios
//! for some minutes each.

mod bug;
mod checker;
mod guard;
mod judging;
mod notes;
mod protocol;
mod scenario;
mod serving;
mod state;

use std::env;
use std::time::Duration;

use stateright::{Checker, HasDiscoveries, Model as _};

use bug::Bug;
use notes::Note;
use protocol::{Cluster, HEALING, RULES};
use scenario::Scenario;

const THREADS: usize = 2;
/// How long a larger scenario is explored, nearest states first.
const SOAK_TIME: Duration = Duration::from_secs(180);

fn is_soak() -> bool {
    env::var_os("NAVLOCKS_SOAK").is_some()
}

#[test]
fn cluster_keeps_all_rules_and_reaches_every_edge_condition() {
    let mut missing = Note::ALL.to_vec();
    for scenario in Scenario::all() {
        let name = scenario.name;
        let checker = Cluster::new(scenario, None).checker().threads(THREADS).spawn_bfs().join();
        assert!(checker.is_done(), "{name}");
        println!("{name}: {} states", checker.unique_state_count());
        checker.assert_properties();
        missing.retain(|note| !checker.model().notes.has(*note));
    }
    assert!(missing.is_empty(), "these are never reached: {missing:?}");
}

#[test]
fn larger_cluster_keeps_all_rules() {
    if !is_soak() {
        return servers::skip("it takes an hour: ./test soak runs it");
    }
    for scenario in
        Scenario::all().into_iter().flat_map(|it| [it.clone().pinging(), it.in_eighths()])
    {
        let name = scenario.name;
        let checker = Cluster::new(scenario, None).checker().threads(THREADS).timeout(SOAK_TIME);
        let checker = checker.spawn_bfs().join();
        println!("{name}: {} states", checker.unique_state_count());
        checker.assert_no_discovery(RULES);
        checker.assert_no_discovery(HEALING);
    }
}

#[test]
fn seeded_bugs_are_found() {
    for (bug, scenario, expected) in Bug::all() {
        let cluster = Cluster::new(scenario, Some(bug));
        let checker =
            cluster.checker().threads(THREADS).finish_when(HasDiscoveries::AnyOf([RULES].into()));
        let checker = checker.spawn_bfs().join();
        let path = checker.discovery(RULES);
        let path = path.unwrap_or_else(|| panic!("{bug:?} is not found"));
        let found = path.last_state().violation;
        println!("{bug:?}: {} states", checker.unique_state_count());
        assert_eq!(found, Some(expected), "{bug:?}: {:?}", path.into_actions());
    }
}
