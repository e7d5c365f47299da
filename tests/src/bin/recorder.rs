//! A client process on record: asks for locks at random until its standard input ends.

use std::io::{self, Read};
use std::process::ExitCode;
use std::{env, thread};

use navlocks::Locks;
use navlocks_tests::chaos::{Client, Dice, Errand};
use navlocks_tests::record::Pen;

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
    let Errand { who, folder, url, seed, tasks, habits } = errand;
    let said = |error: io::Error| format!("{who}: {error}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(said)?.block_on(async {
        let pen = Pen::new(&folder, who.clone()).map_err(said)?;
        let client = Client::new(connect(&url)?, pen, habits);
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
        Ok(())
    })
}

/// The locks that the address stands for.
fn connect(url: &str) -> Result<Locks, String> {
    match url {
        "local:" => Ok(Locks::new()),
        _ => Err(format!("no locks are known at {url}; there is local:")),
    }
}
