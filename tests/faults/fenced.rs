//! Fenced writes: a holder that came back too late is refused by the resource itself.
//!
//! The holder is stopped past its lease between its look at the lock and its write, which no lock
//! service can prevent. The resource compares tokens, and has seen the larger one of the next
//! holder.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use navlocks::blocking::block_on;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::cluster::nodes::{Nodes, PATIENCE};
use crate::serve::NAVLOCKS;

#[allow(dead_code, reason = "main is for cargo run")]
#[path = "../../crates/navlocks/examples/fenced_server.rs"]
mod fenced_server;

/// A command under a lock: it says its token, and writes with it when its input has a line.
struct Holder {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    token: u64,
}

impl Holder {
    fn start(nodes: &Nodes, write: &str) -> Self {
        let script = format!("echo $NAVLOCKS_FENCING_TOKEN; read go; {write}");
        let mut child = Command::new(NAVLOCKS)
            .args(["run", "--url", &nodes.url(), "--on-loss", "continue", "account", "--"])
            .args(["sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("the command starts");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut holder = Self { child, input, output, token: 0 };
        holder.token = holder.line().parse().expect("a token");
        holder
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it says something");
        line.trim().to_owned()
    }

    fn signal(&self, signal: Signal) {
        kill_process_group(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Lets it write. Returns what it says then.
    fn write(&mut self) -> String {
        self.input.write_all(b"go\n").expect("it reads");
        self.line()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _status = self.child.wait();
    }
}

/// Stops a holder past its lease, lets the next one write, and wakes the first. Returns what both
/// say: the next holder first.
fn come_back_late(nodes: &Nodes, write: &str) -> [(u64, String); 2] {
    let mut late = Holder::start(nodes, write);
    late.signal(Signal::STOP);
    // Its turn comes when the lease of the first is over.
    let mut next = Holder::start(nodes, write);
    assert!(next.token > late.token, "tokens shrank");
    let written = next.write();
    late.signal(Signal::CONT);
    let refused = late.write();
    [(next.token, written), (late.token, refused)]
}

#[test]
fn late_write_to_postgres_is_refused() {
    let psql = match servers::program("psql", "postgresql-client") {
        Ok(psql) => psql.display().to_string(),
        Err(error) => return servers::skip(error),
    };
    let server = match (servers::POSTGRES.start)() {
        Ok(server) => server,
        Err(error) => return servers::skip(error),
    };
    let Some(servers::Address::Tcp(address)) = server.address(servers::Transport::Tcp) else {
        panic!("it listens on a port")
    };
    let (host, port) = (address.ip(), address.port());
    let psql = format!("{psql} -qAt -h {host} -p {port} -U bench -d postgres -c");
    let run = |sql: &str| {
        let said = Command::new("sh").args(["-c", &format!("{psql} \"{sql}\"")]).output();
        let said = said.expect("psql starts");
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8_lossy(&said.stdout).trim().to_owned()
    };
    run("CREATE TABLE account (balance int, fence bigint)");
    run("INSERT INTO account VALUES (0, 0)");
    let nodes = Nodes::start("fenced-postgres", 2, 1);
    let update = "UPDATE account SET balance = balance + 1, fence = $NAVLOCKS_FENCING_TOKEN \
                  WHERE fence <= $NAVLOCKS_FENCING_TOKEN RETURNING balance";
    let said = come_back_late(&nodes, &format!("{psql} \"{update}\"; echo"));
    let [(token, written), (_, refused)] = said;
    assert_eq!((written.as_str(), refused.as_str()), ("1", ""));
    assert_eq!(run("SELECT balance, fence FROM account"), format!("1|{token}"));
}

/// The file of the largest token is compared and written under a lock of the kernel, which lasts
/// only as long as the write.
#[test]
fn late_write_to_a_file_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let account = folder.path().join("account");
    let shown = account.display();
    std::fs::write(folder.path().join("account.fence"), "0").expect("a file");
    let write = format!(
        r#"flock {shown}.fence sh -c '
            test "$NAVLOCKS_FENCING_TOKEN" -ge "$(cat {shown}.fence)" || exit
            echo "$NAVLOCKS_FENCING_TOKEN" > {shown}.fence
            echo "by $NAVLOCKS_FENCING_TOKEN" > {shown}
            echo written'; echo"#
    );
    let nodes = Nodes::start("fenced-file", 2, 1);
    let [(token, written), (_, refused)] = come_back_late(&nodes, &write);
    assert_eq!((written.as_str(), refused.as_str()), ("written", ""));
    let left = std::fs::read_to_string(account).expect("it was written");
    assert_eq!(left.trim(), format!("by {token}"));
}

#[test]
fn late_write_over_http_is_refused() {
    let Ok(curl) = servers::program("curl", "curl") else {
        return servers::skip("there is no curl");
    };
    let (tell, told) = std::sync::mpsc::channel();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            tell.send(listener.local_addr().expect("an address")).expect("the test waits");
            fenced_server::serve(listener, async { drop(stopped.await) }).await.expect("it serves");
        });
    });
    let address = told.recv().expect("it serves");
    let curl = curl.display();
    let write = format!(
        r#"{curl} -s -o /dev/null -w '%{{http_code}}\n' -X PUT -d "by $NAVLOCKS_FENCING_TOKEN" \
            -H "Fencing-Token: $NAVLOCKS_FENCING_TOKEN" http://{address}/account"#
    );
    let nodes = Nodes::start("fenced-http", 2, 1);
    let [(token, written), (_, refused)] = come_back_late(&nodes, &write);
    assert_eq!((written.as_str(), refused.as_str()), ("204", "412"));
    let ask = |more: &str| {
        let asked = format!("{curl} -s {more} http://{address}/account");
        let said = Command::new("sh").args(["-c", &asked]).output().expect("curl starts");
        String::from_utf8_lossy(&said.stdout).into_owned()
    };
    assert_eq!(ask(""), format!("by {token}"));
    for none in ["", "-H 'Fencing-Token: '", "-H 'Fencing-Token: -1'", "-H 'Fencing-Token: NaN'"] {
        let refused = ask(&format!("-X PUT -d x {none}"));
        assert_eq!(refused, "send the token of your lock as Fencing-Token\n", "{none}");
    }
    drop(stop);
    server.join().expect("no panic");
}

#[test]
fn late_write_to_etcd_is_refused() {
    use etcd_client::{Compare, CompareOp, Txn, TxnOp};
    let nodes = Nodes::start("fenced-etcd", 2, 1);
    // Numbers of one length are ordered as texts.
    let fence = |token: u64| format!("{token:020}");
    nodes.in_etcd(async |mut etcd| etcd.put("/account", fence(0), None).await.expect("it is put"));
    let write = |token: u64| {
        nodes.in_etcd(async |mut etcd| {
            let write = Txn::new()
                .when([Compare::value("/account", CompareOp::Less, fence(token))])
                .and_then([TxnOp::put("/account", fence(token), None)]);
            etcd.txn(write).await.expect("etcd answers").succeeded()
        })
    };
    let [(next, first_word), (late, last_word)] = come_back_late(&nodes, "echo writes");
    assert_eq!((first_word.as_str(), last_word.as_str()), ("writes", "writes"));
    assert!(write(next));
    assert!(!write(late), "a holder that came back too late has written");
}

/// A client that was not stopped writes, so that the tests above refuse what they should.
#[test]
fn holder_in_time_still_holds_its_lock() {
    let nodes = Nodes::start("fenced-in-time", 2, 1);
    let mut holder = Holder::start(&nodes, "echo writes");
    let locks = nodes.client("");
    let free = block_on(locks.request("account").if_available()).expect("an answer");
    assert!(free.is_none());
    assert_eq!(holder.write(), "writes");
    let next = block_on(locks.request("account").timeout(PATIENCE).into_future());
    assert!(next.expect("it was released").fencing_token().get() > holder.token);
}
