//! The records of processes that use locks, and the history that is read from them.
//!
//! Every process appends [lines](Line) to a file of its own, in the order of its steps. A line is
//! one `write`, so a process that is killed loses at most the line it was about to write. All times
//! are of one clock, that of the machine, so lines of different processes can be compared.
//!
//! ```text
//! {"at":7301,"who":"c3","what":{"request":[12,{"asked":{"names":["a","b"],"mode":"shared","wait":"queue"}}]}}
//! {"at":7440,"who":"c3","what":{"request":[12,{"pending":{"since":7390,"id":"r88"}}]}}
//! {"at":9120,"who":"c3","what":{"request":[12,{"held":{"token":41,"id":"r88"}}]}}
//! {"at":9210,"who":"c3","what":{"request":[12,"still"]}}
//! {"at":9300,"who":"conductor","what":{"deed":["c3","killing"]}}
//! ```
//!
//! The time of reading the clock matters, not that of writing the line; [`Step`] defines it for
//! each step. One history is about one lock space: names and tokens of different spaces are
//! unrelated.

mod history;
mod line;
mod moment;
mod pen;

pub use history::{History, ReadError};
pub use line::{CONDUCTOR, Deed, Line, Mode, RequestNo, SERVICE, Step, Wait, What, Who};
pub use moment::Moment;
pub use pen::Pen;
