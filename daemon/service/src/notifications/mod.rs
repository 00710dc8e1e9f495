//! Decides what the user is reported, and when: values in, values out. Nothing here sends anything.
//!
//! [`Tracker`] turns the status into events, [`result_events`] a new summary, [`disk_events`] the free space, [`damage_events`] mismatches, and
//! [`due_digest`] the calendar. [`next_step`] decides for one channel which of the queued notifications are sent now.

mod channel_checks;
mod conditions;
mod damage;
mod delivery;
mod digest;
mod disks;
mod occurrence;
mod results;
mod settings;
mod tracker;

pub use channel_checks::check_channels;
pub use damage::damage_events;
pub use delivery::{NextDelivery, next_step, retry_delay};
pub use digest::{DigestTime, digest_switched_off, due_digest};
pub use disks::disk_events;
pub use occurrence::Occurrence;
pub use results::result_events;
pub use settings::{NotifyConfig, Rules};
pub use tracker::{Tracker, can_measure};
