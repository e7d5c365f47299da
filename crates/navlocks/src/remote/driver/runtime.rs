//! The runtime of the driver of a connection.

use std::future::{Future, poll_fn};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use tokio::runtime::{Builder, Handle, RuntimeFlavor};

use crate::backend::Blocking;

/// The runtime of this crate, once it was needed.
static OWN: Mutex<Option<Handle>> = Mutex::new(None);

/// The runtime that runs a driver, as threads see it that want to block.
#[derive(Clone, Debug)]
pub(crate) struct DriverRuntime {
    runtime: Handle,
    /// The thread that last ran the driver, if its runtime has no other.
    thread: Arc<Mutex<Option<ThreadId>>>,
}

impl DriverRuntime {
    /// Returns the runtime that the caller is in; without one a thread of this crate, one for all
    /// connections.
    pub(crate) fn here() -> io::Result<Self> {
        let runtime = Handle::try_current().or_else(|_| own())?;
        Ok(Self { runtime, thread: Arc::default() })
    }

    /// Runs a driver.
    pub(crate) fn spawn(&self, driver: impl Future<Output = ()> + Send + 'static) {
        if self.runtime.runtime_flavor() != RuntimeFlavor::CurrentThread {
            self.runtime.spawn(driver);
            return;
        }
        let own = self.clone();
        let mut driver = Box::pin(driver);
        self.runtime.spawn(poll_fn(move |cx| {
            *own.thread() = Some(thread::current().id());
            driver.as_mut().poll(cx)
        }));
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
