//! Tests of the real service in a simulated environment.

#![allow(clippy::unwrap_used)]

mod backup;
mod checks;
mod doctor;
mod eight_weeks;
mod full_disk;
mod life;
mod links;
mod own_process;
mod world;
