//! A resource behind HTTP that refuses late writers. A holder that was stopped past the end of its
//! lock cannot know that, but its fencing token is older than that of the next holder.
//!
//! ```sh
//! cargo run -p navlocks --example fenced_server &
//! navlocks run report -- sh -c \
//!     'curl -T report.txt -H "Fencing-Token: $NAVLOCKS_FENCING_TOKEN" 127.0.0.1:3001/report'
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::put;
use tokio::net::TcpListener;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:3001").await?;
        serve(listener, async { drop(tokio::signal::ctrl_c().await) }).await?;
        Ok(())
    })
}

/// The largest token of each path. Keep it as long as what it protects.
type Fences = Arc<Mutex<HashMap<String, u64>>>;
type Texts = Arc<Mutex<HashMap<String, String>>>;

/// Lets a request pass if its `Fencing-Token` is at least as large as all before at the same path.
/// Others get 412, and those without a token 428.
pub(crate) async fn fenced(State(fences): State<Fences>, request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let token = request.headers().get("fencing-token").and_then(|token| token.to_str().ok());
    let Some(token) = token.and_then(|token| token.parse::<u64>().ok()) else {
        let text = "send the token of your lock as Fencing-Token\n";
        return (StatusCode::PRECONDITION_REQUIRED, text).into_response();
    };
    let path = request.uri().path().to_owned();
    // Before the write: one that fails must not let an older token pass.
    let largest = {
        let mut fences = fences.lock().unwrap_or_else(PoisonError::into_inner);
        let largest = fences.entry(path).or_default();
        *largest = token.max(*largest);
        *largest
    };
    if token < largest {
        let text = "a later holder has written: take the lock again, and look anew\n";
        return (StatusCode::PRECONDITION_FAILED, text).into_response();
    }
    next.run(request).await
}

/// Serves texts by their paths, until `stop`.
pub(crate) async fn serve(
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let routes = Router::new()
        .route("/{*path}", put(write).get(read))
        .with_state(Texts::default())
        .layer(middleware::from_fn_with_state(Fences::default(), fenced));
    axum::serve(listener, routes).with_graceful_shutdown(stop).await
}

async fn write(State(texts): State<Texts>, Path(path): Path<String>, text: String) -> StatusCode {
    texts.lock().unwrap_or_else(PoisonError::into_inner).insert(path, text);
    StatusCode::NO_CONTENT
}

async fn read(State(texts): State<Texts>, Path(path): Path<String>) -> Result<String, StatusCode> {
    let texts = texts.lock().unwrap_or_else(PoisonError::into_inner);
    texts.get(&path).cloned().ok_or(StatusCode::NOT_FOUND)
}
