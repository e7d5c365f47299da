//! Where the driver of a connection runs.

use std::future::{Future, poll_fn};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use tokio::runtime::{Builder, Handle, RuntimeFlavor};

use crate::backend::Blocking;

/// The runtime of this process's own, once one was needed.
static OWN: Mutex<Option<Handle>> = Mutex::new(None);

/// The runtime that runs a driver, as threads see it that want to block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carrier {
    /// The thread that last ran the driver, if its runtime has no other.
    thread: Arc<Mutex<Option<ThreadId>>>,
}

impl Carrier {
    /// Runs a driver on the runtime that the caller is in; without one on a thread of this crate,
    /// one for all connections.
    pub(crate) fn spawn(
        &self,
        driver: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let Ok(current) = Handle::try_current() else {
            own()?.spawn(driver);
            return Ok(());
        };
        if current.runtime_flavor() != RuntimeFlavor::CurrentThread {
            current.spawn(driver);
            return Ok(());
        }
        let carrier = self.clone();
        let mut driver = Box::pin(driver);
        current.spawn(poll_fn(move |cx| {
            *carrier.thread() = Some(thread::current().id());
            driver.as_mut().poll(cx)
        }));
        Ok(())
    }

    /// Returns the way in which this thread may block until the driver has done something.
    pub(crate) fn blocking(&self) -> Blocking {
        if *self.thread() == Some(thread::current().id()) {
            return Blocking::Forbidden;
        }
        // A worker that blocks keeps the task that it woke last to itself, and that may be the
        // driver.
        let flavor = Handle::try_current().map(|current| current.runtime_flavor());
        match flavor {
            Ok(RuntimeFlavor::MultiThread) if cfg!(feature = "service") => Blocking::InPlace,
            // Without that feature tokio cannot let another worker take over.
            Ok(RuntimeFlavor::MultiThread) => Blocking::Forbidden,
            _ => Blocking::Free,
        }
    }

    fn thread(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn own() -> io::Result<Handle> {
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = &*own {
        return Ok(handle.clone());
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    thread::Builder::new()
        .name("navlocks".into())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    *own = Some(handle.clone());
    Ok(handle)
}
