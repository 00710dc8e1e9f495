//! Tests over synthetic machines.

mod bad_input;
mod error_rates;
mod forgeries;
mod machines;
mod mixed_scales;
mod privacy;
