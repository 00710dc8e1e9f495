//! Files of synthetic machines, by the code that makes real ones.

use longhaul_demo::machine::{MachineSpec, SyntheticMachine, synthetic_machine};
use longhaul_model::draw::draw;

use crate::{NasFamily, ShareBuilder, ShareFacts, SharedFile, SharedRecords, SharedResults};

/// Returns the facts of every synthetic machine.
pub(super) fn facts() -> ShareFacts {
    ShareFacts { longhaul: "0.1.0".to_owned(), threshold: 1.1, nas: NasFamily::default() }
}

/// Returns the file of stored records.
pub(super) fn share_of(machine: SyntheticMachine) -> SharedResults {
    let SyntheticMachine { targets, epochs, rounds, runs } = machine;
    let mut builder = ShareBuilder::new(facts(), SharedRecords { targets, epochs, rounds });
    runs.iter().for_each(|run| builder.add(run));
    builder.finish().unwrap()
}

/// Returns the file of a small machine with this number.
pub(super) fn share(number: u64, ln_ratio: f64) -> SharedResults {
    share_of(synthetic_machine(&MachineSpec::small(draw(11, 1, number), ln_ratio)))
}

/// Returns a file as it is given to merge.
pub(super) fn named(name: &str, share: SharedResults) -> SharedFile {
    SharedFile { name: name.to_owned(), content: Ok(share) }
}
