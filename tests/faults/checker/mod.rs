//! The checker of records: the violations that it finds, and histories that prove none.

mod violations;
mod no_violations;
mod handwritten;
mod records;
