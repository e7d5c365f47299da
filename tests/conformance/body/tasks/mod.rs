//! Futures, callbacks and guards, on any executor.

use super::{Arm, start};

mod wakers;
mod runtimes;
mod callbacks;
mod guards;
