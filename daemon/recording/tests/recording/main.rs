//! Tests of imports from outside: real, damaged and hostile traces.

mod any_trace;
mod privacy;
mod strace;
