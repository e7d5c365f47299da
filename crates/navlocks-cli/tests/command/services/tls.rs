//! Certificates made with openssl, and the error texts for bad ones.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;

use crate::support::{Talk, World, assert_ended, finish, text};

/// Dates long before and long after all tests.
const PAST: &str = "20200101000000Z";
const FUTURE: &str = "20900101000000Z";

/// A self-signed certificate with its key.
struct Pair {
    certificate: PathBuf,
    key: PathBuf,
}

/// Runs openssl in the folder of the test.
fn openssl(world: &World, arguments: &[&str]) {
    let mut command = Command::new("openssl");
    command.args(arguments).current_dir(world.file(""));
    assert_ended(&finish(command), 0, "");
}

/// Makes a certificate for a host, marked as an authority's or not, which is valid from a time in
/// the past until another.
fn make(world: &World, host: &str, authority: bool, until: &str) -> Pair {
    const SETTINGS: &str = "[ca]\ndefault_ca=c\n[c]\ndatabase=index\nrand_serial=yes\nnew_certs_dir=.\npolicy=p\ndefault_md=sha256\ncopy_extensions=copy\nunique_subject=no\n[p]\ncommonName=supplied\n";
    fs::write(world.file("settings"), SETTINGS).expect("the folder is there");
    fs::write(world.file("index"), "").expect("the folder is there");
    let name = format!("{host}-{authority}-{until}");
    let (certificate, key) = (format!("{name}.pem"), format!("{name}.key"));
    let subject = format!("/CN={name}");
    let host = format!("subjectAltName=DNS:{host}");
    let kind = if authority { "basicConstraints=CA:TRUE" } else { "basicConstraints=CA:FALSE" };
    let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
    let extensions = ["-addext", &host, "-addext", kind, "-subj", &subject];
    let files = ["-nodes", "-keyout", &key, "-out", "asked"];
    openssl(world, &[&["req", "-new"][..], &curve, &extensions, &files].concat());
    let sign = ["ca", "-batch", "-selfsign", "-notext", "-config", "settings", "-in", "asked"];
    let times = ["-startdate", PAST, "-enddate", until];
    openssl(world, &[&sign[..], &times, &["-keyfile", &key, "-out", &certificate]].concat());
    Pair { certificate: world.file(&certificate), key: world.file(&key) }
}

/// Starts a service with this certificate. Returns its port, and its log until it listened.
fn serve(world: &World, pair: &Pair) -> (Talk, String, Vec<String>) {
    let mut serve = world.navlocks("serve --no-socket --fresh --listen 127.0.0.1:0 --tls-cert");
    serve.arg(&pair.certificate).arg("--tls-key").arg(&pair.key);
    serve.arg("--state-dir").arg(world.file("state"));
    let mut service = Talk::start(serve);
    let mut logged = Vec::new();
    let mut port = None;
    // The two streams are read by two threads, so either line can come first.
    while port.is_none() || !logged.iter().any(|line: &String| line.contains("listens")) {
        let line = service.line();
        match line.strip_prefix("listening on wss://127.0.0.1:") {
            Some(found) => port = Some(found.to_owned()),
            None => logged.push(line),
        }
    }
    (service, port.expect("found above"), logged)
}

/// Ends a service in good order.
fn end(service: Talk) {
    service.signal(Signal::TERM);
    service.wait().assert(0, "");
}

#[test]
fn certificate_that_clients_refuse_gets_a_message_with_a_remedy() {
    let world = World::new();
    let good = make(&world, "localhost", false, FUTURE);
    let other = make(&world, "other.example", false, FUTURE);
    let authority = make(&world, "localhost", true, FUTURE);
    let expired = make(&world, "localhost", false, "20200201000000Z");
    for (served, trusted, said) in [
        (&good, &other, "an authority that is not trusted here: name that authority's certificate"),
        (&other, &other, "for another name: use the name that is in it"),
        (&authority, &authority, "make it with basicConstraints=CA:FALSE"),
        (&expired, &expired, "has expired: the service needs a new one"),
    ] {
        let (service, port, _) = serve(&world, served);
        let mut query = world.navlocks(&format!("query --url wss://localhost:{port} --ca-file"));
        query.arg(&trusted.certificate);
        let refused = finish(query);
        assert_ended(&refused, 77, "is not trusted: its certificate ");
        assert_ended(&refused, 77, said);
        let hint = String::from_utf8_lossy(&refused.stderr).contains("--ca-file names");
        assert_eq!(hint, said.contains("not trusted here"), "where another file would help");
        end(service);
    }
    let (service, port, logged) = serve(&world, &good);
    let mut run = world.navlocks(&format!("run x --url wss://localhost:{port} --ca-file"));
    run.arg(&good.certificate).args(["--", "echo", "held"]);
    let run = finish(run);
    assert_ended(&run, 0, "");
    assert_eq!(text(&run), "held\n");
    assert!(!logged.iter().any(|line| line.contains("WARN")), "{logged:?}");
    let plain = world.run(&format!("query --url ws://localhost:{port}"));
    assert_ended(&plain, 76, "or it takes TLS (wss://)");
    end(service);
}

#[test]
fn certificate_that_has_expired_or_soon_will_is_warned_about_at_the_start() {
    let world = World::new();
    let date = Command::new("date").args(["-u", "-d", "+3 days", "+%Y%m%d%H%M%SZ"]).output();
    let soon = text(&date.unwrap()).trim().to_owned();
    for authority in [false, true] {
        for (until, said) in [("20200201000000Z", "has expired"), (soon.as_str(), "expires soon")] {
            let pair = make(&world, "localhost", authority, until);
            let (service, _, logged) = serve(&world, &pair);
            let renew = "renew it, and the service reads it again";
            let warned = |line: &String| {
                line.contains("WARN") && line.contains(said) && line.contains(renew)
            };
            assert!(logged.iter().any(warned), "{said}: {logged:?}");
            end(service);
        }
    }
}

#[test]
fn swapped_files_of_a_certificate_are_named() {
    let world = World::new();
    let Pair { certificate, key } = make(&world, "localhost", false, FUTURE);
    for (first, second, file, said) in [
        (&key, &key, &key, "it has a private key and no certificate"),
        (&key, &certificate, &key, "it has a private key and no certificate"),
        (&certificate, &certificate, &certificate, "it has a certificate and no private key"),
    ] {
        let mut serve = world.navlocks("serve --no-socket --fresh --listen 127.0.0.1:0 --tls-cert");
        serve.arg(first).arg("--tls-key").arg(second).arg("--state-dir").arg(world.file("state"));
        let said = format!("cannot use {}: {said}", file.display());
        assert_ended(&finish(serve), 87, &said);
    }
}
