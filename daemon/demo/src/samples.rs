//! Made-up samples of the latency probe.

use longhaul_model::draw::draw_below;
use longhaul_model::time::{DAY, HOUR};
use longhaul_model::{LoadContext, ProbeKind, ProbeStep, Role, Target, Timestamp};
use longhaul_store::Samples;

use crate::name;
use crate::stall::stall;

/// Shares with their usual latency in microseconds.
const SHARES: [(&str, u64); 3] = [("smb", 330), ("nfs", 260), ("afp", 520)];

/// Returns the samples of the days up to now: no requests at night, slow evenings, and a stall of NFS every ninth day.
pub fn last_days(now: Timestamp, days: u32) -> Samples {
    let targets = SHARES.map(|(name, _)| target(name)).to_vec();
    let mut samples = Samples { targets, now, ..Samples::default() };
    for day in (0..days).rev() {
        add_day(&mut samples, now - day * DAY);
    }
    samples
}

fn target(share: &str) -> Target {
    Target { path: format!("/Volumes/{share}").into(), name: name(share), role: Role::Share }
}

fn add_day(samples: &mut Samples, day: Timestamp) {
    let midnight = day.floor(DAY);
    let now = samples.now;
    let hours = (7..24).map(|hour| midnight + hour * HOUR).filter(|at| *at < now);
    let day = midnight.local_day(0);
    // Counted from now, so that the last week always has data.
    let days_ago = now.local_day(0) - day;
    let is_holiday = (9..12).contains(&(days_ago % 31));
    if is_holiday {
        return;
    }
    for at in hours {
        for share in SHARES {
            samples.probes.extend([ProbeKind::Getattr, ProbeKind::Read].map(|kind| step(share, at, kind)));
        }
    }
    let at = midnight + 20 * HOUR;
    if day % 9 == 4 && at < now {
        samples.stalls.push(stall(target("nfs").name, at));
    }
}

fn step((name, usual_us): (&str, u64), at: Timestamp, kind: ProbeKind) -> ProbeStep {
    let mut step = ProbeStep::new(target(name).name, at, kind, LoadContext::Idle);
    let hour = at.since(at.floor(DAY)).as_secs() / HOUR.as_secs();
    let evening = if (18..22).contains(&hour) { 3 } else { 1 };
    let cached = if kind == ProbeKind::Getattr { 4 } else { 1 };
    for answer in 0..60 {
        let drawn = draw_below(at.as_us().cast_unsigned() ^ usual_us, kind as u64, answer, 1_000);
        let slow = if drawn > 990 { 30 } else { 1 };
        step.latency.record(1_000 * usual_us * evening * slow * (400 + drawn) / (500 * cached));
    }
    // The requests of the stall: none was answered in time, and each failed in the end.
    if kind == ProbeKind::Getattr && name == "nfs" && at.local_day(0) % 9 == 4 && hour == 20 {
        (step.timeouts, step.errors) = (3, 3);
    }
    step
}
