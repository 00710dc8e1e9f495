//! Made-up rounds in progress.

use std::sync::Arc;
use std::time::Duration;

use longhaul_measure::platform;
use longhaul_measure::recorder::Recorder;
use longhaul_model::draw::draw_below;
use longhaul_model::{Operation, Stall};
use longhaul_service::handle::ServiceHandle;

use crate::name;
use crate::stall::stall;

/// Number of runs of a round, and of those that are done when it is shown.
const RUNS: (u32, u32) = (12, 4);

/// Returns a stall that is still in progress.
pub fn stall_now() -> Stall {
    let since = platform::wall_clock() - Duration::from_secs(5);
    Stall { ended_us: None, calls: 1, ..stall(name("nfs"), since) }
}

/// Starts a round: some runs are done, and the next one has made some calls.
///
/// # Errors
///
/// If memory for the calls cannot be reserved.
pub fn begin_round(handle: &ServiceHandle) -> anyhow::Result<()> {
    let target = name("smb");
    let last = handle.status().and_then(|status| status.last_round).map_or(0, |last| last.number);
    handle.begin_round(last + 1, RUNS.0);
    for _ in 0..RUNS.1 {
        handle.end_run();
    }
    handle.set_run(&target, "photo-batch");
    handle.set_phase(&target, "open-cold");
    let recorder = Arc::new(Recorder::private()?);
    let lane = recorder.thread_slot(0);
    for call in 0..300 {
        for operation in [Operation::Open, Operation::Read] {
            lane.begin(operation, platform::monotonic_ns());
            lane.end(operation, 200_000 + draw_below(1, operation as u64, call, 900_000), &Ok::<(), ()>(()));
        }
        lane.add_read(1 << 20);
    }
    handle.set_recorder(&target, &recorder);
    Ok(())
}

/// Shows rounds for ever, with a stall in each of them, so that a page has something live to show.
///
/// # Errors
///
/// If a round cannot begin.
pub async fn repeat_rounds(handle: Arc<ServiceHandle>) -> anyhow::Result<()> {
    loop {
        begin_round(&handle)?;
        tokio::time::sleep(Duration::from_secs(12)).await;
        handle.set_stalls(vec![stall_now()]);
        tokio::time::sleep(Duration::from_secs(4)).await;
        handle.set_stalls(vec![]);
        handle.end_round();
        tokio::time::sleep(Duration::from_secs(6)).await;
    }
}
