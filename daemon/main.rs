//! longhauld.
fn main() {}
