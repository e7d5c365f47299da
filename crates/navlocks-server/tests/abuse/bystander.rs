//! A client of another tenant, which is never refused and never loses its lock.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use navlocks_server::{Access, Config};
use navlocks_wire::{Reply, ToClient, Welcome};
use tokio_tungstenite::tungstenite;

use crate::client::{Client, Stream, handshake, tcp_stream};
use crate::process::Process;

pub(crate) const ABUSER: &str = "0123456789abcdef-abuser";
pub(crate) const BYSTANDER: &str = "0123456789abcdef-bystander";

const LEASE: Duration = Duration::from_secs(3600);

/// Two tenants, whose leases are so long that a slow machine ends no session of a trial.
pub(crate) fn with_tenants(config: &mut Config) {
    let tokens = format!("abuser:{ABUSER}\nbystander:{BYSTANDER}\n");
    config.access = Access::from_text(&tokens).expect("tokens");
    config.limits.lease_default = LEASE;
    config.limits.lease_max = LEASE;
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

/// The most processor time that a service takes before it answers the bystander. Time by the clock
/// would depend on what else the machine does.
const WORK_MAX: Duration = Duration::from_secs(2);

/// A client of another tenant, which holds one lock all the time, asks for others, and comes anew
/// again and again.
pub(crate) struct Bystander {
    _alone: MutexGuard<'static, ()>,
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Bystander {
    /// Watches a service in the process of the test.
    pub(crate) fn watch(address: SocketAddr) -> Self {
        Self::new(address, || Duration::ZERO)
    }

    /// Watches a service whose work is measured.
    pub(crate) fn beside(service: &Process) -> Self {
        let id = service.id();
        Self::new(service.tcp, move || processor_time(id))
    }

    fn new(address: SocketAddr, work: impl Fn() -> Duration + Send + 'static) -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        // One trial at a time, so that no other one takes the processor.
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let over = Arc::new(AtomicBool::new(false));
        let until = over.clone();
        let thread = std::thread::spawn(move || {
            let (mut client, _) = join(address, BYSTANDER);
            let token = client.hold(1, "kept");
            let mut id = 1;
            loop {
                let last = until.load(Ordering::Acquire);
                id += 1;
                let before = work();
                client.hold(id, "turn");
                let worked = work() - before;
                assert!(worked < WORK_MAX, "the service worked for {worked:?} before it answered");
                client.say(format!(r#"{{"end":{id}}}"#));
                let (mut other, _) = join(address, BYSTANDER);
                other.say(format!(r#"{{"open":{{"client":1,"partition":"{id}"}}}}"#));
                other.say(r#"{"request":{"id":1,"client":1,"names":["a"]}}"#);
                other.granted(1);
                other.say("\"bye\"");
                if last {
                    break;
                }
            }
            client.say(r#"{"ask":{"id":1,"question":{"locks":"partition"}}}"#);
            let ToClient::Answer(answer) = client.hear() else { panic!("not an answer") };
            let Reply::Locks { held, .. } = answer.reply else { panic!("not a snapshot") };
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

/// Returns the processor time that a process has used.
fn processor_time(id: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).expect("it runs");
    let (_, fields) = stat.rsplit_once(')').expect("a name in brackets");
    // In hundredths of a second: the time in the program and in the system.
    let ticks = fields.split_whitespace().skip(11).take(2);
    Duration::from_millis(ticks.map(|it| it.parse::<u64>().expect("a number") * 10).sum())
}
