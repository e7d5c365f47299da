//! The surveyor: answers the questions of dashboards in small steps, and rests after each, so that
//! all dashboards together take a small part of the thread's time.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::Shared;

/// For each moment of work, so many of rest.
const REST: u32 = 19;

/// The longest time between two looks at a recording that no dashboard asks about.
const LOOK: Duration = Duration::from_secs(60);

/// Works until the service ends. It sleeps while no dashboard asks.
pub(crate) async fn run(shared: Rc<Shared>) {
    let wake = shared.hubs.common.views.borrow().wake();
    loop {
        let begun = Instant::now();
        if shared.hubs.first().borrow_mut().step_views(begun) {
            tokio::time::sleep(begun.elapsed() * REST).await;
            continue;
        }
        let recording = shared.hubs.common.views.borrow().is_recording();
        if recording {
            let _looks = tokio::time::timeout(LOOK, wake.notified()).await;
            shared.hubs.first().borrow_mut().check_recording(Instant::now());
        } else {
            wake.notified().await;
        }
    }
}
