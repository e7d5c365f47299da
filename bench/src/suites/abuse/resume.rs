//! A session with very many locks that resumes: how long that takes, how many bytes it sends and
//! receives, and how long a bystander waits meanwhile.

use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use navlocks::Locks;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;

use super::{OURS, bystander_until, runtime, socket_of};
use crate::harness::Contest;
use crate::harness::Unit::{Bytes, Nanoseconds};
use servers::Server;

pub(super) const LOCKS: usize = 100_000;

/// The cases of a round, in their order.
pub(super) const CYCLE: &str = "resume-cycle";
const CASES: [&str; 3] = [CYCLE, "resume-time", "resume-bytes"];

pub(super) fn contest(server: Rc<Server>, locks: usize) -> Contest {
    Contest::new(&CASES, Nanoseconds).last_in(Bytes).rounds_max(3).side(OURS, move || {
        Box::new(move || {
            let ended = Arc::new(AtomicBool::new(false));
            let relay = Arc::new(Relay::default());
            let listener = relay.clone().listen(&server).expect("a relay");
            let (url, cut, over) = (format!("unix:{}", listener.display()), relay, ended.clone());
            let began = Arc::new(AtomicBool::new(false));
            let begins = began.clone();
            let session = std::thread::spawn(move || {
                let resumed = resume(url, locks, &cut, &begins);
                over.store(true, Ordering::Release);
                resumed
            });
            let slowest = bystander_until(&server, &began, &ended);
            let resumed = session.join().expect("a session");
            std::fs::remove_file(&listener).expect("the socket of the relay");
            let (time, bytes) = resumed.expect("a resume");
            vec![slowest, time.as_nanos() as f64, bytes as f64]
        })
    })
}

/// Holds many locks, loses the connection and resumes. Returns the time until a further lock, and
/// the bytes of both directions.
fn resume(
    url: String,
    locks: usize,
    relay: &Relay,
    begins: &AtomicBool,
) -> io::Result<(Duration, usize)> {
    runtime().block_on(async {
        let session = Locks::connect(url).await.map_err(io::Error::other)?;
        let mut held = Vec::with_capacity(locks);
        // The last one is requested when the connection is gone.
        for name in 1..locks {
            held.push(session.request(format!("n{name}")).await.map_err(io::Error::other)?);
        }
        let before = relay.bytes.load(Ordering::Acquire);
        let begun = Instant::now();
        begins.store(true, Ordering::Release);
        relay.cut.notify_waiters();
        let last = session.request("last").await.map_err(io::Error::other)?;
        let (time, bytes) = (begun.elapsed(), relay.bytes.load(Ordering::Acquire) - before);
        let lost = held.iter().filter(|lock| lock.loss().is_some()).count();
        drop((last, held));
        session.disconnect().await;
        match lost {
            0 => Ok((time, bytes)),
            _ => Err(io::Error::other(format!("{lost} locks are lost"))),
        }
    })
}

/// A socket between client and service, whose connections can be cut.
#[derive(Debug, Default)]
struct Relay {
    bytes: AtomicUsize,
    cut: Notify,
}

impl Relay {
    /// Relays connections in a thread of its own, which ends with the process. Returns its socket.
    fn listen(self: Arc<Self>, server: &Server) -> io::Result<PathBuf> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("navlocks-bench-{}-{number}", std::process::id());
        let (path, service) = (std::env::temp_dir().join(name), socket_of(server));
        let _missing = std::fs::remove_file(&path);
        let listener = std::os::unix::net::UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        std::thread::spawn(move || runtime().block_on(self.relay(listener, service)));
        Ok(path)
    }

    async fn relay(
        self: Arc<Self>,
        listener: std::os::unix::net::UnixListener,
        service: PathBuf,
    ) -> io::Result<()> {
        let listener = UnixListener::from_std(listener)?;
        loop {
            let (from_client, to_client) = listener.accept().await?.0.into_split();
            let (from_service, to_service) = UnixStream::connect(&service).await?.into_split();
            let sends = tokio::spawn(self.clone().pass(from_client, to_service));
            let receives = tokio::spawn(self.clone().pass(from_service, to_client));
            self.cut.notified().await;
            sends.abort();
            receives.abort();
        }
    }

    async fn pass(
        self: Arc<Self>,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            let count = from.read(&mut buffer).await?;
            if count == 0 {
                return Ok(());
            }
            self.bytes.fetch_add(count, Ordering::AcqRel);
            to.write_all(&buffer[..count]).await?;
        }
    }
}
