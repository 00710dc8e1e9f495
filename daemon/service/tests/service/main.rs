//! Tests of the real service in a simulated environment.

#![allow(clippy::unwrap_used)]

mod automount;
mod backup;
mod checks;
mod dead_share;
mod doctor;
mod eight_weeks;
mod full_disk;
mod life;
mod links;
mod own_process;
mod world;
