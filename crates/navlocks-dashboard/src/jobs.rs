//! The questions that wait for their answers. A surveyor answers them in small steps and rests
//! after each, so that all dashboards together take a small part of the thread's time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use navlocks_server::inspect::{Inspector, Viewer};
use navlocks_wire::{Fault, FaultCode};
use tokio::sync::oneshot;

use crate::shown::Shown;
use crate::view::View;
use crate::views::{Survey, Views};

/// For each moment of work, so many of rest.
const REST: u32 = 19;

/// The longest time between two looks at a recording that no page asks about.
const LOOK: Duration = Duration::from_secs(60);

/// The most questions of one tenant that wait for their answers.
const JOBS_PER_TENANT_MAX: usize = 64;

/// The questions of all viewers.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    pub(crate) views: Views,
    waiting: RefCell<VecDeque<Job>>,
}

/// A question that waits for its answer.
#[derive(Debug)]
pub(crate) struct Job {
    viewer: Rc<Viewer>,
    view: View,
    survey: Option<Survey>,
    answer: oneshot::Sender<Result<Shown, Fault>>,
}

impl Jobs {
    /// Asks a question, and returns the answer when its turn has come.
    pub(crate) async fn ask(&self, viewer: Rc<Viewer>, view: View) -> Result<Shown, Fault> {
        let of_tenant = |job: &&Job| job.viewer.tenant == viewer.tenant;
        if self.waiting.borrow().iter().filter(of_tenant).count() >= JOBS_PER_TENANT_MAX {
            let text = "too many questions of dashboards wait for their answers: ask less often";
            return Err(Fault::new(FaultCode::Limit, text));
        }
        let (answer, answered) = oneshot::channel();
        self.waiting.borrow_mut().push_back(Job { viewer, view, survey: None, answer });
        self.views.histories.board.wake.notify_one();
        let gone = |_| Fault::new(FaultCode::ShuttingDown, "the service is shutting down");
        answered.await.map_err(gone)?
    }

    /// Answers questions until the service ends. It sleeps while there are none.
    pub(crate) async fn run(&self, service: &Inspector) {
        let histories = &self.views.histories;
        if service.is_public() {
            self.views.begin_recording(service, Instant::now());
        }
        loop {
            let begun = Instant::now();
            if self.step(service, begun) {
                tokio::time::sleep(begun.elapsed() * REST).await;
                continue;
            }
            let wake = &histories.board.wake;
            if !histories.is_recording() {
                wake.notified().await;
                continue;
            }
            let _looks = tokio::time::timeout(LOOK, wake.notified()).await;
            if !service.is_public() && histories.end_unasked(Instant::now()) {
                service.end_recording();
            }
        }
    }

    /// Works on the first question for a moment. Returns false if there is nothing to do.
    fn step(&self, service: &Inspector, now: Instant) -> bool {
        let first = self.waiting.borrow_mut().pop_front();
        let Some(mut job) = first else {
            let looks = self.views.histories.board.look.replace(false);
            if looks {
                self.views.look_for_deadlocks(service, &|_| true, now);
            }
            return looks;
        };
        // Its page may be gone.
        if job.answer.is_closed() {
            return true;
        }
        let Job { viewer, view, survey, .. } = &mut job;
        match self.views.work(service, viewer, view, survey, now) {
            Some(shown) => drop(job.answer.send(shown)),
            None => self.waiting.borrow_mut().push_front(job),
        }
        true
    }
}
