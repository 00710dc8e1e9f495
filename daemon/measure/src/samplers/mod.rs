//! What is sampled beside the replayed tasks: how it felt, without loading the share.

pub mod ledger;
