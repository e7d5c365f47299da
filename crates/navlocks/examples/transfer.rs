//! Money goes between accounts, in all directions at once. Each transfer requests both accounts as
//! one scope: it gets both or waits for both, so two transfers in opposite directions cannot
//! deadlock.
//!
//! ```sh
//! cargo run -p navlocks --example transfer
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::thread;

use navlocks::{Locks, RequestError};

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}

const ACCOUNTS: [&str; 3] = ["rent", "savings", "wages"];
const CLERKS: usize = 4;
const TRANSFERS_EACH: usize = 250;

/// Balances that can be read and written, but not both in one step.
struct Bank {
    locks: Locks,
    balances: Mutex<HashMap<&'static str, i64>>,
}

impl Bank {
    fn transfer(
        &self,
        from: &'static str,
        to: &'static str,
        amount: i64,
    ) -> Result<(), RequestError> {
        let _both = self.locks.request([from, to]).lock_blocking()?;
        let (had, has) = (self.balance(from), self.balance(to));
        // Without the lock, a transfer of another client here would be undone below.
        thread::yield_now();
        self.set(from, had - amount);
        self.set(to, has + amount);
        Ok(())
    }

    fn balance(&self, account: &str) -> i64 {
        let balances = self.balances.lock().unwrap_or_else(PoisonError::into_inner);
        balances.get(account).copied().unwrap_or(0)
    }

    fn set(&self, account: &'static str, balance: i64) {
        self.balances.lock().unwrap_or_else(PoisonError::into_inner).insert(account, balance);
    }

    fn total(&self) -> i64 {
        ACCOUNTS.iter().map(|account| self.balance(account)).sum()
    }
}

pub(crate) fn run(out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let balances = Mutex::new(ACCOUNTS.map(|account| (account, 100)).into());
    let bank = Bank { locks: Locks::new(), balances };
    writeln!(out, "before: {} in {} accounts", bank.total(), ACCOUNTS.len())?;
    thread::scope(|scope| {
        let clerk = |clerk: usize| {
            let bank = &bank;
            move || {
                for number in clerk..clerk + TRANSFERS_EACH {
                    // Around the circle, each clerk the other way than the one before.
                    let (here, there) = (number % 3, (number + 1 + clerk % 2) % 3);
                    bank.transfer(ACCOUNTS[here], ACCOUNTS[there], 7)?;
                }
                Ok(())
            }
        };
        let clerks: Vec<_> = (0..CLERKS).map(|number| scope.spawn(clerk(number))).collect();
        clerks.into_iter().try_for_each(|clerk| -> Result<(), Box<dyn Error>> {
            let done: Result<(), RequestError> = clerk.join().map_err(|_| "a clerk crashed")?;
            Ok(done?)
        })
    })?;
    writeln!(out, "{} transfers by {CLERKS} clerks at once", CLERKS * TRANSFERS_EACH)?;
    writeln!(out, "after: {} in {} accounts", bank.total(), ACCOUNTS.len())?;
    Ok(())
}
