//! A peer that pings and never reads: its memory is bounded, and other clients do not notice.

use std::io::Write;

use crate::client::{Client, UPGRADE, frame, tcp_stream, unix_stream};
use crate::process::Process;

/// Sends pings until the service ends the connection, and reads nothing.
fn send_pings_until_closed(mut stream: impl Write, process: &Process) {
    let pings = frame(0x89, &[b'x'; 125]).repeat(1000);
    let mut sent = 0;
    while stream.write_all(&pings).is_ok() {
        sent += pings.len();
        assert!(sent < 256 << 20, "the service takes pings without end");
        let resident = process.resident_bytes();
        assert!(resident < 64 << 20, "{resident} bytes are in use after {sent} bytes of pings");
    }
}

#[test]
fn peer_that_pings_and_never_reads_is_ended_and_memory_stays_bounded() {
    let process = Process::with_tcp();
    let mut bystander = Client::unix(&process.socket());
    bystander.hold(1, "kept");

    let hello = r#"{"hello":{}}"#;
    let request = r#"{"request":{"id":1,"names":["pinged"]}}"#;
    let said = [hello, request].map(|text| frame(0x81, text.as_bytes())).concat();

    let mut unix = unix_stream(&process.socket());
    unix.write_all(UPGRADE.as_bytes()).expect("it listens");
    unix.write_all(&said).expect("it listens");
    send_pings_until_closed(unix, &process);
    bystander.hold(2, "pinged");
    bystander.say(r#"{"end":2}"#);

    let mut tcp = tcp_stream(process.tcp());
    tcp.write_all(UPGRADE.as_bytes()).expect("it listens");
    tcp.write_all(&said).expect("it listens");
    send_pings_until_closed(tcp, &process);
    bystander.hold(3, "pinged");
    bystander.say(r#"{"end":3}"#);
    bystander.settle();
}
