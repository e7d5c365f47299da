//! Turns: each tenant has the thread for a while, then the others, so that none waits for all the
//! work of another.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, ready};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::Shared;
use crate::hub::Share;

/// The tenants that wait for a turn.
#[derive(Debug, Default)]
pub(crate) struct Pacing {
    waiting: RefCell<Vec<Rc<Share>>>,
    begun: Notify,
}

impl Pacing {
    fn wait(&self, share: &Rc<Share>) {
        let mut waiting = self.waiting.borrow_mut();
        if !waiting.iter().any(|other| Rc::ptr_eq(other, share)) {
            waiting.push(share.clone());
            self.begun.notify_one();
        }
    }

    /// Gives the tenants that wait a turn each, again and again. All that is ready runs between two
    /// rounds.
    pub(crate) async fn run(&self, turn: Duration) {
        loop {
            if self.waiting.borrow().is_empty() {
                self.begun.notified().await;
            }
            tokio::task::yield_now().await;
            self.waiting.borrow_mut().retain(|share| {
                share.turns.begin(turn);
                share.turns.has_waiting()
            });
        }
    }
}

/// Runs a task of a tenant in the tenant's turns.
pub(crate) async fn in_turn(shared: Rc<Shared>, share: Rc<Share>, task: impl Future<Output = ()>) {
    let mut task = Box::pin(task);
    let place = Rc::default();
    std::future::poll_fn(|cx| {
        let turn = share.turns.poll_turn(&place, cx);
        if turn.is_pending() {
            shared.pacing.wait(&share);
        }
        ready!(turn);
        let begun = Instant::now();
        let polled = catch_unwind(AssertUnwindSafe(|| Pin::new(&mut task).poll(cx)));
        share.turns.used(begun.elapsed());
        polled.unwrap_or_else(|_| {
            tracing::error!("a connection's task has panicked");
            shared.panicked.notify_one();
            Poll::Ready(())
        })
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::task::{LocalSet, spawn_local, yield_now};

    use super::*;
    use crate::config::{Config, Origins};
    use crate::hubs::Hubs;

    fn run(test: impl AsyncFnOnce(Rc<Shared>)) {
        let config = Config::default();
        let hubs = Hubs::of_service(&config, None, true);
        let shared = Shared::new(config, Origins::default(), None, hubs.expect("hubs"));
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(LocalSet::new().run_until(test(Rc::new(shared))));
    }

    #[test]
    fn tenant_with_many_tasks_lets_another_one_run_after_each_turn() {
        run(async |shared| {
            let pacing = shared.clone();
            // A turn so short that each step of a task uses it up.
            spawn_local(async move { pacing.pacing.run(Duration::from_nanos(1)).await });
            let (many, one) = (Rc::<Share>::default(), Rc::<Share>::default());
            let steps = Rc::new(Cell::new(0));
            for _ in 0..1000 {
                let steps = steps.clone();
                spawn_local(in_turn(shared.clone(), many.clone(), async move {
                    for _ in 0..10 {
                        steps.set(steps.get() + 1);
                        yield_now().await;
                    }
                }));
            }
            let others = steps.clone();
            spawn_local(in_turn(shared, one, async move {
                let mut before = others.get();
                for _ in 0..10 {
                    yield_now().await;
                    let meanwhile = others.get() - before;
                    assert!(meanwhile <= 2, "{meanwhile} steps of another tenant came first");
                    before = others.get();
                }
            }))
            .await
            .expect("no other tenant holds it up");
            while steps.get() < 10_000 {
                yield_now().await;
            }
        });
    }

    #[test]
    fn panic_in_a_task_is_told_to_the_service() {
        run(async |shared| {
            let share = Rc::<Share>::default();
            let pacing = shared.clone();
            spawn_local(async move { pacing.pacing.run(Duration::from_millis(1)).await });
            spawn_local(in_turn(shared.clone(), share, async { panic!("as a test") }));
            shared.panicked.notified().await;
        });
    }
}
