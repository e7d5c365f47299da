//! Arbitrary bytes at the socket of a service: it answers or closes, and goes on serving others.

#![no_main]

use std::path::PathBuf;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use navlocks_server::{Config, Limits, Service};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;
use tokio::time::timeout;

/// Far more than an answer takes on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

struct Served {
    runtime: Runtime,
    tasks: LocalSet,
    socket: PathBuf,
}

thread_local! {
    /// Never dropped: the tasks of the service use other thread locals, which may be gone by then.
    static SERVED: &'static Served = Box::leak(Box::new(start()));
}

fuzz_target!(|data: &[u8]| {
    SERVED.with(|Served { runtime, tasks, socket }| {
        tasks.block_on(runtime, async {
            talk(socket, data).await;
            let answer =
                talk(socket, b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
            assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
        });
    });
});

fn start() -> Served {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let folder = std::env::temp_dir().join(format!("navlocks-http-{}", std::process::id()));
    let _missing = std::fs::remove_dir_all(&folder);
    let socket = folder.join("socket");
    let config = Config::default().with(|config| {
        config.unix = Some(socket.clone());
        config.limits = Limits::default().with(|limits| limits.closing_max = Duration::ZERO);
    });
    let tasks = LocalSet::new();
    let service = tasks.block_on(&runtime, Service::bind(config)).expect("a service");
    tasks.spawn_local(service.run(std::future::pending()));
    Served { runtime, tasks, socket }
}

/// Sends these bytes and their end. Returns the bytes of the answer.
async fn talk(socket: &PathBuf, bytes: &[u8]) -> Vec<u8> {
    let talk = async {
        let mut stream = UnixStream::connect(socket).await.expect("the service listens");
        // The service may close at the first byte that is none of HTTP.
        let _closed = stream.write_all(bytes).await;
        let _closed = stream.shutdown().await;
        let mut answer = Vec::new();
        let _reset = stream.read_to_end(&mut answer).await;
        answer
    };
    timeout(PATIENCE, talk).await.expect("the service answers or closes")
}
