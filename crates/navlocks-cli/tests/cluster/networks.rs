//! Nodes behind networks that do not lead everywhere.

use std::fs::DirBuilder;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use crate::nodes::{Holder, Node, etcd, owner, slots};

/// The way to a node. When it is cut, other nodes get through and clients do not.
struct Way {
    url: String,
    node: Arc<OnceLock<String>>,
    is_cut: Arc<AtomicBool>,
    clients: Arc<Mutex<Vec<TcpStream>>>,
}

impl Way {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let way = Self {
            url: format!("ws://{}", listener.local_addr().expect("it is bound")),
            node: Arc::default(),
            is_cut: Arc::default(),
            clients: Arc::default(),
        };
        let (node, is_cut, clients) = (way.node.clone(), way.is_cut.clone(), way.clients.clone());
        // The threads end with the test program.
        thread::spawn(move || {
            for from in listener.incoming().flatten() {
                let (node, is_cut, clients) = (node.clone(), is_cut.clone(), clients.clone());
                thread::spawn(move || lead(from, &node, &is_cut, &clients));
            }
        });
        way
    }

    /// Lets clients through again, and waits for one.
    fn heal(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
        while self.clients.lock().expect("no panic").is_empty() {
            thread::yield_now();
        }
    }

    /// Cuts the clients off, those that are connected too.
    fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        for client in self.clients.lock().expect("no panic").drain(..) {
            // It may have ended before.
            let _ended = client.shutdown(Shutdown::Both);
        }
    }
}

fn lead(
    mut from: TcpStream,
    node: &OnceLock<String>,
    is_cut: &AtomicBool,
    clients: &Mutex<Vec<TcpStream>>,
) {
    let mut head = vec![0; 4096];
    let Ok(count @ 1..) = from.read(&mut head) else { return };
    let is_node = String::from_utf8_lossy(&head[..count]).contains("navlocks-cluster");
    if !is_node {
        let mut clients = clients.lock().expect("no panic");
        if is_cut.load(Ordering::SeqCst) {
            return;
        }
        clients.push(from.try_clone().expect("a socket"));
    }
    let Ok(mut to) = TcpStream::connect(node.wait().trim_start_matches("ws://")) else { return };
    let ways = [from.try_clone().expect("a socket"), to.try_clone().expect("a socket")];
    let [mut back_to, mut back_from] = ways;
    thread::spawn(move || {
        let _broken = std::io::copy(&mut back_from, &mut back_to);
        let _ended = back_to.shutdown(Shutdown::Both);
    });
    let _broken = to.write_all(&head[..count]).and_then(|()| std::io::copy(&mut from, &mut to));
    let _ended = to.shutdown(Shutdown::Both);
}

#[test]
fn owner_cut_from_clients_keeps_its_slots_and_another_node_carries() {
    let etcd = etcd();
    let start = |name| {
        let way = Way::new();
        let node = Node::start_with(&etcd, name, &["--advertise", &way.url]);
        way.node.set(node.url.clone()).expect("once");
        (node, way)
    };
    let nodes = ["n1", "n2"].map(start);
    while slots(&etcd).len() < 2 || slots(&etcd).contains(&0) {
        thread::yield_now();
    }
    let urls = nodes.each_ref().map(|(_, way)| way.url.as_str()).join(",");
    let mut holder = Holder::start(&urls, "x");
    let token = holder.token();
    let name = owner(&etcd);
    let cut = nodes.iter().find(|(node, _)| node.name == name).expect("one of them");
    cut.1.cut();
    let mut other = Holder::start(&urls, "y");
    other.token();
    let mut waiter = Holder::start(&urls, "x");
    assert_eq!(holder.finish(), Some(0), "its lock was not lost");
    assert!(waiter.token() > token);
    assert_eq!(owner(&etcd), name, "the owner did not change");
    cut.1.heal();
    assert_eq!((waiter.finish(), other.finish()), (Some(0), Some(0)));
}

/// Makes a certificate for this machine.
fn certificate(folder: &Path) -> (PathBuf, PathBuf) {
    let (certificate, key) = (folder.join("node.pem"), folder.join("node.key"));
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
    openssl.args(["-nodes", "-days", "60", "-subj", "/CN=localhost"]);
    openssl.args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]);
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    openssl.arg("-keyout").arg(&key).arg("-out").arg(&certificate);
    let output = openssl.output().expect("openssl runs");
    assert!(output.status.success(), "{output:?}");
    (certificate, key)
}

#[test]
fn node_carries_messages_to_the_owner_over_tls() {
    let etcd = etcd();
    let folder = std::env::temp_dir().join(format!("navlocks-carry-{}", std::process::id()));
    DirBuilder::new().mode(0o700).create(&folder).expect("a folder");
    let (certificate, key) = certificate(&folder);
    let (certificate, key) = (certificate.display().to_string(), key.display().to_string());
    let socket = |name: &str| folder.join(name).join("socket").display().to_string();
    let start = |name: &str| {
        let port = servers::Address::free_port().expect("a port").to_string();
        let (url, socket) = (format!("wss://{port}"), socket(name));
        DirBuilder::new().mode(0o700).create(folder.join(name)).expect("a folder");
        let tls = ["--tls-cert", &certificate, "--tls-key", &key, "--node-ca-file", &certificate];
        let places = ["--listen", &port, "--advertise", &url, "--socket", &socket];
        Node::start_with(&etcd, name, &[&tls[..], &places].concat())
    };
    let nodes = ["n1", "n2"].map(start);
    assert!(nodes.iter().all(|node| node.url.starts_with("wss://")));
    while slots(&etcd).len() < 2 || slots(&etcd).contains(&0) {
        thread::yield_now();
    }
    let holders = nodes.each_ref().map(|node| {
        // A client of a Unix socket stays there, so one of the two is carried.
        let url = format!("unix:{}", socket(&node.name));
        let mut holder = Holder::start(&url, "x");
        let token = holder.token();
        assert_eq!(holder.finish(), Some(0));
        token
    });
    assert!(holders.is_sorted(), "one owner grants: {holders:?}");
    drop(nodes);
    std::fs::remove_dir_all(&folder).expect("it goes");
}
