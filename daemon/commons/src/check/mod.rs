//! Checks whether a file is what a machine measured: figures, order of the runs, times and traffic, histograms.
//!
//! A file that was made up as a whole, with the program that makes the files of the tests, passes. The checks find files that
//! were changed after they were measured.

mod completeness;
mod histograms;
mod order;
mod physics;
mod recomputed;

use crate::share::SharedResults;

type Check = fn(&SharedResults) -> Vec<String>;

/// Returns the contradictions in a file, each as its kind and a sentence without its end; none for a file as it was exported. The
/// file must have been read by [`read`](crate::read), or made by a [`ShareBuilder`](crate::ShareBuilder).
pub fn check(share: &SharedResults) -> Vec<String> {
    let checks: [(&str, Check); 6] = [
        ("completeness", completeness::check),
        ("order", order::check),
        ("times", physics::times),
        ("traffic", physics::traffic),
        ("histograms", histograms::check),
        ("figures", recomputed::check),
    ];
    let found = |(kind, check): &(&str, Check)| -> Vec<String> {
        check(share).iter().map(|text| format!("{kind}: {text}")).collect()
    };
    checks.iter().flat_map(found).collect()
}
