//! A service of a test's own, in a thread of its own.

use std::fs::DirBuilder;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;

use navlocks_server::{Address, Config, Service};
use tokio::sync::oneshot;

/// A folder that is gone after the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("navlocks-service-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&path).expect("a new folder for temporary files");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _left_behind = std::fs::remove_dir_all(&self.0);
    }
}

/// A service that runs.
pub(crate) struct Running {
    addresses: Vec<Address>,
    end: Option<oneshot::Sender<Ending>>,
    thread: Option<JoinHandle<std::io::Result<()>>>,
    folder: Option<Folder>,
}

/// How a service ends.
enum Ending {
    InOrder,
    Killed,
}

impl Running {
    /// Starts a service on a Unix socket and a TCP port.
    pub(crate) fn start() -> Self {
        Self::with(|_| {})
    }

    /// Starts a service whose configuration is changed by `change`.
    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> Self {
        Self::again(Folder::new(), change)
    }

    /// Starts a service with more than its configuration, such as a dashboard.
    #[allow(dead_code, reason = "the tests of the dashboard need it")]
    pub(crate) fn attached(
        change: impl FnOnce(&mut Config),
        attach: fn(Service) -> Service,
    ) -> Self {
        match Self::try_attached(Folder::new(), change, attach) {
            Ok(service) => service,
            Err(error) => panic!("the service does not start: {error}"),
        }
    }

    /// Starts a service where an earlier one was.
    pub(crate) fn again(folder: Folder, change: impl FnOnce(&mut Config)) -> Self {
        match Self::try_start(folder, change) {
            Ok(service) => service,
            Err(error) => panic!("the service does not start: {error}"),
        }
    }

    /// Starts a service, or says why not.
    pub(crate) fn try_start(
        folder: Folder,
        change: impl FnOnce(&mut Config),
    ) -> std::io::Result<Self> {
        Self::try_attached(folder, change, |service| service)
    }

    fn try_attached(
        folder: Folder,
        change: impl FnOnce(&mut Config),
        attach: fn(Service) -> Service,
    ) -> std::io::Result<Self> {
        let config = Config::default().with(|config| {
            config.unix = Some(folder.path().join("socket"));
            config.tcp = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
            config.state_dir = Some(folder.path().join("state"));
            // No test but those of this wait has holders without a record.
            config.fresh = true;
        });
        let config = config.with(change);
        let (started, starting) = mpsc::channel();
        let (end, ending) = oneshot::channel();
        let thread = std::thread::spawn(move || serve(config, attach, &started, ending));
        let addresses = starting.recv().expect("the service starts or fails")?;
        Ok(Self { addresses, end: Some(end), thread: Some(thread), folder: Some(folder) })
    }

    /// Waits until it has ended by itself.
    pub(crate) fn wait(mut self) -> (std::io::Result<()>, Folder) {
        let thread = self.thread.take().expect("it runs");
        let ended = thread.join().expect("the service does not panic");
        (ended, self.folder.take().expect("it has a folder"))
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.as_ref().expect("it has a folder").path()
    }

    /// The path of its Unix socket.
    pub(crate) fn unix(&self) -> &Path {
        let unix = |address: &Address| matches!(address, Address::Unix(_));
        match self.addresses.iter().find(|address| unix(address)) {
            Some(Address::Unix(path)) => path,
            _ => panic!("no Unix socket"),
        }
    }

    /// The address of its TCP port.
    pub(crate) fn tcp(&self) -> SocketAddr {
        let tcp = |address: &Address| matches!(address, Address::Tcp(_));
        match self.addresses.iter().find(|address| tcp(address)) {
            Some(Address::Tcp(address)) => *address,
            _ => panic!("no TCP port"),
        }
    }

    /// Ends it in good order.
    pub(crate) fn end(mut self) -> Folder {
        self.stop(Ending::InOrder);
        self.folder.take().expect("it has a folder")
    }

    /// Tells it to end in good order, and does not wait.
    pub(crate) fn begin_to_end(&mut self) {
        let end = self.end.take().expect("it runs");
        drop(end.send(Ending::InOrder));
    }

    /// Ends it as if it were killed.
    pub(crate) fn kill(mut self) -> Folder {
        self.stop(Ending::Killed);
        self.folder.take().expect("it has a folder")
    }

    fn stop(&mut self, how: Ending) {
        if let (Some(end), Some(thread)) = (self.end.take(), self.thread.take()) {
            drop(end.send(how));
            thread.join().expect("the service does not panic").expect("the service ends well");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.stop(Ending::Killed);
        }
    }
}

/// Runs a service until it is told to end.
fn serve(
    config: Config,
    attach: fn(Service) -> Service,
    started: &mpsc::Sender<std::io::Result<Vec<Address>>>,
    ending: oneshot::Receiver<Ending>,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime for the service");
    runtime.block_on(async {
        let service = match Service::bind(config).await {
            Ok(service) => attach(service),
            Err(error) => {
                started.send(Err(error)).expect("the test waits for the start");
                return Ok(());
            }
        };
        let addresses = service.addresses().to_vec();
        started.send(Ok(addresses)).expect("the test waits for the start");
        let (in_order, order) = oneshot::channel::<()>();
        let run = service.run(async { drop(order.await) });
        let killed = async {
            if let Ok(Ending::InOrder) = ending.await {
                let _gone = in_order.send(());
                std::future::pending().await
            }
        };
        tokio::select! {
            ended = run => ended,
            () = killed => Ok(()),
        }
    })
}
