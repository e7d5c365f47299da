//! Fifty client processes and the service itself, as processes: killed, stopped, robbed and restarted for a minute.

use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use navlocks::Locks;
use navlocks::blocking::block_on;
use navlocks_tests::chaos::{Conductor, Plan, Service, chaos_time, seed};
use navlocks_tests::record::{Deed, Line, SERVICE, What, Who};

use crate::folder::Folder;
use crate::served::{LEASE, assert_right, recruit};

/// `navlocks serve`, which remembers in a folder what must outlive it.
struct Served {
    folder: PathBuf,
    address: SocketAddr,
}

impl Served {
    /// On a port that is free now and, as far as anybody can tell, stays so between two starts.
    fn new(folder: &Folder) -> io::Result<Self> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        Ok(Self { folder: folder.path().to_path_buf(), address })
    }
}

impl Service for Served {
    fn url(&self) -> String {
        format!("ws://{}", self.address)
    }

    fn start(&mut self) -> io::Result<Child> {
        let log = File::options().append(true).create(true).open(self.folder.join("log"))?;
        Command::new(env!("CARGO_BIN_EXE_navlocks-tested"))
            .args(["serve", "--no-socket", "--listen", &self.address.to_string()])
            .arg("--state-dir")
            .arg(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
    }

    fn answers(&mut self) -> bool {
        let asked = async {
            let locks = Locks::connect(self.url()).await.ok()?;
            locks.query().await.ok()
        };
        block_on(asked).is_some()
    }
}

#[test]
fn a_service_that_is_killed_and_restarted_never_has_two_holders() {
    let folder = Folder::new("restarted");
    let seed = seed();
    println!("NAVLOCKS_SEED={seed}");
    let memory = Folder::new("restarted-service");
    let service = Served::new(&memory).unwrap();
    let plan = Plan {
        clients: 50,
        time: chaos_time(Duration::from_secs(60)),
        pause: Duration::from_millis(400),
        service: 10,
        stop: 2 * LEASE,
        patience: Duration::from_secs(30),
        endurance: Duration::ZERO,
        outage: 2 * LEASE,
    };
    let recruit = recruit(folder.path(), service.url(), Duration::from_millis(5));
    let conductor =
        Conductor::new(folder.path(), seed, plan, Some(Box::new(service)), recruit).unwrap();
    let ended = conductor.conduct().unwrap();
    assert_right(&ended);
    let restarts = ended.history.lines.iter().filter(|line| is_restart(line)).count();
    println!("{restarts} restarts");
}

fn is_restart(line: &Line) -> bool {
    matches!(&line.what, What::Deed(who, Deed::Killed) if *who == Who::from(SERVICE))
}
