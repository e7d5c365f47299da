//! A cluster of three nodes on a real etcd, for the arms whose clients are spread over all nodes.
//!
//! Tests share nodes, because a cluster takes seconds to start. Each has a partition of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use navlocks::{DeadlockPolicy, Locks};
use navlocks_etcd::{Address, Inspection, TlsFiles};
use servers::EtcdMembers;

use crate::patience::soon;
use crate::service::{Running, Transport};

/// A partition of a test's own, in a cluster that it shares.
pub(crate) struct Space {
    cluster: Arc<Cluster>,
    partition: String,
    clients: AtomicUsize,
}

impl Space {
    /// In a cluster on so many members of etcd.
    pub(crate) fn start(members: usize, deadlocks: DeadlockPolicy) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (partition, clients) = (format!("test {number}"), AtomicUsize::new(number));
        Self { cluster: Cluster::shared(members, deadlocks), partition, clients }
    }

    /// A new client, which knows the node after that of the last one.
    pub(crate) fn client(&self) -> Locks {
        let nodes = &self.cluster.nodes;
        let node = &nodes[self.clients.fetch_add(1, Ordering::Relaxed) % nodes.len()];
        let connect = Locks::connect(node.url()).partition(&self.partition);
        soon(connect.into_future()).expect("a node can be reached, and an owner behind it")
    }
}

/// Three nodes, which end when the last test that uses them does.
struct Cluster {
    nodes: [Running; 3],
    /// Outlives the nodes.
    _etcd: Arc<Etcd>,
}

impl Cluster {
    /// The cluster with this policy.
    fn shared(members: usize, deadlocks: DeadlockPolicy) -> Arc<Self> {
        static CLUSTERS: Shared<(usize, DeadlockPolicy), Cluster> = Mutex::new(Vec::new());
        shared(&CLUSTERS, (members, deadlocks), || Self::start(members, deadlocks))
    }

    fn start(members: usize, deadlocks: DeadlockPolicy) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let etcd = Etcd::shared(members);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let address = Address::parse(&format!("etcd://{}/{number}", etcd.members)).unwrap();
        let start = |name| Running::start(deadlocks, Transport::Node(address.clone(), name));
        let nodes = ["n1", "n2", "n3"].map(start);
        await_balance(&address);
        Self { nodes, _etcd: etcd }
    }
}

/// Values that tests share, as long as one of them uses each.
type Shared<K, T> = Mutex<Vec<(K, Weak<T>)>>;

fn shared<K: Copy + PartialEq, T>(all: &Shared<K, T>, key: K, start: impl FnOnce() -> T) -> Arc<T> {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    let known = all.iter().find(|(its, _)| *its == key);
    known.and_then(|(_, one)| one.upgrade()).unwrap_or_else(|| {
        all.retain(|(_, one)| one.strong_count() > 0);
        let one = Arc::new(start());
        all.push((key, Arc::downgrade(&one)));
        one
    })
}

/// Waits until each slot is where it stays.
fn await_balance(address: &Address) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let inspection = Inspection::new(address, &TlsFiles::default()).expect("an address");
        while !inspection.look().await.is_ok_and(|view| view.is_balanced()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
}

/// Members of one etcd. They end with the thread that started them.
struct Etcd {
    members: String,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Etcd {
    fn shared(count: usize) -> Arc<Self> {
        static ETCDS: Shared<usize, Etcd> = Mutex::new(Vec::new());
        shared(&ETCDS, count, || Self::start(count))
    }

    fn start(count: usize) -> Self {
        let (tell, told) = mpsc::channel();
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            let members = EtcdMembers::start_in_memory(count).expect("etcd starts");
            tell.send(members.addresses().join(",")).expect("a test waits for it");
            let _ended = stopped.recv();
        });
        let members = told.recv().expect("etcd starts");
        Self { members, stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}
