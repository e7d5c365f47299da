//! A connection in two steps, so that the first requests travel with the greeting.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;

use navlocks_client::Begin;

use super::backend::Handle;
use super::begin;
use super::connect::Connect;
use super::driver::runtime::DriverRuntime;
use super::errors::ConnectError;

/// The second step of a connection that [`Connect::open`] has begun: the hello is sent when this is
/// first polled.
///
/// # Errors
///
/// As of [`Locks::connect`](crate::Locks::connect). The connection is over then.
///
/// # Cancel safety
///
/// Dropping it ends the connection.
#[must_use = "nothing is granted until the service has answered the greeting"]
pub struct Greeting {
    begin: Option<oneshot::Sender<()>>,
    done: oneshot::Receiver<Result<(), ConnectError>>,
}

impl Future for Greeting {
    type Output = Result<(), ConnectError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(begin) = self.begin.take() {
            let _shut_down = begin.send(());
        }
        Poll::Ready(ready!(Pin::new(&mut self.done).poll(cx)).unwrap_or_else(|_| Err(shut_down())))
    }
}

impl fmt::Debug for Greeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Greeting").field("begun", &self.begin.is_none()).finish_non_exhaustive()
    }
}

impl Connect {
    /// Opens the socket. The greeting sends the hello when it is awaited.
    pub(crate) async fn open_handle(self) -> Result<(Handle, Greeting), ConnectError> {
        let (options, attempts) = self.prepare()?;
        let (mut tell, told) = oneshot::channel();
        let runtime = DriverRuntime::here().map_err(ConnectError::Unreachable)?;
        let known = runtime.clone();
        let driver = async move {
            let dialed = tokio::select! {
                dialed = begin::begin(&options, attempts, Begin::Dial) => dialed,
                () = tell.closed() => return,
            };
            let mut begun = match dialed {
                Ok(begun) => begun,
                Err(error) => return drop(tell.send(Err(error))),
            };
            let handle = Handle::new(begun.session().clone(), known);
            let (begin, is_begun) = oneshot::channel();
            let (mut tell_done, done) = oneshot::channel();
            drop(tell.send(Ok((handle, Greeting { begin: Some(begin), done }))));
            let greeted = async {
                // An error means that the greeting was dropped, which the other arm finds.
                let _dropped = is_begun.await;
                begun.greet().await
            };
            let greeted = tokio::select! {
                biased;
                () = tell_done.closed() => return,
                greeted = greeted => greeted,
            };
            match greeted {
                Ok(()) => {
                    drop(tell_done.send(Ok(())));
                    begun.drive().await;
                }
                Err(error) => {
                    // The session ends before its user receives the error.
                    drop(begun);
                    drop(tell_done.send(Err(error)));
                }
            }
        };
        runtime.spawn(driver);
        told.await.unwrap_or_else(|_| Err(shut_down()))
    }
}

pub(super) fn shut_down() -> ConnectError {
    ConnectError::Unreachable(io::Error::other("the runtime has shut down"))
}
