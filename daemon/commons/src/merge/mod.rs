//! Merges the files of many machines into results.

mod copies;
mod groups;
mod pooled;
mod values;

use std::collections::BTreeMap;

use crate::share::SharedResults;
use groups::merged_pair;
use pooled::MachineFigures;
use values::PairKey;
pub use values::{
    Agreement, GroupKind, MachineRatio, Merged, MergedGroup, MergedPair, MergedResult, RefusedFile,
    SharedFile,
};

/// Merges files. A file that cannot be used, is changed, or repeats a machine is left out with the reason. The result does not
/// depend on how often a file is given.
pub fn merge(files: Vec<SharedFile>) -> Merged {
    let mut refused = vec![];
    let mut usable: Vec<(String, SharedResults)> = vec![];
    for file in files {
        match file.content {
            Ok(share) => usable.push((file.name, share)),
            Err(reason) => refused.push(RefusedFile { file: file.name, reason }),
        }
    }
    let shares = copies::without_copies(copies::newest_of_each(usable, &mut refused), &mut refused);
    let mut pairs: BTreeMap<PairKey, Vec<MachineFigures>> = BTreeMap::new();
    for share in &shares {
        for (key, figures) in pooled::by_protocols(share) {
            pairs.entry(key).or_default().push(figures);
        }
    }
    let mut pairs: Vec<MergedPair> =
        pairs.into_iter().map(|(key, machines)| merged_pair(key, &machines)).collect();
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.machines));
    Merged { schema: 1, machines: shares.len(), pairs, refused }
}
