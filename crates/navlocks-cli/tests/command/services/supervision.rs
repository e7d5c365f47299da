//! The messages of a service to its supervisor, and the log for auditors.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::Command;

use rustix::process::Signal;

use crate::support::{LONG, Talk, World, assert_ended, program};

/// Receives what a service tells a supervisor.
struct Supervisor(UnixDatagram);

impl Supervisor {
    fn at(world: &World) -> Self {
        Self::of(UnixDatagram::bind(world.file("notify")).expect("a socket"))
    }

    fn of(socket: UnixDatagram) -> Self {
        socket.set_read_timeout(Some(LONG)).expect("a time limit");
        Self(socket)
    }

    fn receive(&self) -> String {
        let mut buffer = [0; 4096];
        let length = self.0.recv(&mut buffer).expect("the service tells something");
        String::from_utf8(buffer[..length].to_vec()).expect("UTF-8")
    }

    /// Receives until a message begins so.
    fn until(&self, start: &str) -> String {
        loop {
            let message = self.receive();
            if message.starts_with(start) {
                return message;
            }
        }
    }
}

fn serve(world: &World, options: &str) -> Command {
    let mut command = world.navlocks(&format!("serve --listen 127.0.0.1:0 {options}"));
    command.arg("--state-dir").arg(world.file("state"));
    command.env("NOTIFY_SOCKET", world.file("notify"));
    command
}

#[test]
fn service_tells_its_supervisor_when_it_grants_locks_and_when_it_ends() {
    let world = World::new();
    let supervisor = Supervisor::at(&world);
    let service = Talk::start(serve(&world, "--fresh"));
    assert_eq!(supervisor.receive(), "READY=1\nSTATUS=grants locks\n");
    service.signal(Signal::TERM);
    assert!(supervisor.receive().starts_with("STOPPING=1\n"));
    service.end().assert(0, "");
}

#[test]
fn service_that_recovers_asks_for_time_until_it_grants_locks() {
    let world = World::new();
    let supervisor = Supervisor::at(&world);
    let _service = Talk::start(serve(&world, "--lease 1s --lease-max 1s"));
    let first = supervisor.receive();
    assert!(
        first.starts_with("EXTEND_TIMEOUT_USEC=30000000\nSTATUS=no lock is granted"),
        "{first}"
    );
    supervisor.until("READY=1\n");
}

#[test]
fn service_with_a_watchdog_tells_again_and_again_that_it_lives() {
    let world = World::new();
    let name = format!("navlocks-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let supervisor = Supervisor::of(UnixDatagram::bind_addr(&address).unwrap());
    let mut command = serve(&world, "--fresh");
    command.env("NOTIFY_SOCKET", format!("@{name}")).env("WATCHDOG_USEC", "30000");
    let _service = Talk::start(command);
    supervisor.until("READY=1\n");
    for _ in 0..3 {
        assert_eq!(supervisor.receive(), "WATCHDOG=1\nSTATUS=grants locks\n");
    }
}

/// Returns the next line of the log that is for auditors.
fn audited(service: &mut Talk) -> serde_json::Value {
    loop {
        let line = service.line();
        if let Ok(line) = serde_json::from_str::<serde_json::Value>(&line)
            && line["fields"]["audit"].is_string()
        {
            return line["fields"].clone();
        }
    }
}

#[test]
fn acts_against_others_and_refused_accesses_are_in_the_log() {
    let world = World::new();
    let mut command = world.navlocks("serve --log-format json --listen 127.0.0.1:0 --fresh");
    command.env("NAVLOCKS_TOKEN", "one:secret-of-the-first");
    let mut service = Talk::start(command);
    let line = service.line_with("listening on");
    let port = line.trim().rsplit(':').next().expect("a port").to_owned();

    let victim = world.hold("run a");
    assert_ended(&world.run("steal a"), 0, "");
    let (steal, loss) = (audited(&mut service), audited(&mut service));
    assert_eq!((&steal["audit"], &steal["from"]), (&"steal".into(), &"unix".into()), "{steal}");
    assert!(steal["pid"].is_u64() && steal["names"] == "a", "{steal}");
    assert_eq!(loss["audit"], "loss");
    assert!(loss["cause"].as_str().is_some_and(|cause| cause.starts_with("stolen by ")), "{loss}");
    assert!(loss["victim"].is_string() && loss["pid"].is_u64(), "{loss}");
    drop(victim);

    let victim = world.hold("run a");
    assert_ended(&world.run("release a --force"), 0, "");
    let (loss, release) = (audited(&mut service), audited(&mut service));
    assert_eq!((&loss["audit"], &loss["cause"]), (&"loss".into(), &"force-released".into()));
    assert_eq!((&release["audit"], &release["name"]), (&"force-release".into(), &"a".into()));
    assert_eq!(release["losses"], 1, "{release}");
    drop(victim);

    let mut stranger = Command::new(program());
    world.settle(&mut stranger);
    stranger.args(["query", "--url", &format!("ws://127.0.0.1:{port}")]);
    stranger.env("NAVLOCKS_TOKEN", "nothing-that-is-known").output().unwrap();
    let refusal = audited(&mut service);
    assert_eq!((&refusal["audit"], &refusal["from"]), (&"refusal".into(), &"127.0.0.1".into()));
    assert!(refusal["why"].as_str().is_some_and(|why| why.contains("access token")), "{refusal}");
}
