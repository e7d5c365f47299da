//! A cache with shared readers and exclusive writers for each key. A missing value is loaded once,
//! however many clients request it at the same time.
//!
//! ```sh
//! cargo run -p navlocks --example reader_writer_cache
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use navlocks::blocking::block_on;
use navlocks::{Locks, RequestError};

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}

struct Cache {
    locks: Locks,
    values: Mutex<HashMap<String, String>>,
    loads: AtomicUsize,
}

impl Cache {
    async fn get(&self, key: &str) -> Result<String, RequestError> {
        let reading = self.locks.request(key).shared().await?;
        if let Some(value) = self.peek(key) {
            return Ok(value);
        }
        // A lock cannot be upgraded: two readers would wait for each other.
        drop(reading);
        let _writing = self.locks.request(key).await?;
        // Another client may have loaded it in between.
        if let Some(value) = self.peek(key) {
            return Ok(value);
        }
        let value = self.load(key).await;
        self.with_values(|values| values.insert(key.to_owned(), value.clone()));
        Ok(value)
    }

    /// Removes a value. When this returns no client uses the old one any more.
    async fn invalidate(&self, key: &str) -> Result<(), RequestError> {
        let _writing = self.locks.request(key).await?;
        self.with_values(|values| values.remove(key));
        Ok(())
    }

    fn peek(&self, key: &str) -> Option<String> {
        self.with_values(|values| values.get(key).cloned())
    }

    /// Locks the map for an instant; the named locks guard the values while they are loaded.
    fn with_values<T>(&self, work: impl FnOnce(&mut HashMap<String, String>) -> T) -> T {
        work(&mut self.values.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Loads a value slowly.
    async fn load(&self, key: &str) -> String {
        let load = self.loads.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{key}, load {load}")
    }

    /// Requests each key from eight threads at the same time. Returns the number of loads.
    fn storm(&self, keys: &[&str]) -> usize {
        thread::scope(|scope| {
            let asks = keys.iter().flat_map(|&key| [key; 8]);
            let threads: Vec<_> =
                asks.map(|key| scope.spawn(move || block_on(self.get(key)))).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()?.ok()).count()
        })
    }
}

pub(crate) fn run(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let cache = Cache { locks: Locks::new(), values: Mutex::default(), loads: AtomicUsize::new(0) };
    let loads = || cache.loads.load(Ordering::Relaxed);
    let answers = cache.storm(&["weather", "news"]);
    writeln!(out, "{answers} answers, {} loads", loads())?;
    let answers = cache.storm(&["weather", "news"]);
    writeln!(out, "{answers} more answers, {} loads", loads())?;
    block_on(cache.invalidate("news"))?;
    let answers = cache.storm(&["weather", "news"]);
    writeln!(out, "{answers} more answers after one change, {} loads", loads())?;
    Ok(())
}
