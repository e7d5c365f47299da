//! The first connection of a lock space to a service.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;

use super::Locks;
use crate::owner::backend::AnyBackend;
use crate::remote::{Connect, ConnectError, Greeting};

impl Connect {
    /// Opens the socket and returns before the service has answered: await the [`Greeting`] too.
    ///
    /// Requests that were polled before the greeting travel with it, so their answers come up to
    /// two round trips earlier. For programs that connect for one request, as `navlocks run` does.
    ///
    /// With a list of addresses, or when a node of a cluster names another one, these requests
    /// follow the welcome. Further partitions must wait for the greeting: only then the client
    /// knows whether they need sessions of their own.
    ///
    /// # Errors
    ///
    /// [`ConnectError`](crate::ConnectError) when the socket cannot be opened.
    pub async fn open(self) -> Result<(Locks, Greeting), ConnectError> {
        let (handle, greeting) = self.open_handle().await?;
        let first = handle.first_client();
        Ok((Locks::of((AnyBackend::Remote(Arc::new(handle)), first)), greeting))
    }
}

impl IntoFuture for Connect {
    type Output = Result<Locks, ConnectError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let handle = self.connect().await?;
            let first = handle.first_client();
            Ok(Locks::of((AnyBackend::Remote(Arc::new(handle)), first)))
        })
    }
}
