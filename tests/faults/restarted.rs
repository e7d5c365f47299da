//! Fifty client processes and the service as a process: killed, stopped, stolen from and restarted.

use std::time::Duration;

use navlocks_tests::chaos::{Conductor, Plan, Service, chaos_time, seed};
use navlocks_tests::check::Weight;
use navlocks_tests::record::{Deed, Line, SERVICE, What, Who};

use crate::folder::Folder;
use crate::serve::Served;
use crate::served::{assert_right, recruit};

/// Long enough for a machine that is busy with fifty processes.
const LEASE: Duration = Duration::from_secs(6);
/// The rest of a lease when a ping is due, less the time to connect to a busy service.
const ENDURANCE: Duration = Duration::from_secs(2);

/// The longest times that a client holds a lock, and waits for one.
const HOLD: Duration = Duration::from_secs(4);
const WAIT: Duration = Duration::from_secs(2);

fn disturb(folder: &Folder, service: Served, endurance: Duration) {
    let seed = seed();
    println!("NAVLOCKS_SEED={seed}");
    let plan = Plan {
        clients: 50,
        time: chaos_time(Duration::from_secs(15)),
        pause: Duration::from_millis(300),
        service: 4,
        stop: Duration::from_secs(1),
        patience: Duration::from_secs(30),
        endurance,
        outage: Duration::from_millis(500),
    };
    let recruit = recruit(folder.path(), service.url(), (40, HOLD, WAIT), LEASE);
    let conductor = Conductor::new(folder.path(), seed, plan, Some(Box::new(service)), recruit)
        .expect("all can be started");
    let ended = conductor.conduct().expect("all can be started and written");
    assert_right(&ended);
    let restarts = ended.history.lines.iter().filter(|line| is_restart(line)).count();
    let survivors = Weight::of(&ended.history).survivors;
    println!("{restarts} restarts, {survivors} locks outlived one");
    assert!(survivors >= restarts, "{survivors} locks outlived {restarts} restarts");
}

fn is_restart(line: &Line) -> bool {
    matches!(&line.what, What::Deed(who, Deed::Killed) if *who == Who::from(SERVICE))
}

#[test]
fn locks_over_tcp_outlive_a_service_that_is_killed_again_and_again() {
    let (folder, memory) = (Folder::new("restarted"), Folder::new("restarted-service"));
    disturb(&folder, Served::tcp(memory.path()).unwrap(), ENDURANCE);
}

/// A session here has no lease, so no absence loses a lock.
#[test]
fn locks_over_a_unix_socket_outlive_a_service_that_is_killed_again_and_again() {
    let (folder, memory) = (Folder::new("restarted-unix"), Folder::new("restarted-own"));
    disturb(&folder, Served::unix(memory.path()), Duration::MAX);
}
