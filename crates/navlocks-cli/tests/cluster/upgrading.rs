//! Nodes that are restarted one after the other under load, as an upgrade does it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;

use servers::EtcdMembers;

use crate::nodes::{Holder, Node, PROGRAM, cluster, etcd, run_of, shown, three_of, urls};

/// Names the command of an earlier version, which `./test soak` builds.
const EARLIER: &str = "NAVLOCKS_EARLIER";

const HOLDERS: usize = 6;
const WORKERS: usize = 2;

/// Workers that take one lock in turn, and check that no other holds it.
struct Load {
    ends: Arc<AtomicBool>,
    taken: Arc<AtomicU32>,
    workers: Vec<JoinHandle<()>>,
    folder: PathBuf,
}

impl Load {
    fn start(program: &str, urls: &str) -> Self {
        // The ports of its nodes are its own.
        let port = urls.trim_end_matches('/').rsplit(':').next().expect("a port");
        let folder = std::env::temp_dir().join(format!("navlocks-load-{port}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (ends, taken) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let worker = |_| {
            let (program, urls, mark) = (program.to_owned(), urls.to_owned(), folder.join("held"));
            let (ends, taken) = (ends.clone(), taken.clone());
            std::thread::spawn(move || {
                while !ends.load(Ordering::Relaxed) {
                    hold_alone(&program, &urls, &mark);
                    taken.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        let workers = (0..WORKERS).map(worker).collect();
        Self { ends, taken, workers, folder }
    }

    /// Waits until the lock was taken twice more, so that one of them began after now.
    fn goes_on(&self) {
        let before = self.taken.load(Ordering::Relaxed);
        while self.taken.load(Ordering::Relaxed) < before + 1 + WORKERS as u32 {
            assert!(!self.workers.iter().any(JoinHandle::is_finished), "a worker failed");
            std::thread::yield_now();
        }
    }

    fn end(self) -> u32 {
        self.ends.store(true, Ordering::Relaxed);
        for worker in self.workers {
            worker.join().expect("each of its locks was granted, and held alone");
        }
        std::fs::remove_dir_all(self.folder).expect("the folder goes");
        self.taken.load(Ordering::Relaxed)
    }
}

/// Takes the lock for a command that fails if another one runs.
fn hold_alone(program: &str, urls: &str, mark: &Path) {
    let mark = mark.to_str().expect("a path in UTF-8");
    let command = format!("mkdir {mark} && rmdir {mark}");
    let output = run_of(program, urls, &["busy", "--", "sh", "-c", &command]);
    assert!(output.status.success(), "{output:?}");
}

fn await_slots(etcd: &EtcdMembers, name: &str, has: impl Fn(u64) -> bool) {
    loop {
        let shown = shown(etcd);
        let mut nodes = shown["nodes"].as_array().expect("nodes").iter();
        let node = nodes.find(|node| node["name"] == *name);
        if node.and_then(|node| node["slots"].as_u64()).is_some_and(&has) {
            return;
        }
        std::thread::yield_now();
    }
}

/// Replaces nodes of a command, whose clients are of the same command, by nodes of this one.
fn upgrade_from(earlier: &str) {
    let etcd = etcd();
    let mut nodes = three_of(earlier, &etcd);
    let urls = urls(&nodes);
    let start = |index| Holder::start_of(earlier, &urls, &format!("held {index}"));
    let mut holders: Vec<Holder> = (0..HOLDERS).map(start).collect();
    let tokens: Vec<u64> = holders.iter_mut().map(Holder::token).collect();
    let mut waiters: Vec<Holder> = (0..HOLDERS).map(start).collect();
    let load = Load::start(earlier, &urls);
    for _ in 0..nodes.len() {
        load.goes_on();
        let node = nodes.remove(0);
        assert!(cluster(&etcd, &["drain", &node.name]).status.success());
        await_slots(&etcd, &node.name, |slots| slots == 0);
        let node = Node::restart(node, &etcd);
        assert!(cluster(&etcd, &["undrain", &node.name]).status.success());
        await_slots(&etcd, &node.name, |slots| slots > 0);
        nodes.push(node);
    }
    load.goes_on();
    hold_alone(PROGRAM, &urls, &load.folder.join("of this version"));
    assert!(load.end() > 0);
    for holder in holders {
        assert_eq!(holder.finish(), Some(0), "its lock was lost");
    }
    for (waiter, token) in waiters.iter_mut().zip(tokens) {
        assert!(waiter.token() > token);
    }
    for waiter in waiters {
        assert_eq!(waiter.finish(), Some(0));
    }
}

#[test]
fn nodes_restarted_one_by_one_under_load_lose_no_lock() {
    upgrade_from(PROGRAM);
}

#[test]
fn nodes_upgraded_from_an_earlier_version_under_load_lose_no_lock() {
    match std::env::var(EARLIER) {
        Ok(program) => upgrade_from(&program),
        Err(_) => servers::skip(format_args!("{EARLIER} names no command of an earlier version")),
    }
}
