//! Clients of one tenant that take all they can. A bystander of another tenant is never refused and
//! never loses its lock.

use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use navlocks_server::{Access, Config, Limits};
use navlocks_wire::{FaultCode, Reply, ToClient, Welcome};
use tokio_tungstenite::tungstenite;

use crate::client::{Client, Stream, handshake, tcp_stream, unix_stream};
use crate::running::Running;

pub(crate) const ABUSER: &str = "0123456789abcdef-abuser";
const BYSTANDER: &str = "0123456789abcdef-bystander";

fn with_tenants(config: &mut Config) {
    let tokens = format!("abuser:{ABUSER}\nbystander:{BYSTANDER}\n");
    config.access = Access::from_text(&tokens).expect("tokens");
}

/// A connection of the tenant with this token, which has not said hello.
pub(crate) fn connect(address: SocketAddr, token: &str) -> Client {
    let mut request = handshake();
    let header = format!("Bearer {token}").parse().expect("a header");
    request.headers_mut().insert("Authorization", header);
    let stream: Box<dyn Stream> = Box::new(tcp_stream(address));
    match tungstenite::client::client(request, stream) {
        Ok((socket, _)) => Client(socket),
        Err(error) => panic!("the handshake failed: {error}"),
    }
}

/// A session of the tenant with this token.
pub(crate) fn join(address: SocketAddr, token: &str) -> (Client, Welcome) {
    let mut client = connect(address, token);
    let welcome = client.hello();
    (client, welcome)
}

/// A client of another tenant, which holds one lock all the time, asks for others, and comes anew
/// again and again.
pub(crate) struct Bystander {
    _alone: MutexGuard<'static, ()>,
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Bystander {
    pub(crate) fn watch(address: SocketAddr) -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        // One trial at a time, so that no other one takes the processor.
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let over = Arc::new(AtomicBool::new(false));
        let until = over.clone();
        let thread = std::thread::spawn(move || {
            let mut client = connect(address, BYSTANDER);
            client.say(r#"{"hello":{"version":1,"lease-ms":2000}}"#);
            client.welcome();
            let token = client.hold(1, "kept");
            let mut id = 1;
            loop {
                let last = until.load(Ordering::Acquire);
                id += 1;
                client.hold(id, "turn");
                client.say(format!(r#"{{"release":{id}}}"#));
                let (mut other, _) = join(address, BYSTANDER);
                other.say(format!(r#"{{"open":{{"client":1,"partition":"{id}"}}}}"#));
                other.say(r#"{"request":{"id":1,"client":1,"names":["a"]}}"#);
                other.granted(1);
                other.say("\"bye\"");
                if last {
                    break;
                }
            }
            client.say(r#"{"ask":{"id":1,"question":"query"}}"#);
            let ToClient::Answer(answer) = client.hear() else { panic!("not an answer") };
            let Reply::Snapshot { held, .. } = answer.reply else { panic!("not a snapshot") };
            assert!(
                held.iter().any(|info| info.token == Some(token)),
                "the lock is lost: {held:?}"
            );
        });
        Self { _alone: alone, over, thread }
    }

    /// Ends, after it was served all the time.
    pub(crate) fn served_well(self) {
        self.over.store(true, Ordering::Release);
        self.thread.join().expect("the bystander is served all the time");
    }
}

#[track_caller]
fn refused_by_limit(client: &mut Client) -> String {
    match client.hear() {
        ToClient::Refused(refused) if refused.fault.code == FaultCode::Limit => {
            refused.fault.message
        }
        other => panic!("not refused: {other:?}"),
    }
}

/// A number that the service shows to operators.
fn metric(unix: &std::path::Path, name: &str) -> u64 {
    let mut stream = unix_stream(unix);
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("the service listens");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("metrics");
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("navlocks_{name} ")));
    line.expect("the metric").parse().expect("a number")
}

#[test]
fn sessions_of_one_tenant_leave_room_for_others() {
    let service = Running::with(|config| {
        with_tenants(config);
        config.limits.sessions_max = 40;
        config.limits.sessions_per_tenant_max = 20;
    });
    let bystander = Bystander::watch(service.tcp());
    let mut refused = 0;
    for _ in 0..60 {
        let mut client = connect(service.tcp(), ABUSER);
        client.say(r#"{"hello":{"version":1,"lease-ms":60000}}"#);
        match client.hear() {
            // The connection breaks, and the session stays for its lease.
            ToClient::Welcome(_) => {}
            ToClient::Error(fault) => {
                assert_eq!(fault.code, FaultCode::Limit, "{fault}");
                refused += 1;
            }
            other => panic!("neither welcome nor refused: {other:?}"),
        }
    }
    assert_eq!(refused, 40);
    Client::unix(service.unix()).hold(1, "a");
    bystander.served_well();
}

#[test]
fn partition_beyond_the_share_is_refused_alone_and_the_session_goes_on() {
    let service = Running::with(|config| {
        with_tenants(config);
        config.limits.partitions_max = 20;
        config.limits.partitions_per_tenant_max = 10;
    });
    let bystander = Bystander::watch(service.tcp());
    let (mut client, _) = join(service.tcp(), ABUSER);
    let token = client.hold(1, "kept");
    client.say_all((1..=30).map(|n| format!(r#"{{"open":{{"client":{n},"partition":"{n}"}}}}"#)));
    client.say(r#"{"request":{"id":2,"client":9,"names":["a"]}}"#);
    client.granted(2);
    client.say(r#"{"request":{"id":3,"client":10,"names":["a"]}}"#);
    let message = refused_by_limit(&mut client);
    assert!(message.starts_with("the tenant has 10 partitions"), "{message}");
    client.say(r#"{"ask":{"id":1,"client":30,"question":"query"}}"#);
    let ToClient::Answer(answer) = client.hear() else { panic!("not an answer") };
    assert!(matches!(answer.reply, Reply::Refused(fault) if fault.code == FaultCode::Limit));
    client.say(r#"{"listen":30}"#);
    assert_eq!(client.hear(), ToClient::Listening(30));
    // A partition that is closed makes room for another one.
    client.say_all([
        r#"{"close":30}"#,
        r#"{"close":9}"#,
        r#"{"open":{"client":31,"partition":"x"}}"#,
    ]);
    client.say(r#"{"request":{"id":4,"client":31,"names":["a"]}}"#);
    assert!(client.granted(4) > token);
    bystander.served_well();
}

#[test]
fn connection_without_a_token_gives_way_to_later_ones() {
    let service = Running::with(|config| {
        with_tenants(config);
        config.limits.connections_max = 50;
        config.limits.strangers_max = 8;
        config.limits.stranger_time_min = Duration::from_millis(20);
    });
    let bystander = Bystander::watch(service.tcp());
    let silent: Vec<_> = (0..200).map(|_| tcp_stream(service.tcp())).collect();
    Client::unix(service.unix()).hold(1, "a");
    join(service.tcp(), BYSTANDER).0.hold(1, "a");
    assert!(metric(service.unix(), "strangers") <= 8);
    bystander.served_well();
    drop(silent);
}

#[test]
fn connections_of_one_tenant_leave_room_for_others() {
    let service = Running::with(|config| {
        with_tenants(config);
        config.limits.connections_max = 60;
        config.limits.connections_per_tenant_max = 30;
    });
    let bystander = Bystander::watch(service.tcp());
    let mut kept = Vec::new();
    for number in 0..100 {
        let mut client = connect(service.tcp(), ABUSER);
        if number >= 30 {
            assert_eq!(client.error().0, FaultCode::Limit);
        } else {
            kept.push(client);
        }
    }
    Client::unix(service.unix()).hold(1, "a");
    bystander.served_well();
}

#[test]
fn requests_and_bytes_of_one_tenant_leave_room_for_others() {
    let service = Running::with(|config| {
        with_tenants(config);
        config.limits.requests_per_tenant_max = 50;
        config.limits.bytes_per_tenant_max = 100_000;
    });
    let bystander = Bystander::watch(service.tcp());
    let (mut first, _) = join(service.tcp(), ABUSER);
    let (mut second, _) = join(service.tcp(), ABUSER);
    for id in 1..=25 {
        first.hold(id, &format!("first {id}"));
        second.hold(id, &format!("second {id}"));
    }
    first.say(r#"{"request":{"id":26,"names":["a"]}}"#);
    assert_eq!(refused_by_limit(&mut first), "the tenant has 50 requests, and takes no more");
    first.say_all((1..=25).map(|id| format!(r#"{{"release":{id}}}"#)));
    // A thousand short names take far more memory than their text.
    let names: Vec<String> = (0..1000).map(|n| format!("\"{n}\"")).collect();
    first.say(format!(r#"{{"request":{{"id":27,"names":[{}]}}}}"#, names.join(",")));
    let message = refused_by_limit(&mut first);
    assert!(message.contains("of the tenant take 100000 bytes"), "{message}");
    first.hold(28, "a");
    bystander.served_well();
}

/// A service in a process of its own, with the default limits, so that its memory can be measured.
pub(crate) struct Process {
    child: Child,
    pub(crate) tcp: SocketAddr,
    pub(crate) unix: PathBuf,
    /// A closed pipe would end it.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Process {
    pub(crate) fn start() -> Self {
        let program = std::env::current_exe().expect("the test's own program");
        let mut child = Command::new(program)
            .args(["--exact", "trials::process_of_a_trial", "--nocapture", "--ignored"])
            .env("NAVLOCKS_TRIAL", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the process starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let line = lines.by_ref().map_while(Result::ok).find(|line| line.starts_with("trial on "));
        let line = line.expect("the service starts");
        let (tcp, unix) = line["trial on ".len()..].split_once(' ').expect("two addresses");
        let tcp = tcp.parse().expect("an address");
        Self { child, tcp, unix: unix.into(), _output: lines }
    }

    /// Its memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a size");
        let kilobytes: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kilobytes << 10
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ended = self.child.wait();
    }
}

/// Not a test: what [`Process`] runs until its standard input is closed.
#[test]
#[ignore = "the process of other tests"]
fn process_of_a_trial() {
    if std::env::var_os("NAVLOCKS_TRIAL").is_none() {
        return;
    }
    let service = Running::with(with_tenants);
    println!("\ntrial on {} {}", service.tcp(), service.unix().display());
    let _closed = std::io::stdin().read_to_end(&mut Vec::new());
    service.kill();
}

/// A request for a thousand names of this text, numbered.
fn thousand(id: u64, mode: &str, text: &str) -> String {
    let names: Vec<String> = (0..1000).map(|n| format!("\"{n}{text}\"")).collect();
    format!(r#"{{"request":{{"id":{id},"mode":"{mode}","names":[{}]}}}}"#, names.join(","))
}

#[test]
fn event_for_many_subscribers_is_written_once() {
    let service = Process::start();
    let bystander = Bystander::watch(service.tcp);
    let before = service.memory();
    let mut subscribers: Vec<Client> = (0..1000)
        .map(|_| {
            let (mut client, _) = join(service.tcp, ABUSER);
            client.listen();
            client
        })
        .collect();
    let (mut client, _) = join(service.tcp, ABUSER);
    // Two events of 900,000 bytes for each of a thousand subscribers, which do not read.
    client.say(thousand(1, "exclusive", &"x".repeat(900)));
    client.granted(1);
    client.settle();
    // Each has a piece in its buffer, and all have the text together.
    let used = service.memory() - before;
    assert!(used < 256 << 20, "{used} bytes are used");
    let text = subscribers[0].hear_text();
    assert!(text.starts_with(r#"{"event":{"client":0,"about":"#) && text.len() > 900_000);
    bystander.served_well();
}

#[test]
fn answer_beyond_the_limit_is_refused_before_it_is_built() {
    let service = Process::start();
    let bystander = Bystander::watch(service.tcp);
    let (mut client, _) = join(service.tcp, ABUSER);
    // A control character takes six bytes in JSON.
    for id in 1..=20 {
        client.say(thousand(id, "shared", &"\\u0001".repeat(100)));
        client.granted(id);
    }
    let before = service.memory();
    let mut askers: Vec<Client> = (0..60).map(|_| join(service.tcp, ABUSER).0).collect();
    for asker in &mut askers {
        asker.say_all((0..10).map(|id| format!(r#"{{"ask":{{"id":{id},"question":"query"}}}}"#)));
    }
    for asker in &mut askers {
        for _ in 0..10 {
            let ToClient::Answer(answer) = asker.hear() else { panic!("not an answer") };
            assert!(
                matches!(answer.reply, Reply::Refused(fault) if fault.code == FaultCode::Limit)
            );
        }
    }
    let used = service.memory() - before;
    assert!(used < 64 << 20, "{used} bytes are used");
    bystander.served_well();
}

#[test]
fn askers_of_one_moment_share_an_answer() {
    let service = Process::start();
    let (mut client, _) = join(service.tcp, ABUSER);
    for id in 1..=2000 {
        client.hold(id, &format!("name {id}"));
    }
    let before = metric(&service.unix, "snapshots_total");
    client.say_all((0..64).map(|id| format!(r#"{{"ask":{{"id":{id},"question":"query"}}}}"#)));
    for _ in 0..64 {
        let ToClient::Answer(answer) = client.hear() else { panic!("not an answer") };
        let Reply::Snapshot { held, .. } = answer.reply else { panic!("not a snapshot") };
        assert_eq!(held.len(), 2000);
    }
    let built = metric(&service.unix, "snapshots_total") - before;
    assert!(built < 64, "{built} answers were built");
    // What changed is seen at once.
    client.say(r#"{"release":1}"#);
    client.say(r#"{"ask":{"id":99,"question":"query"}}"#);
    let ToClient::Answer(answer) = client.hear() else { panic!("not an answer") };
    let Reply::Snapshot { held, .. } = answer.reply else { panic!("not a snapshot") };
    assert_eq!(held.len(), 1999);
}

#[test]
fn answers_left_unread_are_bounded_for_a_tenant() {
    let service = Process::start();
    let bystander = Bystander::watch(service.tcp);
    let (mut client, _) = join(service.tcp, ABUSER);
    for id in 1..=1000 {
        client.hold(id, &format!("{id}{}", "x".repeat(4000)));
    }
    let before = service.memory();
    let mut askers: Vec<Client> = (0..160)
        .map(|_| {
            let (mut asker, _) = join(service.tcp, ABUSER);
            asker.say(r#"{"open":{"client":1}}"#);
            asker.say(r#"{"ask":{"id":1,"question":"query"}}"#);
            // Makes the next answer another one.
            asker.say(r#"{"request":{"id":1,"client":1,"names":["y"],"mode":"shared"}}"#);
            asker
        })
        .collect();
    client.settle();
    let max = Limits::default().unread_bytes_per_tenant_max;
    let used = service.memory() - before;
    assert!(used < 2 * max, "{used} bytes are used");
    let refused = |asker: &mut Client| asker.hear_text().contains(r#""refused":{"code":"limit""#);
    assert!(!refused(&mut askers[0]));
    assert!(refused(&mut askers[159]));
    bystander.served_well();
}

#[test]
fn search_for_deadlocks_looks_at_a_bounded_number_of_entries() {
    let service = Process::start();
    let bystander = Bystander::watch(service.tcp);
    let (mut client, _) = join(service.tcp, ABUSER);
    client.hold(1, "0");
    for id in 2..=1000 {
        client.say(thousand(id, "shared", ""));
    }
    client.settle();
    let before = service.memory();
    client.say_all((0..100).map(|id| format!(r#"{{"ask":{{"id":{id},"question":"deadlocks"}}}}"#)));
    for _ in 0..100 {
        let ToClient::Answer(answer) = client.hear() else { panic!("not an answer") };
        assert!(matches!(answer.reply, Reply::Refused(fault) if fault.code == FaultCode::Limit));
    }
    let used = service.memory() - before;
    assert!(used < 64 << 20, "{used} bytes are used");
    bystander.served_well();
}

#[test]
fn memory_of_requests_is_counted_as_it_is_used() {
    let service = Process::start();
    let bystander = Bystander::watch(service.tcp);
    let before = service.memory();
    let max = Limits::default().bytes_per_tenant_max;
    let mut taken = 0;
    let mut clients = Vec::new();
    'full: loop {
        let (mut client, _) = join(service.tcp, ABUSER);
        for id in 1..=1000 {
            client.say(thousand(id, "shared", ""));
            match client.hear() {
                ToClient::Granted(_) => taken += 1,
                ToClient::Refused(refused) => {
                    assert_eq!(refused.fault.code, FaultCode::Limit);
                    if refused.fault.message.contains("tenant") {
                        break 'full;
                    }
                    break;
                }
                other => panic!("neither granted nor refused: {other:?}"),
            }
        }
        clients.push(client);
    }
    assert!(taken > 1000, "only {taken} requests of a thousand names are taken");
    let used = service.memory() - before;
    assert!(used < 2 * max, "{used} bytes are used, and {max} is the limit");
    bystander.served_well();
}

#[test]
fn subscription_in_turn_with_its_end_copies_the_partition_once() {
    let service = Process::start();
    let bystander = Bystander::watch(service.tcp);
    let (mut client, _) = join(service.tcp, ABUSER);
    for batch in 0..50 {
        let ids = batch * 1000 + 1..=batch * 1000 + 1000;
        client.say_all(
            ids.clone().map(|id| format!(r#"{{"request":{{"id":{id},"names":["{id}"]}}}}"#)),
        );
        for id in ids {
            client.granted(id);
        }
    }
    let mut others: Vec<Client> = (0..8).map(|_| join(service.tcp, ABUSER).0).collect();
    for other in &mut others {
        other.say_all(
            (0..1000).map(|n| if n % 2 == 0 { r#"{"listen":0}"# } else { r#"{"unlisten":0}"# }),
        );
    }
    for other in &mut others {
        (0..500).for_each(|_| assert_eq!(other.hear(), ToClient::Listening(0)));
    }
    bystander.served_well();
}

#[test]
fn watchers_for_contention_are_told_once_each_and_hold_nobody_up() {
    let service = Process::start();
    let bystander = Bystander::watch(service.tcp);
    let mut watchers = Vec::new();
    for _ in 0..2 {
        let (mut client, _) = join(service.tcp, ABUSER);
        for batch in 0..100_u64 {
            let ids = batch * 1000 + 1..=batch * 1000 + 1000;
            client.say_all(ids.clone().flat_map(|id| {
                let request =
                    format!(r#"{{"request":{{"id":{id},"names":["a"],"mode":"shared"}}}}"#);
                [request, format!(r#"{{"contention":{id}}}"#)]
            }));
            for id in ids {
                client.granted(id);
            }
        }
        watchers.push(client);
    }
    let (mut other, _) = join(service.tcp, ABUSER);
    other.say(r#"{"request":{"id":1,"names":["a"]}}"#);
    for watcher in &mut watchers {
        for _ in 0..100_000 {
            assert!(matches!(watcher.hear(), ToClient::Contended(_)));
        }
    }
    bystander.served_well();
}
