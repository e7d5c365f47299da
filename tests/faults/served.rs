//! Client processes of a real service, killed and stopped.

use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use navlocks_server::{Address, Config, Service};
use navlocks_tests::chaos::{Conductor, Ended, Errand, Habits, Plan, chaos_time, seed};
use navlocks_tests::check::{Weight, check};
use navlocks_tests::record::Who;
use tokio::sync::oneshot;

use crate::folder::Folder;

/// The shortest lease that a service gives, so that it lapses often.
const LEASE: Duration = Duration::from_secs(1);
/// The longest time that a client holds a lock.
const HOLD: Duration = Duration::from_millis(5);

/// A service in this process. It ends when dropped.
struct Served {
    url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Served {
    fn start(config: Config) -> Self {
        let (tell, told) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let service = Service::bind(config).await?;
                let url = match &service.addresses()[0] {
                    Address::Unix(path) => format!("unix:{}", path.display()),
                    Address::Tcp(address) => format!("ws://{address}"),
                };
                // The receiver is gone if the test has failed.
                let _ = tell.send(url);
                service.run(async { drop(stopped.await) }).await
            })
        });
        let url = told.recv().expect("the service starts");
        Self { url, stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(Ok(ended)) = self.thread.take().map(JoinHandle::join)
            && !thread::panicking()
        {
            ended.expect("the service ends in good order");
        }
    }
}

/// Sends each client to the same service, with these names, times and lease.
pub(crate) fn recruit(
    folder: &Path,
    url: String,
    (names, hold, wait): (u32, Duration, Duration),
    lease: Duration,
) -> impl FnMut(&Who, u64) -> io::Result<Command> + 'static {
    let folder = folder.to_path_buf();
    move |who, seed| {
        let habits = Habits {
            names: (0..names).map(|name| format!("n{name:02}").into()).collect(),
            rounds: u32::MAX,
            steals: 40,
            forces: 80,
            hold,
            wait,
        };
        let (who, folder, url) = (who.clone(), folder.clone(), url.clone());
        let partition = String::new();
        let lease = Some(lease);
        let errand = Errand { who, folder, url, partition, lease, seed, tasks: 2, habits };
        errand.command(Path::new(env!("CARGO_BIN_EXE_recorder")))
    }
}

/// Disturbs clients; a stop lasts up to `stop`, and locks outlast shorter absences than the
/// endurance.
fn disturb(folder: &Folder, config: Config, stop: Duration, endurance: Duration) {
    let seed = seed();
    println!("NAVLOCKS_SEED={seed}");
    let served = Served::start(config);
    let plan = Plan {
        clients: 12,
        time: chaos_time(Duration::from_secs(5)),
        pause: Duration::from_millis(300),
        service: 1,
        stop,
        patience: Duration::from_secs(10),
        endurance,
        outage: stop,
    };
    let recruit = recruit(folder.path(), served.url.clone(), (8, HOLD, 10 * HOLD), LEASE);
    let conductor =
        Conductor::new(folder.path(), seed, plan, None, recruit).expect("all can be started");
    assert_right(&conductor.conduct().expect("all can be started and written"));
}

/// Asserts that no violation was found, all clients finished, and there was enough to check.
pub(crate) fn assert_right(ended: &Ended) {
    let weight = Weight::of(&ended.history);
    println!("{} deeds; {weight}", ended.deeds);
    let violations: Vec<String> = check(&ended.history).iter().map(ToString::to_string).collect();
    assert!(violations.is_empty(), "{}\n{:?}", violations.join("\n"), ended.stuck);
    assert_eq!((&ended.failed, &ended.stuck), (&vec![], &vec![]));
    assert!(weight.sure > weight.locks / 4 && weight.turns > 0 && weight.robberies > 0);
}

#[test]
fn clients_over_tcp_are_killed_and_stopped_beyond_their_lease() {
    let folder = Folder::new("over-tcp");
    let tcp = vec!["127.0.0.1:0".parse().unwrap()];
    disturb(&folder, Config::default().with(|it| it.tcp = tcp), 4 * LEASE, Duration::ZERO);
}

/// A stopped client keeps its locks here, and the others wait.
#[test]
fn clients_over_a_unix_socket_are_killed_and_stopped() {
    let folder = Folder::new("over-unix");
    let service = Folder::new("over-unix-service");
    let unix = Some(service.path().join("own/socket"));
    disturb(&folder, Config::default().with(|it| it.unix = unix), LEASE / 4, Duration::MAX);
}
