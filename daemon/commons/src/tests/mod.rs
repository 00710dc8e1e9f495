//! Tests over made-up machines.
