//! Statistics and verdicts of longhaul: values in, values out.
//!
//! [`stats`] has the numbers, [`summary`] what many runs say, [`attribution`] which layer their time is spent in,
//! [`prediction`] how long they would take elsewhere, [`usage`] how often a user does what, [`checks`] what checks found,
//! [`stalls`] what caused slow calls, and `simulation` (for tests) weeks that never happened, on which they are tried. No
//! clock, no file, no operating system.
//!
//! ```
//! use longhaul_analysis::stats::DaySeries;
//!
//! // Twenty days on which one target took about 20 % less time than the other.
//! let days: Vec<(i64, f64)> = (0..20).map(|day| (day, 0.8f64.ln() + 0.02 * f64::from(day as i32 % 3 - 1))).collect();
//! let (low, high) = DaySeries::from_days(&days).unwrap().interval(0.05);
//! assert!(low < 0.8f64.ln() && 0.8f64.ln() < high && high < 0.0);
//! ```

pub mod attribution;
pub mod checks;
pub mod prediction;
#[cfg(any(test, feature = "simulation"))]
pub mod simulation;
pub mod stalls;
pub mod stats;
pub mod summary;
pub mod usage;
