//! The web server of the examples, over HTTP.

use std::net::SocketAddr;
use std::time::Duration;

use navlocks::Locks;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::patience::comes_back;

#[allow(dead_code, reason = "main is for cargo run")]
#[path = "../../crates/navlocks/examples/web_server.rs"]
mod example;

use example::{Bank, serve};

/// Posts an amount, and returns the status and the text of the answer.
async fn post(server: SocketAddr, account: &str, amount: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(server).await.expect("a server");
    let length = amount.len();
    let request = format!(
        "POST /accounts/{account} HTTP/1.1\r\nhost: bank\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{amount}"
    );
    stream.write_all(request.as_bytes()).await.expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    let (head, text) = answer.split_once("\r\n\r\n").expect("an answer of HTTP");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("a status"), text.to_owned())
}

struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<std::io::Result<()>>,
}

async fn start(bank: &Bank) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(serve(listener, bank.clone(), async { drop(stopped.await) }));
    Server { address, stop, ended }
}

/// Waits until a lock on the name is held or requested.
async fn until_requested(locks: &Locks, held: usize) {
    while locks.query().await.expect("an answer").held.len() < held {
        tokio::task::yield_now().await;
    }
}

#[test]
fn web_server_answers_by_the_kind_of_failure() {
    comes_back(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let bank = Bank::new(Locks::new(), Duration::from_millis(20));
            let Server { address, stop, ended } = start(&bank).await;
            assert_eq!(post(address, "rent", "100").await, (200, "100\n".to_owned()));
            assert_eq!(post(address, "rent", "-30").await, (200, "70\n".to_owned()));
            assert_eq!(post(address, "rent", "much").await.0, 400);

            // Another request works on the account.
            let held = bank.locks.request("account/rent").tag("audit").await.expect("it is free");
            let (status, text) = post(address, "rent", "1").await;
            assert_eq!(status, 409, "{text}");
            assert!(text.contains("held by audit"), "{text}");
            assert_eq!(post(address, "wages", "1").await.0, 200);
            drop(held);

            // The lock is lost while the request works under it: its work ends.
            let busy = bank.balances.lock().await;
            let lost = tokio::spawn(async move { post(address, "rent", "5").await });
            until_requested(&bank.locks, 1).await;
            assert_eq!(bank.locks.force_release("account/rent").await, Ok(1));
            assert_eq!(
                lost.await.expect("an answer"),
                (503, "the lock was force-released\n".into())
            );
            drop(busy);
            assert_eq!(post(address, "rent", "0").await, (200, "70\n".to_owned()));

            // A shutdown lets the work that has begun end.
            let busy = bank.balances.lock().await;
            let last = tokio::spawn(async move { post(address, "rent", "7").await });
            until_requested(&bank.locks, 1).await;
            stop.send(()).expect("the server waits");
            drop(busy);
            assert_eq!(last.await.expect("an answer"), (200, "77\n".to_owned()));
            ended.await.expect("it ends").expect("without an error");
            let refused = bank.locks.request("account/rent").await.expect_err("it has drained");
            assert_eq!(refused, navlocks::RequestErrorKind::ClientDraining);
        });
    });
}
