//! What longhaul measures and how.
pub mod arena;
pub mod context;
pub mod corpus;
pub mod error;
pub mod model;
pub mod platform;
pub mod recorder;
pub mod stats;
