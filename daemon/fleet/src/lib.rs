//! Exports of many machines.
