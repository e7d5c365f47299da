//! Dozens of client processes of a cluster, while nodes and members of etcd are killed, stopped,
//! moved and robbed of their keys.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::Command;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use navlocks::Locks;
use navlocks::blocking::block_on;
use navlocks_tests::chaos::{Conductor, Dice, Errand, Habits, Plan, chaos_time, seed};
use navlocks_tests::check::{Weight, check};
use navlocks_tests::record::{Deed, History, Line, Pen, SERVICE, Step, What, Who};
use rustix::process::Signal;

use super::failovers::leader;
use super::nodes::{LEASE, NODE_LEASE, Nodes, PATIENCE};
use crate::folder::Folder;

/// Each is in another slot, and its clients know nothing of the others.
const PARTITIONS: u64 = 4;
const CLIENTS: u64 = 36;
const NODES: usize = 3;
const MEMBERS: usize = 3;

/// The rest of a lease when a ping is due, less the time to connect to a busy node.
const ENDURANCE: Duration = Duration::from_secs(4);
/// Some locks are held for longer than a fail-over takes.
const HOLD: Duration = Duration::from_secs(9);
const WAIT: Duration = Duration::from_secs(2);

fn plan(time: Duration) -> Plan {
    Plan {
        clients: CLIENTS,
        time,
        // A client that was killed makes its partition wait for its lease at the next fail-over.
        pause: Duration::from_secs(10),
        service: 1,
        stop: Duration::from_secs(1),
        patience: Duration::from_secs(40),
        endurance: ENDURANCE,
        outage: Duration::ZERO,
    }
}

/// The partition of a client, by the number in its name.
fn partition(who: &Who) -> u64 {
    let number = who.0.trim_start_matches('c').parse::<u64>().unwrap_or_default();
    number % PARTITIONS
}

fn recruit(folder: &Path, url: String) -> impl FnMut(&Who, u64) -> io::Result<Command> + 'static {
    let folder = folder.to_path_buf();
    move |who, seed| {
        let partition = partition(who);
        let habits = Habits {
            names: (0..8).map(|name| format!("p{partition}n{name}").into()).collect(),
            rounds: u32::MAX,
            steals: 40,
            forces: 80,
            hold: HOLD,
            wait: WAIT,
        };
        let (who, folder, url) = (who.clone(), folder.clone(), url.clone());
        let (partition, lease) = (format!("p{partition}"), Some(LEASE));
        let errand = Errand { who, folder, url, partition, lease, seed, tasks: 2, habits };
        errand.command(Path::new(env!("CARGO_BIN_EXE_recorder")))
    }
}

/// From here on a run has the time to let locks be seated again between two faults.
const LONG_RUN: Duration = Duration::from_secs(120);

/// Returns the pause after a fault. Half of a lease is longer than a fail-over with clients that
/// live; a whole one is waited for those that were killed.
fn rest(dice: &mut Dice, time: Duration) -> Duration {
    if time < LONG_RUN { dice.up_to(Duration::from_secs(6)) } else { LEASE / 2 + dice.up_to(LEASE) }
}

/// Counts the locks that clients lost, by the cause that they were told.
fn losses(history: &History) -> BTreeMap<&str, usize> {
    let mut losses = BTreeMap::new();
    for line in &history.lines {
        if let What::Request(_, Step::Lost(cause)) = &line.what {
            // The number of a thief is left out.
            let cause = cause.split(|it: char| it.is_ascii_digit()).next().unwrap_or_default();
            *losses.entry(cause).or_default() += 1;
        }
    }
    losses
}

/// A fault of the cluster.
#[derive(Clone, Copy, Debug)]
enum Fault {
    KillNode,
    KillTwoNodes,
    StopNode,
    EndNode,
    DeleteKey,
    Compact,
    StopLeader,
    KillMember,
}

const FAULTS: [Fault; 8] = [
    Fault::KillNode,
    Fault::KillTwoNodes,
    Fault::StopNode,
    Fault::EndNode,
    Fault::DeleteKey,
    Fault::Compact,
    Fault::StopLeader,
    Fault::KillMember,
];

/// Does to a cluster what its dice say, and writes that down.
struct Vandal<'a> {
    nodes: &'a mut Nodes,
    pen: Pen,
    dice: Dice,
}

impl Vandal<'_> {
    fn strike(&mut self, fault: Fault) -> io::Result<()> {
        let number = self.dice.roll(NODES as u64) as usize;
        let others: Vec<usize> = (0..NODES).filter(|other| *other != number).collect();
        let all: Vec<usize> = (0..NODES).collect();
        println!("{fault:?} {number}");
        match fault {
            Fault::KillNode => {
                self.deed(Deed::Killing)?;
                self.nodes.kill(number);
                self.await_answers(&others)?;
                self.nodes.run(number);
            }
            Fault::KillTwoNodes => {
                self.deed(Deed::Killing)?;
                self.nodes.kill(number);
                sleep(self.dice.up_to(2 * NODE_LEASE));
                self.nodes.kill(others[0]);
                self.await_answers(&others[1..])?;
                self.nodes.run(number);
                self.nodes.run(others[0]);
            }
            Fault::StopNode => {
                self.deed(Deed::Stopping)?;
                self.nodes.signal(number, Signal::STOP);
                self.await_answers(&others)?;
                sleep(self.dice.up_to(NODE_LEASE));
                self.nodes.signal(number, Signal::CONT);
            }
            Fault::EndNode => {
                self.deed(Deed::Stopping)?;
                self.nodes.terminate(number);
                self.await_answers(&others)?;
                self.nodes.run(number);
            }
            Fault::DeleteKey => {
                self.deed(Deed::Stopping)?;
                self.nodes.in_etcd(async |mut etcd| {
                    let options = etcd_client::DeleteOptions::new().with_prefix();
                    etcd.delete("/navlocks/nodes/", Some(options)).await.expect("it is deleted");
                });
                self.await_answers(&all)?;
            }
            Fault::Compact => {
                self.nodes.in_etcd(async |mut etcd| {
                    let put = etcd.put("/other", "", None).await.expect("it is written");
                    let revision = put.header().expect("a header").revision();
                    etcd.compact(revision, None).await.expect("it is compacted");
                });
            }
            Fault::StopLeader => {
                let leader = leader(self.nodes);
                self.deed(Deed::Stopping)?;
                self.nodes.etcd.pause(leader);
                sleep(self.dice.up_to(2 * NODE_LEASE));
                self.nodes.etcd.resume(leader);
                self.await_answers(&all)?;
            }
            Fault::KillMember => {
                let member = self.dice.roll(MEMBERS as u64) as usize;
                self.deed(Deed::Stopping)?;
                self.nodes.etcd.kill(member);
                sleep(self.dice.up_to(NODE_LEASE));
                self.await_answers(&all)?;
                self.nodes.etcd.restart(member).map_err(io::Error::other)?;
            }
        }
        Ok(())
    }

    fn deed(&self, deed: Deed) -> io::Result<()> {
        self.pen.deed(&Who::from(SERVICE), deed)
    }

    /// Waits until these nodes welcome clients of all partitions.
    fn await_answers(&self, numbers: &[usize]) -> io::Result<()> {
        let url = self.nodes.url_of(numbers);
        for partition in 0..PARTITIONS {
            let connect = Locks::connect(&url).partition(format!("p{partition}")).retry();
            let asked = async {
                let locks = connect.timeout(PATIENCE).await?;
                locks.disconnect().await;
                Ok::<_, navlocks::ConnectError>(())
            };
            block_on(asked).map_err(|error| io::Error::other(error.to_string()))?;
        }
        self.deed(Deed::Answered)
    }
}

/// The lines about one partition: tokens of another one may be the same.
fn part(history: &History, number: u64) -> History {
    let concerns = |line: &&Line| match &line.what {
        What::Request(..) => partition(&line.who) == number,
        _ => true,
    };
    History { lines: history.lines.iter().filter(concerns).cloned().collect() }
}

#[test]
fn clients_of_a_cluster_keep_locks_and_places_whatever_becomes_of_nodes_and_etcd() {
    let seed = seed();
    println!("NAVLOCKS_SEED={seed}");
    let time = chaos_time(Duration::from_secs(40));
    let folder = Folder::new("clustered");
    let mut nodes = Nodes::start("clustered-nodes", NODES, MEMBERS);
    let recruit = recruit(folder.path(), nodes.url());
    let path = folder.path().to_path_buf();
    let conducted =
        thread::spawn(move || Conductor::new(&path, seed, plan(time), None, recruit)?.conduct());
    let pen = Pen::new(folder.path(), Who::from("vandal")).expect("a record");
    let mut vandal = Vandal { nodes: &mut nodes, pen, dice: Dice::new(seed, u64::MAX) };
    let (begin, mut strikes) = (Instant::now(), 0);
    // Each in turn, from one that the dice choose.
    let first = vandal.dice.roll(FAULTS.len() as u64) as usize;
    while begin.elapsed() < time {
        let fault = FAULTS[(first + strikes) % FAULTS.len()];
        vandal.strike(fault).expect("the cluster comes back");
        strikes += 1;
        // Slots move back under load; then grace has the time to end now and then.
        vandal.nodes.await_balance(NODES);
        sleep(rest(&mut vandal.dice, time));
    }
    let ended = conducted.join().expect("no panic").expect("all can be started and written");
    let mut survivors = 0;
    let mut violations = Vec::new();
    for number in 0..PARTITIONS {
        let history = part(&ended.history, number);
        let weight = Weight::of(&history);
        println!("partition {number}: {weight}");
        survivors += weight.survivors;
        violations.extend(check(&history).iter().map(ToString::to_string));
    }
    println!("{strikes} faults, {} other deeds, {survivors} locks outlived a kill", ended.deeds);
    println!("locks lost, by cause: {:?}", losses(&ended.history));
    assert!(violations.is_empty(), "{}\n{:?}", violations.join("\n"), ended.stuck);
    assert_eq!((&ended.failed, &ended.stuck), (&vec![], &vec![]));
    assert!(survivors > 0, "no lock outlived a kill");
}
