//! The plans of worlds: random ones, and scripts.

use std::path::{Path, PathBuf};

use navlocks_tests::chaos::Dice;

use crate::bug::{Bug, Seeded};
use crate::client::Traits;
use crate::errands::{Errand, Errands};
use crate::services::address;
use crate::world::Fault;
use crate::world::Plan;

/// The lease of a session at a lone service and in a cluster.
const LEASE: u64 = 4000;
const CLUSTER_LEASE: u64 = 8000;
/// The rest of a lease at the worst moment, less the longest pause between two attempts.
const ENDURANCE: u64 = 1200;
const CLUSTER_ENDURANCE: u64 = 2600;

/// The lease of sessions in a large cluster, and the partitions over which they spread.
pub(crate) const LEASE_OF_MANY: u64 = 10_000;
const PARTITIONS_OF_MANY: usize = 300;

const FAULTS: u32 = 14;
const TASKS: usize = 2;
const ROUNDS: u32 = 6;
/// How often services look at their clocks.
const TICK: u64 = 50;

impl Plan {
    /// Makes a plan for a lone service with its tables in this folder, or for three nodes.
    fn new(seed: u64, folder: Option<&Path>, bug: Seeded) -> Self {
        let is_cluster = folder.is_none();
        Self {
            seed,
            folder: folder.map(PathBuf::from),
            nodes: if is_cluster { 3 } else { 1 },
            slots: if is_cluster { 6 } else { 1 },
            lease: if is_cluster { CLUSTER_LEASE } else { LEASE },
            endurance: if is_cluster { CLUSTER_ENDURANCE } else { ENDURANCE },
            outlasts_all: false,
            tick: TICK,
            requests_max: 100_000,
            clients: Vec::new(),
            random_faults: 0,
            faults: Vec::new(),
            strangers: 0,
            checks: true,
            bug,
        }
    }

    fn add_client(&mut self, partition: &str, local: bool, tasks: Vec<Errands>) -> &mut Traits {
        let number = self.clients.len();
        let nodes: Vec<String> = (0..self.nodes).map(address).collect();
        self.clients.push(Traits {
            name: format!("c{number}"),
            seed: self.seed,
            local,
            addresses: if local { "unix:/service".to_owned() } else { nodes.join(",") },
            partition: partition.to_owned(),
            has_second: self.folder.is_some(),
            lease: self.lease,
            tasks,
            records: true,
            bug: self.bug.clone(),
        });
        let last = self.clients.len() - 1;
        &mut self.clients[last]
    }

    /// Makes a plan of random requests and faults.
    pub(crate) fn random(seed: u64, folder: Option<&Path>) -> Self {
        let mut plan = Self::new(seed, folder, Seeded::default());
        let mut dice = Dice::new(seed, u64::MAX);
        let all_local = folder.is_some() && dice.once_in(3);
        plan.outlasts_all = all_local;
        if dice.once_in(4) {
            plan.requests_max = 1;
        }
        plan.strangers = if dice.once_in(3) { 4 } else { 0 };
        plan.random_faults = FAULTS;
        for _ in 0..2 + dice.roll(4) {
            let local = folder.is_some() && (all_local || dice.once_in(4));
            let partition = if folder.is_none() && dice.once_in(2) { "p1" } else { "" };
            plan.add_client(partition, local, vec![Errands::Random(ROUNDS); TASKS]);
        }
        plan
    }

    /// Makes a plan of a large cluster. Its histories are counted and not recorded.
    pub(crate) fn of_many(
        sessions: usize,
        faults: Vec<(u64, Fault)>,
        tasks: impl Fn(usize) -> [Errands; 2],
    ) -> Self {
        let mut plan = Self::new(0, None, Seeded::default());
        (plan.slots, plan.lease, plan.tick, plan.checks) = (64, LEASE_OF_MANY, 2 * TICK, false);
        for number in 0..sessions {
            let partition = format!("p{}", number % PARTITIONS_OF_MANY);
            let traits = plan.add_client(&partition, false, tasks(number).to_vec());
            traits.records = false;
        }
        plan.faults = faults;
        plan
    }

    /// Makes a plan of a script.
    pub(crate) fn script(
        seed: u64,
        folder: Option<&Path>,
        bug: Option<Bug>,
        script: &Script,
    ) -> Self {
        let mut plan = Self::new(seed, folder, Seeded::new(bug));
        for errands in &script.clients {
            let tasks = errands.iter().map(|errand| Errands::script([errand.clone()])).collect();
            plan.add_client("p0", false, tasks);
        }
        plan.faults = script.faults.clone();
        plan.strangers = u64::from(script.has_strangers);
        plan
    }
}

/// Errands, by client and task, and faults.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    clients: Vec<Vec<Errand>>,
    faults: Vec<(u64, Fault)>,
    pub(crate) is_cluster: bool,
    has_strangers: bool,
}

impl Script {
    pub(crate) fn of(clients: impl IntoIterator<Item = Vec<Errand>>) -> Self {
        let (clients, faults) = (clients.into_iter().collect(), Vec::new());
        Self { clients, faults, is_cluster: false, has_strangers: false }
    }

    pub(crate) fn with(self, faults: Vec<(u64, Fault)>) -> Self {
        Self { faults, ..self }
    }

    /// Returns the same with a stranger before each message.
    pub(crate) fn strange(self) -> Self {
        Self { has_strangers: true, ..self }
    }

    pub(crate) fn cluster(self) -> Self {
        Self { is_cluster: true, ..self }
    }
}
