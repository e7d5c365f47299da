//! How a service ends, and how it begins on a socket.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::Duration;

use navlocks_wire::FaultCode;

use crate::client::{Client, tcp_stream};
use crate::running::{Folder, Running};

#[test]
fn everybody_is_told_that_the_service_shuts_down() {
    let mut service = Running::start();
    let mut unix = Client::unix(service.unix());
    let (mut tcp, _) = Client::tcp(service.tcp());
    unix.hold(1, "a");
    tcp.say(r#"{"request":{"id":1,"names":["a"]}}"#);
    tcp.settle();
    service.begin_to_end();
    // No client is granted a lock that another one loses by the end.
    assert_eq!(tcp.error(), (FaultCode::ShuttingDown, 1001));
    assert_eq!(unix.error(), (FaultCode::ShuttingDown, 1001));
    drop((tcp, unix));
    let (ended, folder) = service.wait();
    ended.unwrap();
    assert!(!folder.path().join("socket").exists());
    // Their sessions go on with the next service.
    let state = std::fs::read_to_string(folder.path().join("state/service.json")).unwrap();
    assert!(state.contains(r#""clean":false"#), "{state}");
}

#[test]
fn the_end_is_not_clean_for_a_client_that_could_not_be_told() {
    let service = Running::with(|config| config.limits.closing_max = Duration::from_millis(50));
    let (mut gone, _) = Client::tcp(service.tcp());
    gone.hold(1, "a");
    drop(gone);
    // One that is connected, and says nothing.
    let (silent, _) = Client::tcp(service.tcp());
    let folder = service.end();
    let state = std::fs::read_to_string(folder.path().join("state/service.json")).unwrap();
    assert!(state.contains(r#""clean":false"#), "{state}");
    assert!(state.contains(r#""lease-ms-max":10000"#), "{state}");
    drop(silent);
}

#[test]
fn a_service_that_nobody_uses_ends_by_itself() {
    let service = Running::with(|config| {
        config.idle_exit = Some(Duration::from_millis(50));
        config.limits.lease_min = Duration::from_millis(10);
    });
    let (mut client, _) = Client::tcp(service.tcp());
    client.hold(1, "a");
    client.say(r#""bye""#);
    // A service with a session is not idle, with or without a connection.
    let hello = r#"{"lease-ms":10}"#;
    Client::tcp_hello(service.tcp(), hello).welcome();
    let (ended, folder) = service.wait();
    ended.unwrap();
    assert!(!folder.path().join("socket").exists());
}

#[test]
fn a_connection_that_says_nothing_is_dropped() {
    let service = Running::with(|config| config.limits.handshake_max = Duration::from_millis(50));
    let mut mute = tcp_stream(service.tcp());
    assert_eq!(std::io::Read::read(&mut mute, &mut [0; 8]).unwrap(), 0);
    let mut polite = Client::silent(tcp_stream(service.tcp()));
    assert_eq!(polite.error().0, FaultCode::BadState);
}

#[test]
fn a_second_service_on_a_socket_is_an_error_and_disturbs_nobody() {
    let service = Running::start();
    let mut client = Client::unix(service.unix());
    let path = service.unix().to_owned();
    let started = Running::try_start(Folder::new(), |config| config.unix = Some(path));
    let Err(error) = started else { panic!("it started") };
    assert!(error.to_string().contains("another service listens"), "{error}");
    client.hold(1, "a");
    Client::unix(service.unix());
}

#[test]
fn a_stale_socket_is_replaced() {
    let folder = Running::start().kill();
    assert!(folder.path().join("socket").exists());
    let service = Running::again(folder, |_| {});
    Client::unix(service.unix()).hold(1, "a");
}

#[test]
fn what_is_no_socket_is_kept() {
    let folder = Folder::new();
    let path = folder.path().join("socket");
    std::fs::write(&path, "precious").unwrap();
    let Err(error) = Running::try_start(folder, |_| {}) else { panic!("it started") };
    assert!(error.to_string().contains("no socket"), "{error}");
}

#[test]
fn the_folder_of_the_socket_must_be_its_users_alone() {
    let open = Folder::new();
    std::fs::set_permissions(open.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let Err(error) = Running::try_start(open, |_| {}) else { panic!("it started") };
    assert!(error.to_string().contains("0755"), "{error}");

    let folder = Folder::new();
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    std::fs::create_dir(&real).unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o700)).unwrap();
    symlink(&real, &link).unwrap();
    let started = Running::try_start(folder, |config| config.unix = Some(link.join("socket")));
    let Err(error) = started else { panic!("it started") };
    assert!(error.to_string().contains("no folder"), "{error}");
}

#[test]
fn the_socket_is_its_users_alone() {
    let service = Running::start();
    let mode = std::fs::metadata(service.unix()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
