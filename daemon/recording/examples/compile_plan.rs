//! Measures how long a replay plan takes to compile, and how much memory:
//! `cargo run --release -p longhaul-recording --example compile_plan -- OPERATIONS THREADS`

use std::num::NonZeroU8;
use std::time::{Duration, Instant};

use longhaul_recording::plan::Limits;
use longhaul_recording::{
    Access, Account, Action, ActionResult, CreateMode, FileKind, HandleNumber, InitialState, Node,
    NodeNumber, OpenMode, Operations, PowerOfTwo, RecordedOperation, Recording, ReplayPlan, Source,
};

/// Number of files in the tree.
const FILES: u32 = 200_000;
/// Number of folders in the tree.
const FOLDERS: u32 = 5_000;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<u32>().expect("a number"));
    let (count, threads) = (numbers.next().unwrap_or(10_000_000), numbers.next().unwrap_or(8));
    let recording = recording(count, threads);
    let before = peak_kilobytes();
    let began = Instant::now();
    let plan = ReplayPlan::compile(&recording, Limits { threads: 110, pause: Duration::from_secs(2) });
    let seconds = began.elapsed().as_secs_f64();
    let waits: usize = plan.lanes.iter().map(|lane| lane.wait_count()).sum();
    println!(
        "{} operations, {} steps, {} threads, {waits} waits: {seconds:.1} s; memory {:.0} MB before, {:.0} MB at most",
        recording.operations.len(),
        plan.step_count(),
        plan.lanes.len(),
        before as f64 / 1e3,
        peak_kilobytes() as f64 / 1e3
    );
}

/// Returns the most memory that this process has used.
fn peak_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Returns a recording in which threads look at files, read some of them and write a few.
fn recording(count: u32, threads: u32) -> Recording {
    let node = |parent, initial| Node { parent: NodeNumber(parent), kind: FileKind::Other, initial };
    let file = InitialState::File(PowerOfTwo::of(10_000));
    let mut nodes = vec![node(0, InitialState::Folder)];
    nodes.extend((0..FOLDERS).map(|number| node(number / 10, InitialState::Folder)));
    nodes.extend((0..FILES).map(|number| node(1 + number % FOLDERS, file)));
    let mut operations = Operations::default();
    let (mut handle, mut turn) = (0, 0);
    while operations.len() < count as usize {
        let thread = turn % threads;
        let node = NodeNumber(1 + FOLDERS + turn.wrapping_mul(2_654_435_761) % FILES);
        let access = if turn % 10 == 0 { Access::ReadWrite } else { Access::Read };
        let mode = OpenMode { access, create: CreateMode::Never, truncate: false, folder: false };
        let open = HandleNumber(handle);
        let transfer = match access {
            Access::Read => Action::Read { handle: open, offset: 0, length: 16_384, read: 10_000 },
            _ => Action::Write { handle: open, offset: 0, length: 4_096 },
        };
        let actions = [
            Action::Attributes { node },
            Action::Open { node, mode, handle: Some(open) },
            transfer,
            Action::Close { handle: open },
        ];
        for action in actions {
            let pause = PowerOfTwo::of(u64::from(turn % 1000));
            let (result, depth_in_open_folder) = (ActionResult::Done, NonZeroU8::new(1));
            operations.push(RecordedOperation { thread, pause, action, result, depth_in_open_folder });
        }
        (handle, turn) = (handle + 1, turn + 1);
    }
    Recording {
        source: Source::Strace,
        recorded_on: None,
        nodes,
        operations,
        mean_pauses: vec![],
        mean_sizes: vec![],
        times: None,
        account: Account::default(),
    }
}
