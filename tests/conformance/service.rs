//! A service for one test, on its own thread, for the arms that use a socket.

use std::thread::{self, JoinHandle};

use navlocks::{DeadlockPolicy, Locks};
use navlocks_server::{Address, Config, Service};
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::patience::soon;

/// A service that ends when it is dropped.
pub(crate) struct Running {
    url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// The folder of its socket.
    _folder: TempDir,
}

/// The transport of its clients.
#[derive(Clone)]
pub(crate) enum Transport {
    Unix,
    Tcp,
    /// To a node of the cluster in this etcd, by its name.
    Node(navlocks_etcd::Address, &'static str),
}

impl Running {
    pub(crate) fn start(deadlocks: DeadlockPolicy, transport: Transport) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut config = Config::default().with(|config| config.deadlocks = deadlocks);
        match &transport {
            Transport::Unix => config.unix = Some(folder.path().join("own/navlocks.sock")),
            Transport::Tcp | Transport::Node(..) => {
                config.tcp = vec!["127.0.0.1:0".parse().expect("an address")];
            }
        }
        let (tell, receiver) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let mut service = Service::bind(config).await.expect("the socket is free");
                if let Transport::Node(etcd, name) = transport {
                    service = join(service, etcd, name).await;
                }
                tell.send(service.addresses().to_vec()).expect("the test waits for it");
                let stopped = async { drop(stopped.await) };
                service.run(stopped).await.expect("the service ends in good order");
            });
        });
        let addresses = receiver.recv().expect("the service has begun");
        let url = match &addresses[..] {
            [Address::Unix(path)] => format!("unix:{}", path.display()),
            [Address::Tcp(address)] => format!("ws://{address}"),
            other => panic!("one address was asked for, not {other:?}"),
        };
        Self { url, stop: Some(stop), thread: Some(thread), _folder: folder }
    }

    /// Makes a connection.
    pub(crate) fn client(&self) -> Locks {
        soon(Locks::connect(&self.url)).expect("the service can be reached")
    }

    /// Where it listens.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

/// Makes a service that is bound a node of a cluster.
async fn join(service: Service, etcd: navlocks_etcd::Address, name: &str) -> Service {
    let [Address::Tcp(address)] = service.addresses() else { panic!("one address") };
    let config = navlocks_etcd::Config::new(etcd, name, &format!("ws://{address}"));
    let config = config.with(|config| config.slots = SLOTS);
    let node = navlocks_etcd::Node::join(config).await.expect("etcd answers");
    service.into_node(Box::new(node)).expect("the clock is right")
}

/// Enough that each node has some.
const SLOTS: u32 = 12;

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        // A failing test has printed its reason already.
        if !thread::panicking() {
            ended.expect("there was a thread").expect("the service did not panic");
        }
    }
}
