//! A browser in small: one storage process decides about locks, script processes are its children,
//! and one of them is killed while it holds a lock.
//!
//! `cargo run -p navlocks-threads --example storage_process` prints what happens. A real browser
//! has its own channels in place of the socket pairs; the lines below are the whole protocol.
//!
//! ```text
//!   script → storage    open 1 https://shop.example     client 1 of this process
//!                       request 1 7 cart                its request 7
//!                       release 1 7
//!   storage → script    granted 1 7 2                   with the fencing token 2
//! ```

use std::collections::HashMap;
use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use navlocks_core::kit::{Address, Group, Host, HostSink, Limits, Member, Notice};
use navlocks_core::{Answer, DeadlockPolicy, HashKey, Request};

/// Tells a program that it is a script process.
pub(crate) const ROLE: &str = "NAVLOCKS_EXAMPLE_SCRIPT";

/// The name that all script processes want.
const CART: &str = "cart";
const ORIGIN: &str = "https://shop.example";

/// The grants of one input. They are sent after it, in engine order.
#[derive(Default)]
struct Grants(Vec<(Address, u64)>);

impl HostSink<u64, ()> for Grants {
    fn now(&self) -> u64 {
        0 // a browser reads its clock
    }

    fn notify(&mut self, to: Address, notice: &Notice<'_, u64>) {
        if let Notice::Granted { token, .. } = notice {
            self.0.push((to, token.get()));
        }
    }
}

/// A child of the storage process. Its clients are one group, because they end with it.
struct Script {
    child: Child,
    socket: UnixStream,
    group: Group,
    /// By the numbers that the process gave to its clients.
    clients: HashMap<u64, Member>,
}

/// A line of a script process, or its end.
type Received = (usize, Option<String>);

/// The storage process: the only one that decides.
pub(crate) struct Storage<Print> {
    host: Host<String, u64, ()>,
    scripts: Vec<Script>,
    /// The process and the number of each client.
    owners: HashMap<Member, (usize, u64)>,
    received: (Sender<Received>, Receiver<Received>),
    print: Print,
}

impl<Print: FnMut(String)> Storage<Print> {
    pub(crate) fn new(print: Print) -> Self {
        // A browser takes random bytes, because pages choose the names.
        let key = HashKey::from_bytes([7; 16]);
        let host = Host::new(key, Limits::default(), DeadlockPolicy::Ignore);
        let (scripts, owners) = (Vec::new(), HashMap::new());
        Self { host, scripts, owners, received: channel(), print }
    }

    /// Starts a script process, with one end of a socket pair as its input.
    pub(crate) fn start(&mut self, mut program: Command) -> io::Result<()> {
        let (socket, theirs) = UnixStream::pair()?;
        let child = program.env(ROLE, "1").stdin(Stdio::from(theirs.as_fd().try_clone_to_owned()?));
        let child = child.stdout(Stdio::null()).spawn()?;
        let (index, sender) = (self.scripts.len(), self.received.0.clone());
        let lines = BufReader::new(socket.try_clone()?).lines();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = sender.send((index, Some(line)));
            }
            // A closed channel is the end of the process, whatever ended it.
            let _ = sender.send((index, None));
        });
        let group = self.host.add_group();
        self.scripts.push(Script { child, socket, group, clients: HashMap::new() });
        Ok(())
    }

    /// Kills a script process, as the system does with one that takes too much memory.
    pub(crate) fn kill(&mut self, index: usize) -> io::Result<()> {
        (self.print)(format!("script process {index} is killed"));
        self.scripts[index].child.kill()?;
        self.scripts[index].child.wait().map(drop)
    }

    /// Handles messages until `wanted` lines were printed.
    pub(crate) fn run_until(&mut self, wanted: usize) -> io::Result<()> {
        let mut printed = 0;
        while printed < wanted {
            let Ok((index, line)) = self.received.1.recv() else { break };
            let mut grants = Grants::default();
            match line {
                Some(line) => printed += self.handle(index, &line, &mut grants),
                None => {
                    self.host.end_group(self.scripts[index].group, &mut grants);
                }
            }
            printed += grants.0.len();
            for (to, token) in grants.0 {
                let Some(&(owner, client)) = self.owners.get(&to.member) else { continue };
                (self.print)(format!("script process {owner} holds {CART}, token {token}"));
                // A process that ends meanwhile reads nothing; its end comes as a message.
                let _ =
                    writeln!(self.scripts[owner].socket, "granted {client} {} {token}", to.number);
            }
        }
        Ok(())
    }

    /// Handles a line of a process that is not trusted: a bad one has no effect. Returns how many
    /// lines it printed.
    fn handle(&mut self, index: usize, line: &str, grants: &mut Grants) -> usize {
        let words: Vec<&str> = line.split(' ').collect();
        let script = &mut self.scripts[index];
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
        let (Some(client), second) = (number(1), number(2)) else { return 0 };
        match (words[0], script.clients.get(&client).copied(), second, words.get(3)) {
            ("open", None, ..) => {
                let origin = words.get(2).copied().unwrap_or_default().to_owned();
                let Ok(member) = self.host.open(script.group, origin) else { return 0 };
                script.clients.insert(client, member);
                self.owners.insert(member, (index, client));
            }
            ("request", Some(member), Some(number), Some(&name)) => {
                let request = Request::exclusive(name);
                let answer = self.host.request(member, number, &request, None, grants);
                if let Ok((_, Answer::Pending)) = answer {
                    (self.print)(format!("script process {index} waits for {name}"));
                    return 1;
                }
            }
            ("release", Some(member), Some(number), _) => {
                self.host.release(member, number, grants);
            }
            _ => {}
        }
        0
    }

    /// Ends all script processes.
    pub(crate) fn end(mut self) -> io::Result<()> {
        for script in &mut self.scripts {
            script.child.kill()?;
            script.child.wait()?;
        }
        Ok(())
    }
}

/// The browser: process 0 holds the lock and is killed while 1 and 2 wait.
pub(crate) fn browse(program: impl Fn() -> Command, print: impl FnMut(String)) -> io::Result<()> {
    let mut storage = Storage::new(print);
    for _ in 0..3 {
        storage.start(program())?;
        storage.run_until(1)?;
    }
    storage.kill(0)?;
    storage.run_until(2)?;
    storage.end()
}

/// A script process: the first holds the lock for ever, the others release it.
pub(crate) fn script() -> io::Result<()> {
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // It numbers its own requests, so it waits for no answer before it sends more.
    writeln!(socket, "open 1 {ORIGIN}\nrequest 1 7 {CART}")?;
    for line in BufReader::new(socket.try_clone()?).lines() {
        let line = line?;
        let [_, client, number, token] = *line.split(' ').collect::<Vec<_>>() else { continue };
        if token != "1" {
            writeln!(socket, "release {client} {number}")?;
        }
    }
    Ok(())
}

#[allow(dead_code, clippy::print_stdout)] // the test of this example has its own
fn main() -> io::Result<()> {
    if env::var_os(ROLE).is_some() {
        return script();
    }
    let program = env::current_exe()?;
    browse(|| Command::new(&program), |line| println!("{line}"))
}
