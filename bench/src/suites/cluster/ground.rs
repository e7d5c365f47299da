//! The cluster that is measured: three members of etcd, and three nodes.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks_etcd::{Address as EtcdAddress, ClusterView, Inspection, TlsFiles, slot_of};
use tokio::runtime::Runtime;

use servers::{Address, EtcdMembers, NavlocksNodes};

/// Far above what a cluster takes to come to rest.
const REST_MAX: Duration = Duration::from_secs(60);

/// A cluster that runs.
pub(crate) struct Ground {
    pub(super) runtime: Rc<Runtime>,
    pub(crate) nodes: RefCell<NavlocksNodes>,
    /// Outlives the nodes.
    pub(super) members: EtcdMembers,
}

impl Ground {
    /// Starts it. A node lease of none means the default.
    pub(super) fn start(
        runtime: Rc<Runtime>,
        node_lease: Option<Duration>,
    ) -> Result<Self, String> {
        Self::start_by(runtime, |etcd| NavlocksNodes::start(3, etcd, node_lease))
    }

    /// Starts etcd, and nodes on its address.
    pub(crate) fn start_by(
        runtime: Rc<Runtime>,
        start: impl FnOnce(&str) -> Result<NavlocksNodes, String>,
    ) -> Result<Self, String> {
        let members = EtcdMembers::start(3, &[])?;
        let nodes = start(&format!("etcd://{}", members.addresses().join(",")))?;
        let ground = Self { runtime, nodes: RefCell::new(nodes), members };
        ground.await_balance()?;
        Ok(ground)
    }

    /// Reads nodes and slots from etcd.
    fn view(&self) -> Result<ClusterView, String> {
        let etcd = format!("etcd://{}", self.members.addresses().join(","));
        let address = EtcdAddress::parse(&etcd).map_err(|error| error.to_string())?;
        let inspection =
            Inspection::new(&address, &TlsFiles::default()).map_err(|error| error.to_string())?;
        self.runtime.block_on(inspection.look()).map_err(|error| error.to_string())
    }

    /// Waits until all nodes are there and no slot will move.
    pub(super) fn await_balance(&self) -> Result<(), String> {
        let start = Instant::now();
        let count = self.nodes.borrow().addresses().len();
        loop {
            let view = self.view();
            let rests = |view: &ClusterView| view.nodes.len() == count && view.is_balanced();
            if view.as_ref().is_ok_and(rests) {
                return Ok(());
            }
            if start.elapsed() > REST_MAX {
                return Err(format!("the cluster does not come to rest: {view:?}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The node that owns the locks of programs, by its number.
    pub(super) fn owner(&self) -> Result<usize, String> {
        let view = self.view()?;
        let slot = slot_of(&["", "", ""], view.slots.len() as u32) as usize;
        let owner = view.slots[slot].address.clone().unwrap_or_default();
        let nodes = self.nodes.borrow();
        let is_owner = |address: &Address| matches!(address, Address::Tcp(address) if owner == format!("ws://{address}"));
        let found = nodes.addresses().iter().position(is_owner);
        found.ok_or_else(|| "no node owns the locks".to_owned())
    }

    /// How often etcd was written, ever.
    pub(super) fn revision(&self) -> io::Result<i64> {
        self.runtime.block_on(async {
            let failed = io::Error::other::<etcd_client::Error>;
            let mut etcd = etcd_client::Client::connect(self.members.addresses(), None)
                .await
                .map_err(failed)?;
            // Any answer has the revision.
            let answer = etcd.get("/nothing", None).await.map_err(failed)?;
            Ok(answer.header().map_or(0, etcd_client::ResponseHeader::revision))
        })
    }

    /// The list of nodes for clients.
    pub(crate) fn url(&self) -> String {
        let nodes = self.nodes.borrow();
        let addresses: Vec<String> = nodes
            .addresses()
            .iter()
            .filter_map(|address| match address {
                Address::Tcp(address) => Some(address.to_string()),
                Address::Unix(_) => None,
            })
            .collect();
        format!("ws://{}", addresses.join(","))
    }
}
