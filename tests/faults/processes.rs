//! Real processes under a conductor, without a service: their records are complete, and the checker
//! sees that nothing excludes them.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use navlocks::Locks;
use navlocks_tests::chaos::{
    Client, Conductor, Dice, Errand, Habits, Plan, Service, chaos_time, seed,
};
use navlocks_tests::check::{Violation, Weight, check};
use navlocks_tests::record::{
    Deed, History, Line, Mode, Moment, Pen, SERVICE, Step, Wait, What, Who,
};

use crate::folder::Folder;

const RECORDER: &str = env!("CARGO_BIN_EXE_recorder");

fn habits(rounds: u32) -> Habits {
    Habits {
        names: ["a", "b", "c"].map(Into::into).into(),
        rounds,
        steals: 30,
        forces: 60,
        hold: Duration::from_millis(2),
        wait: Duration::from_millis(4),
    }
}

fn plan(clients: u64, time: Duration) -> Plan {
    Plan {
        clients,
        time,
        pause: Duration::from_millis(40),
        service: 8,
        stop: Duration::from_millis(100),
        patience: Duration::from_secs(10),
        endurance: Duration::ZERO,
        outage: Duration::from_millis(100),
    }
}

fn announced_seed() -> u64 {
    let seed = seed();
    println!("NAVLOCKS_SEED={seed}");
    seed
}

/// Sends each client to the same locks.
fn recruit(folder: &Path, url: String) -> impl FnMut(&Who, u64) -> io::Result<Command> + 'static {
    let folder = folder.to_path_buf();
    move |who, seed| {
        let (who, folder, url) = (who.clone(), folder.clone(), url.clone());
        let habits = habits(u32::MAX);
        let partition = String::new();
        Errand { who, folder, url, partition, seed, tasks: 2, habits, lease: None }
            .command(Path::new(RECORDER))
    }
}

/// Several clients of one lock space, in this process: the same clients, with locks that are known
/// to be correct.
#[test]
fn clients_of_one_lock_space_have_no_violation() {
    let folder = Folder::new("one-lock-space");
    let (seed, locks) = (announced_seed(), Locks::new());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut playing = Vec::new();
        for number in 0..8 {
            let pen = Pen::new(folder.path(), Who::from(&*format!("c{number}"))).unwrap();
            let client = Client::new(locks.new_client(), pen, habits(150));
            playing.push(tokio::spawn(client.play(Dice::new(seed, number))));
        }
        for client in playing {
            client.await.unwrap().unwrap();
        }
    });
    let conductor = Pen::new(folder.path(), Who::from("conductor")).unwrap();
    conductor
        .write(Moment::now(), What::Over { patience: Duration::ZERO, endurance: Duration::MAX })
        .unwrap();
    let history = History::read(folder.path()).unwrap();
    let weight = Weight::of(&history);
    println!("{weight}");
    assert_eq!(check(&history), []);
    assert_eq!((weight.requests, weight.unanswered), (8 * 150, 0));
    assert!(weight.sure > 200 && weight.turns > 10 && weight.robberies > 10);
}

/// Processes without a common service violate every rule of a service.
#[test]
fn processes_without_a_service_have_two_holders() {
    let folder = Folder::new("without-a-service");
    let plan = plan(6, chaos_time(Duration::from_secs(1)));
    let recruit = recruit(folder.path(), "local:".into());
    let conductor = Conductor::new(folder.path(), announced_seed(), plan, None, recruit).unwrap();
    let ended = conductor.conduct().unwrap();
    println!("{}", Weight::of(&ended.history));
    assert!(
        ended.failed.is_empty() && ended.stuck.is_empty(),
        "{:?} {:?}",
        ended.failed,
        ended.stuck
    );
    let violations = check(&ended.history);
    let found = |is: fn(&Violation) -> bool| violations.iter().any(is);
    assert!(found(|violation| matches!(violation, Violation::TwoHolders { .. })));
    assert!(found(|violation| matches!(violation, Violation::TokenRepeated { .. })));
    // Each of them is served, and its record is valid up to the kill.
    assert!(!found(|violation| matches!(
        violation,
        Violation::LostWaiters { .. } | Violation::Nonsense { .. }
    )));
    assert!(has_deed(&ended.history, |deed| deed == Deed::Killed));
    assert!(has_deed(&ended.history, |deed| deed == Deed::Continued));
    assert!(ended.deeds > 0);
}

fn has_deed(history: &History, is: fn(Deed) -> bool) -> bool {
    history.lines.iter().any(|line| matches!(line.what, What::Deed(_, deed) if is(deed)))
}

/// Starts a process that does nothing: as a client it never finishes, as a service it always
/// answers.
fn idler() -> Command {
    let mut idler = Command::new("sleep");
    idler.arg("600").stdin(Stdio::null());
    idler
}

#[test]
fn unfinished_client_is_reported_with_its_requests() {
    let folder = Folder::new("does-not-finish");
    let path: PathBuf = folder.path().into();
    let recruit = move |who: &Who, _| {
        let asked =
            Step::Asked { names: vec!["a".into()], mode: Mode::Exclusive, wait: Wait::Queue };
        Pen::new(&path, who.clone())?.step(1, asked)?;
        Ok(idler())
    };
    let plan = Plan { patience: Duration::from_millis(100), ..plan(1, Duration::ZERO) };
    let conductor = Conductor::new(folder.path(), announced_seed(), plan, None, recruit).unwrap();
    let ended = conductor.conduct().unwrap();
    assert_eq!(ended.stuck, [Who::from("c1")]);
    let found: Vec<String> = check(&ended.history).iter().map(ToString::to_string).collect();
    assert_eq!(found, ["lost waiters: nothing blocks c1#1"]);
}

struct Idle;

impl Service for Idle {
    fn url(&self) -> String {
        "local:".into()
    }

    fn start(&mut self) -> io::Result<Child> {
        idler().spawn()
    }

    fn answers(&mut self) -> bool {
        true
    }
}

#[test]
fn service_killed_and_stopped_answers_again() {
    let folder = Folder::new("service");
    let plan = Plan { service: 1, ..plan(1, Duration::from_millis(500)) };
    let recruit = recruit(folder.path(), Idle.url());
    let service: Option<Box<dyn Service>> = Some(Box::new(Idle));
    let conductor =
        Conductor::new(folder.path(), announced_seed(), plan, service, recruit).unwrap();
    let history = conductor.conduct().unwrap().history;
    let of_service = |line: &Line| match &line.what {
        What::Deed(whom, deed) if &*whom.0 == SERVICE => Some(*deed),
        _ => None,
    };
    let deeds: Vec<Deed> = history.lines.iter().filter_map(of_service).collect();
    assert!(deeds.starts_with(&[Deed::Started, Deed::Answered]));
    let restart = [Deed::Killing, Deed::Killed, Deed::Started, Deed::Answered];
    let pause = [Deed::Stopping, Deed::Answered];
    let mut rest = &deeds[2..];
    assert!(!rest.is_empty());
    while !rest.is_empty() {
        let next = rest.strip_prefix(&restart).or_else(|| rest.strip_prefix(&pause));
        rest = next.unwrap_or_else(|| panic!("{rest:?}"));
    }
}

#[test]
fn recorder_with_a_malformed_argument_fails() {
    let said = |arguments: &[&str]| {
        let output = Command::new(RECORDER).args(arguments).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said(&[]).starts_with("recorder: usage: recorder ERRAND"));
    assert!(said(&["{}"]).starts_with("recorder: this is no errand: missing field"));
    let folder = Folder::new("wrong-errand");
    let errand = |folder: &Path, url: &str| Errand {
        who: Who::from("c1"),
        folder: folder.into(),
        partition: String::new(),
        url: url.into(),
        lease: None,
        seed: 1,
        tasks: 1,
        habits: habits(1),
    };
    let argument = |errand: Errand| {
        let command = errand.command(Path::new(RECORDER)).unwrap();
        command.get_args().next().unwrap().to_str().unwrap().to_owned()
    };
    let nowhere = argument(errand(&folder.path().join("missing"), "local:"));
    assert!(said(&[&nowhere]).starts_with("recorder: c1: No such file"));
    let unknown = argument(errand(folder.path(), "gopher:"));
    assert!(said(&[&unknown]).starts_with("recorder: c1: "));
}
