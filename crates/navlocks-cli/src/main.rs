//! The command `navlocks`.

fn main() {}
