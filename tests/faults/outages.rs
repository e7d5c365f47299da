//! Outages of a real service, one by one, and their effect on locks and waiters.

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use navlocks::blocking::block_on;
use navlocks::{Lock, Locks, RequestError, RequestErrorKind};
use navlocks_tests::chaos::Service as _;
use rustix::process::Signal;

use crate::folder::Folder;
use crate::serve::{NAVLOCKS, Running, Served};

/// Longer than any step here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Makes a client of the service that waits for it for ever.
fn client(served: &Served) -> Locks {
    block_on(Locks::connect(served.url()).unreachable_after(None).into_future())
        .expect("the service answers")
}

fn request(locks: &Locks, name: &str, time: Duration) -> Result<Lock, RequestError> {
    block_on(locks.request(name).timeout(time).into_future())
}

fn hold(locks: &Locks, name: &str) -> Lock {
    request(locks, name, PATIENCE).expect("it is granted")
}

/// Asserts that a name is not granted for a while.
fn assert_held(locks: &Locks, name: &str) {
    match request(locks, name, Duration::from_millis(400)) {
        Err(error) if matches!(error.kind(), RequestErrorKind::TimedOut { .. }) => {}
        Err(error) if error == RequestErrorKind::Unreachable => {}
        outcome => panic!("{name} should be held: {outcome:?}"),
    }
}

fn wait_on_a_thread(locks: &Locks, name: &'static str) -> JoinHandle<Result<Lock, RequestError>> {
    let locks = locks.clone();
    thread::spawn(move || request(&locks, name, PATIENCE))
}

/// Waits until this many requests are pending.
fn await_pending(locks: &Locks, count: usize) {
    let begin = Instant::now();
    loop {
        let pending = block_on(locks.query()).map_or(0, |snapshot| snapshot.pending.len());
        if pending == count {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{pending} of {count} requests are pending");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a command under a lock, in its own process: it prints when it holds the lock, and ends
/// with its input.
fn holder(served: &Served, name: &str) -> Running {
    let mut child = Command::new(NAVLOCKS)
        .args(["run", "--url", &served.url(), name, "--", "sh", "-c", "echo held; cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut line = String::new();
    let output = child.stdout.take().expect("a pipe");
    BufReader::new(output).read_line(&mut line).expect("it says something");
    assert_eq!(line, "held\n");
    Running(child)
}

#[test]
fn stopped_holder_keeps_its_lock_over_a_second_kill_while_its_claim_is_awaited() {
    let folder = Folder::new("second-kill");
    let mut served = Served::unix(folder.path());
    let service = served.run();
    let mut held = holder(&served, "x");
    held.signal(Signal::STOP);
    service.kill();
    for _ in 0..2 {
        let service = served.run();
        let other = client(&served);
        // Unrelated names are granted at once.
        drop(hold(&other, "y"));
        assert_held(&other, "x");
        service.kill();
    }
    let _service = served.run();
    let other = client(&served);
    held.signal(Signal::CONT);
    let waiting = wait_on_a_thread(&other, "x");
    await_pending(&other, 1);
    let recovering = || block_on(other.unclaimed_sessions()).expect("an answer").len();
    let begin = Instant::now();
    while recovering() > 0 {
        assert!(begin.elapsed() < PATIENCE, "the holder does not claim");
        thread::sleep(Duration::from_millis(5));
    }
    assert!(!waiting.is_finished());
    drop(held.0.stdin.take());
    assert!(held.0.wait().expect("it ends").success(), "its lock was never lost");
    drop(waiting.join().expect("no panic").expect("the lock is free"));
}

#[test]
fn locks_and_their_order_outlive_a_crash_loop() {
    let folder = Folder::new("crash-loop");
    let mut served = Served::unix(folder.path());
    let service = served.run();
    let (first, others) = (client(&served), [client(&served), client(&served), client(&served)]);
    let lock = hold(&first, "x");
    let mut waiting = Vec::new();
    for (number, other) in others.iter().enumerate() {
        waiting.push(wait_on_a_thread(other, "x"));
        await_pending(&first, number + 1);
    }
    service.kill();
    for round in 0..12 {
        let running = Running(served.start().expect("the service starts"));
        // At any moment: before it listens, while claims arrive, after.
        thread::sleep(Duration::from_millis(7 * round));
        running.kill();
    }
    let _service = served.run();
    await_pending(&first, 3);
    assert_eq!(lock.loss(), None);
    let mut token = lock.fencing_token();
    lock.release().expect("it was not lost");
    for waiter in waiting {
        let next = waiter.join().expect("no panic").expect("its turn comes");
        assert!(next.fencing_token() > token, "waiters keep their order");
        token = next.fencing_token();
        next.release().expect("it was not lost");
    }
}

#[test]
fn terminated_and_restarted_service_loses_no_lock() {
    for unix in [true, false] {
        let folder = Folder::new(if unix { "terminated" } else { "terminated-tcp" });
        let mut served = match unix {
            true => Served::unix(folder.path()),
            false => Served::tcp(folder.path()).expect("a port"),
        };
        let mut service = served.run();
        let (first, second) = (client(&served), client(&served));
        let lock = hold(&first, "x");
        let waiting = wait_on_a_thread(&second, "x");
        await_pending(&second, 1);
        for _ in 0..3 {
            service.signal(Signal::TERM);
            assert!(service.0.wait().expect("it ends").success());
            service = served.run();
        }
        await_pending(&second, 1);
        assert_eq!(lock.loss(), None);
        lock.release().expect("it was not lost");
        drop(waiting.join().expect("no panic").expect("the lock is free"));
    }
}

/// A file that cannot grow simulates a full disk.
#[test]
fn full_disk_refuses_new_requests_and_loses_nothing() {
    let folder = Folder::new("full-disk");
    let mut served = Served::unix(folder.path());
    // The tables have 256 KiB from the start, for 4,095 requests.
    served.started_by(&["bash", "-c", "trap '' XFSZ; ulimit -f 256; exec \"$0\" \"$@\""]);
    let service = served.run();
    let locks = client(&served);
    let held = hold(&locks, "x");
    let mut locked = Vec::new();
    let error = loop {
        let name = format!("n{}", locked.len());
        match request(&locks, &name, PATIENCE) {
            Ok(lock) => locked.push(lock),
            Err(error) => break error.to_string(),
        }
        assert!(locked.len() < 5_000, "the table cannot grow beyond its first part");
    };
    assert!(error.contains("its disk is full"), "{error}");
    assert!(locked.len() > 4_000, "{}", locked.len());
    // A release frees space.
    locked.pop();
    locked.push(hold(&locks, "again"));
    service.kill();
    served.started_by(&[]);
    let _service = served.run();
    let other = client(&served);
    assert_held(&other, "x");
    locked.push(hold(&locks, "more"));
    assert!(locked.iter().chain([&held]).all(|lock| lock.loss().is_none()));
}

/// Mounts a small file system at this path, in a namespace that ends with the returned process.
fn mount_ext4(image: &Path, path: &Path) -> Option<Running> {
    fs::create_dir(path).expect("a folder");
    let script = "truncate -s 4M \"$0\" && mkfs.ext4 -q \"$0\" && mount -o loop \"$0\" \"$1\" \
        && chmod 700 \"$1\" && echo mounted && exec cat";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script]).arg(image).arg(path);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut mounting = Running(child.ok()?);
    let mut line = String::new();
    let output = mounting.0.stdout.take().expect("a pipe");
    BufReader::new(output).read_line(&mut line).expect("a line or its end");
    (line == "mounted\n").then_some(mounting)
}

/// On ext4 a growth that fails leaves the file longer by the part that had room.
#[test]
fn disk_that_was_full_once_costs_no_lock_at_later_kills() {
    let folder = Folder::new("full-ext4");
    let mut served = Served::unix(folder.path());
    let Some(mounting) = mount_ext4(&folder.path().join("image"), &served.state()) else {
        println!("skipped: this user cannot mount a file system");
        return;
    };
    let pid = mounting.0.id().to_string();
    served.started_by(&["nsenter", "-m", "-t", &pid]);
    let service = served.run();
    let locks = client(&served);
    let mut locked = vec![hold(&locks, "x")];
    let state = format!("/proc/{pid}/root{}", served.state().display());
    let filler = Path::new(&state).join("filler");
    let mut file = fs::File::create(&filler).expect("a file");
    while file.write_all(&[1; 4096]).is_ok() {}
    let length = file.metadata().expect("it is a file").len();
    file.set_len(length - (64 << 10)).expect("a little room");
    let error = loop {
        match request(&locks, &format!("n{}", locked.len()), PATIENCE) {
            Ok(lock) => locked.push(lock),
            Err(error) => break error.to_string(),
        }
        assert!(locked.len() < 5_000, "the table cannot grow beyond its first part");
    };
    assert!(error.contains("its disk is full"), "{error}");
    drop(file);
    fs::remove_file(filler).expect("it goes");
    service.kill();
    for round in 0..2 {
        let service = served.run();
        assert_held(&client(&served), "x");
        // The table grows now.
        locked.push(hold(&locks, &format!("more{round}")));
        service.kill();
    }
    assert!(locked.iter().all(|lock| lock.loss().is_none()));
}

#[derive(Clone, Copy, Debug)]
enum Damage {
    Missing(&'static str),
    Cut(&'static str),
    Garbage(&'static str),
}

impl Damage {
    fn strike(self, folder: &Path) {
        let (Self::Missing(name) | Self::Cut(name) | Self::Garbage(name)) = self;
        let path = folder.join(name);
        let file = OpenOptions::new().write(true).open(&path).expect("the file is there");
        let length = file.metadata().expect("it is a file").len();
        match self {
            Self::Missing(_) => fs::remove_file(path).expect("it goes"),
            Self::Cut(_) => file.set_len(length - length / 3).expect("it is cut"),
            Self::Garbage(_) => {
                let garbage: Vec<u8> = (0..length).map(|at| (at * 37 % 251) as u8 | 8).collect();
                // The header of a table stays intact: a page after it was torn.
                let from = if length > 4096 { 64 } else { 0 };
                file.write_all_at(&garbage[from as usize..], from).expect("it is written");
            }
        }
    }
}

/// Without its records a service refuses claims, and grants nothing until all holders must know.
#[test]
fn damaged_records_lose_locks_but_never_make_two_holders() {
    const LONGEST: Duration = Duration::from_secs(2);
    let damages = [
        Damage::Missing("service.json"),
        Damage::Cut("service.json"),
        Damage::Garbage("service.json"),
        Damage::Missing("sessions.table"),
        Damage::Cut("sessions.table"),
        Damage::Garbage("sessions.table"),
        Damage::Missing("requests.table"),
        Damage::Cut("requests.table"),
        Damage::Garbage("requests.table"),
    ];
    let trials: Vec<JoinHandle<()>> = damages
        .into_iter()
        .enumerate()
        .map(|(number, damage)| {
            thread::spawn(move || {
                let folder = Folder::new(&format!("damage-{number}"));
                let served = Served::tcp(folder.path()).expect("a port");
                let mut served = served.with(&["--lease", "2s", "--lease-max", "2s"]);
                let service = served.run();
                let first = client(&served);
                let lock = hold(&first, "x");
                let token = lock.fencing_token();
                service.kill();
                damage.strike(&served.state());
                let begin = Instant::now();
                let _service = served.run();
                let other = client(&served);
                let free = hold(&other, "y");
                assert!(begin.elapsed() >= LONGEST, "{damage:?}: {:?}", begin.elapsed());
                let next = hold(&other, "x");
                assert!(lock.loss().is_some(), "{damage:?}: the holder was not told");
                assert!(next.fencing_token() > token, "{damage:?}: tokens shrank");
                drop(free);
            })
        })
        .collect();
    for trial in trials {
        trial.join().expect("as above");
    }
}

/// A network path that can swallow all later data of its connections. New connections are carried.
struct Way {
    url: String,
    connections: Arc<Mutex<Vec<Arc<AtomicBool>>>>,
}

impl Way {
    fn to(served: &Served) -> Self {
        let service = served.url().trim_start_matches("ws://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("ws://{}", listener.local_addr().expect("it is bound"));
        let connections = Arc::<Mutex<Vec<Arc<AtomicBool>>>>::default();
        let all = connections.clone();
        // The threads end with the test program.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(service) = TcpStream::connect(&service) else { continue };
                let swallows = Arc::<AtomicBool>::default();
                all.lock().expect("no panic").push(swallows.clone());
                let pairs = [(&client, &service), (&service, &client)];
                for (from, to) in pairs.map(|(from, to)| (from.try_clone(), to.try_clone())) {
                    let (from, to) = (from.expect("a socket"), to.expect("a socket"));
                    let swallows = swallows.clone();
                    thread::spawn(move || carry(from, to, &swallows));
                }
            }
        });
        Self { url, connections }
    }

    fn swallow(&self) {
        for swallows in &*self.connections.lock().expect("no panic") {
            swallows.store(true, Ordering::Relaxed);
        }
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, swallows: &AtomicBool) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if !swallows.load(Ordering::Relaxed) && to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    if !swallows.load(Ordering::Relaxed) {
        // The other side may have closed it before.
        let _ = to.shutdown(std::net::Shutdown::Both);
    }
}

#[test]
fn lock_outlives_a_swallowed_connection_and_the_service_behind_it() {
    let folder = Folder::new("swallowed");
    let mut served = Served::tcp(folder.path()).expect("a port").with(&["--lease", "4s"]);
    let service = served.run();
    let way = Way::to(&served);
    let first =
        block_on(Locks::connect(&way.url).unreachable_after(None).into_future()).expect("a way");
    let other = client(&served);
    let lock = hold(&first, "x");
    let waiting = wait_on_a_thread(&other, "x");
    await_pending(&other, 1);
    way.swallow();
    // The client does not learn of this end.
    service.kill();
    let _service = served.run();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(6) {
        assert_eq!(lock.loss(), None);
        assert!(!waiting.is_finished());
        thread::sleep(Duration::from_millis(50));
    }
    lock.release().expect("it was not lost");
    drop(waiting.join().expect("no panic").expect("the lock is free"));
}

/// The clock of a running process cannot be moved, but its successor can have another one. Only
/// durations may be stored.
#[test]
fn service_whose_clock_jumps_between_two_starts_keeps_locks() {
    let ahead = ["unshare", "--time", "--boottime", "360000", "--monotonic", "360000"];
    let works = Command::new(ahead[0]).args(&ahead[1..]).arg("true").status();
    if !works.is_ok_and(|status| status.success()) {
        return servers::skip("this user cannot make a time namespace");
    }
    for unix in [true, false] {
        let folder = Folder::new(if unix { "clock" } else { "clock-tcp" });
        let mut served = match unix {
            true => Served::unix(folder.path()),
            false => Served::tcp(folder.path()).expect("a port"),
        };
        let service = served.run();
        let first = client(&served);
        let lock = hold(&first, "x");
        service.kill();
        // The clock is ahead, and then back.
        for starter in [&ahead[..], &[]] {
            served.started_by(starter);
            let service = served.run();
            let other = client(&served);
            assert_held(&other, "x");
            assert_eq!(lock.loss(), None);
            service.kill();
        }
    }
}
