//! Documents name what exists.

mod readme;
mod restarts_page;
