//! A web server with a lock for each account. A request that waits too long for its account is
//! answered 409, one whose lock is lost or whose lock service is down 503, and a shutdown waits for
//! the work under locks.
//!
//! ```sh
//! cargo run -p navlocks --example web_server &
//! curl -d 100 http://127.0.0.1:3000/accounts/rent
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use navlocks::{Locks, LossCause, RequestError, RequestErrorKind};
use tokio::net::TcpListener;
use tokio::sync::Mutex;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        // Several servers share one service: `Locks::connect(url).await?`.
        let bank = Bank::new(Locks::new(), Duration::from_secs(2));
        let listener = TcpListener::bind("127.0.0.1:3000").await?;
        serve(listener, bank, async { drop(tokio::signal::ctrl_c().await) }).await?;
        Ok(())
    })
}

/// Balances that are read and then written, which two requests must not do at once.
#[derive(Clone)]
pub(crate) struct Bank {
    pub(crate) locks: Locks,
    /// The longest wait for an account.
    wait: Duration,
    pub(crate) balances: Arc<Mutex<HashMap<String, i64>>>,
}

impl Bank {
    pub(crate) fn new(locks: Locks, wait: Duration) -> Self {
        Self { locks, wait, balances: Arc::default() }
    }

    async fn add(&self, account: String, amount: i64) -> i64 {
        let balance = self.balances.lock().await.get(&account).copied().unwrap_or(0);
        // Without the lock, another request could write between.
        self.balances.lock().await.insert(account, balance + amount);
        balance + amount
    }
}

/// Serves until `stop`, and then until all locks are released.
pub(crate) async fn serve(
    listener: TcpListener,
    bank: Bank,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let locks = bank.locks.clone();
    let routes = Router::new().route("/accounts/{account}", post(deposit)).with_state(bank);
    axum::serve(listener, routes).with_graceful_shutdown(stop).await?;
    // Also waits for work that went on in a task of its own after its request was answered.
    locks.drain().await;
    locks.disconnect().await;
    Ok(())
}

async fn deposit(
    State(bank): State<Bank>,
    Path(account): Path<String>,
    amount: String,
) -> Result<String, Refused> {
    let amount = amount.trim().parse().map_err(|_| Refused::bad("the body is no amount"))?;
    let lock = bank.locks.request(format!("account/{account}")).timeout(bank.wait).await?;
    // A client that goes away drops this future, which releases the lock as well.
    let balance = lock.guard(bank.add(account, amount)).await?;
    Ok(format!("{balance}\n"))
}

/// The answer to a request that was not carried out.
pub(crate) struct Refused(StatusCode, String);

impl Refused {
    fn bad(text: &str) -> Self {
        Self(StatusCode::BAD_REQUEST, text.to_owned())
    }
}

impl From<RequestError> for Refused {
    fn from(error: RequestError) -> Self {
        let status = match error.kind() {
            // Another request works on the account.
            RequestErrorKind::TimedOut { .. } => StatusCode::CONFLICT,
            // The lock service is out of reach, or this server shuts down.
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self(status, error.to_string())
    }
}

impl From<LossCause> for Refused {
    fn from(cause: LossCause) -> Self {
        Self(StatusCode::SERVICE_UNAVAILABLE, cause.to_string())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.0, [(header::RETRY_AFTER, "1")], self.1 + "\n").into_response()
    }
}
