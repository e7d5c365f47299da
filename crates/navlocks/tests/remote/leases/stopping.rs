//! A process that is stopped for longer than its lease, and continues.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use std::future::IntoFuture as _;

use navlocks::Locks;
use navlocks::blocking::block_on;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::peer::{Peer, leased_for};
use crate::run;

const LEASE_MS: u64 = 1600;
const LEASE: Duration = Duration::from_millis(LEASE_MS);
const URL: &str = "NAVLOCKS_TEST_STOPPED_URL";
/// The prefix of the child's output; its test runner writes more.
const SAYS: &str = "child: ";

/// The process that is stopped: this program again, for this test alone.
struct Stopped {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Stopped {
    fn start(url: &str) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .args(["--exact", "leases::stopping::child", "--ignored", "--nocapture"])
            .env(URL, url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        Self { child, lines }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Returns the next line of its output.
    fn says(&mut self) -> String {
        let mut lines = self.lines.by_ref().map(|line| line.expect("text"));
        lines.find_map(|line| Some(line.split_once(SAYS)?.1.to_owned())).expect("an answer")
    }

    fn go_on(&mut self) {
        self.child.stdin.as_mut().expect("its input").write_all(b"\n").expect("it listens");
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // The test failed; otherwise the child has ended.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

#[test]
fn process_stopped_beyond_its_lease_knows_the_loss_when_it_continues() {
    run(async {
        let peer = Peer::tcp().await;
        let mut stopped = Stopped::start(&peer.url());
        let mut talk = peer.begins(leased_for(7, LEASE_MS)).await;
        assert_eq!(talk.hear_request().await.id, 1);
        talk.grants(1, 1).await;
        assert_eq!(talk.hear_request().await.id, 2);
        assert_eq!(stopped.says(), "held");
        kill_process(stopped.pid(), Signal::STOP).unwrap();
        let (_, status) = waitpid(Some(stopped.pid()), WaitOptions::UNTRACED).unwrap().unwrap();
        assert!(status.stopped(), "{status:?}");
        let last_heard_at_most = Instant::now();
        // The stopped child cannot read these messages now: a grant, and the line that lets it
        // continue later.
        talk.grants(2, 2).await;
        thread::sleep((last_heard_at_most + LEASE).saturating_duration_since(Instant::now()));
        // From here on another client may hold the lock.
        stopped.go_on();
        kill_process(stopped.pid(), Signal::CONT).unwrap();
        assert_eq!(stopped.says(), "loss Some(LeaseLapsed)");
        assert_eq!(stopped.says(), "released Err(LeaseLapsed)");
        // The pending request is sent again, and the earlier grant is void.
        let mut talk = peer.begins(leased_for(8, 60_000)).await;
        assert_eq!(talk.hear_request().await.id, 2);
        talk.grants(2, 20).await;
        tokio::task::spawn_blocking(move || {
            assert_eq!(stopped.says(), "granted #20");
            assert!(stopped.child.wait().unwrap().success());
        })
        .await
        .unwrap();
    });
}

#[test]
#[ignore = "the process that another test stops"]
fn child() {
    let Ok(url) = std::env::var(URL) else { return };
    let locks = block_on(Locks::connect(url).into_future()).unwrap();
    let lock = locks.request("a").lock_blocking().unwrap();
    let waiter = thread::spawn({
        let locks = locks.clone();
        move || locks.request("b").lock_blocking().unwrap().fencing_token()
    });
    println!("{SAYS}held");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    println!("{SAYS}loss {:?}", lock.loss());
    println!("{SAYS}released {:?}", lock.release());
    println!("{SAYS}granted {:?}", waiter.join().unwrap());
    block_on(locks.disconnect());
}
