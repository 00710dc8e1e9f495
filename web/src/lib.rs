//! The control interface.
