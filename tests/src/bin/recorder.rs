//! A client process that records its steps: it requests locks at random until its standard input
//! ends.

use std::io::{self, Read};
use std::process::ExitCode;
use std::time::Duration;
use std::{env, thread};

use navlocks::{ConnectError, Locks};
use navlocks_tests::chaos::{Client, Dice, Errand};
use navlocks_tests::record::Pen;
use tokio::time::sleep;

fn main() -> ExitCode {
    match Errand::from_args(env::args()).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("recorder: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(errand: Errand) -> Result<(), String> {
    let Errand { who, folder, url, partition, lease, seed, tasks, habits } = errand;
    let said = |error: io::Error| format!("{who}: {error}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(said)?.block_on(async {
        let pen = Pen::new(&folder, who.clone()).map_err(said)?;
        let locks =
            connect(&url, &partition, lease).await.map_err(|error| format!("{who}: {error}"))?;
        let client = Client::new(locks.clone(), pen, habits);
        let finishing = client.clone();
        thread::spawn(move || {
            // An input that cannot be read has ended as well.
            let _ = io::stdin().read_to_end(&mut Vec::new());
            finishing.finish();
        });
        let played: Vec<_> = (0..tasks)
            .map(|task| tokio::spawn(client.clone().play(Dice::new(seed, task))))
            .collect();
        for task in played {
            task.await.map_err(|error| format!("{who}: {error}"))?.map_err(said)?;
        }
        // Without this, other clients would wait until the service notices the end.
        locks.disconnect().await;
        Ok(())
    })
}

/// Connects to the locks of the address. Requests wait while a service restarts.
async fn connect(
    url: &str,
    partition: &str,
    lease: Option<Duration>,
) -> Result<Locks, ConnectError> {
    if url == "local:" {
        return Ok(Locks::new());
    }
    loop {
        let mut connect = Locks::connect(url).partition(partition).unreachable_after(None);
        if let Some(lease) = lease {
            connect = connect.lease(lease);
        }
        match connect.await {
            Err(ConnectError::Unreachable(_)) => sleep(RETRY).await,
            connected => return connected,
        }
    }
}

const RETRY: Duration = Duration::from_millis(10);
