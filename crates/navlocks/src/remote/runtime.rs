//! Where the driver of a connection runs.

use std::future::Future;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread;

use tokio::runtime::{Builder, Handle};

/// The runtime of this process's own, once one was needed.
static OWN: Mutex<Option<Handle>> = Mutex::new(None);

/// Runs a driver on the runtime that the caller is in; without one on a thread of this crate, one for all connections.
pub(crate) fn spawn(driver: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
    let handle = handle()?;
    drop(handle.spawn(driver));
    Ok(())
}

/// The runtime that [`spawn`] would use.
pub(crate) fn handle() -> io::Result<Handle> {
    Handle::try_current().or_else(|_| own())
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
