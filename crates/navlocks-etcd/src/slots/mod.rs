//! Slots: which node takes and gives them, how, and for how long one may be believed.

pub(crate) mod plan;
pub(crate) mod takeover;
pub(crate) mod slot;
pub(crate) mod belief;
pub(crate) mod ended;
