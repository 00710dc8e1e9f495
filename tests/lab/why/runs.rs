//! Runs on three mounts of a folder of the NAS: measured now, or recorded before.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_analysis::attribution::{Attribution, attribute};
use longhaul_model::{CacheState, PhaseTimes, TASKS};
use longhaul_store::Reader;

use crate::machines::{Lab, text};

const DATABASE: &str = "/m/local/why/l.sqlite";
const CONFIG: &str = "/m/local/why/c.toml";
const OUTPUT: &str = "/m/local/why/output";
/// Time after which the kernel has forgotten round-trip times: it is set to two seconds instead of five minutes, because
/// faults follow each other.
pub const FORGOTTEN_AFTER: Duration = Duration::from_secs(3);

/// Mounts of one folder of the NAS that lies on a disk with a delay. Trees are so large that a run takes seconds.
pub const SHARES: [Share; 3] = [
    Share { name: "smb3", path: "/m/smb3/slow", files: 900 },
    Share { name: "nfs3", path: "/m/slow3", files: 2000 },
    Share { name: "nfs4", path: "/m/slow4", files: 2000 },
];

/// Mount of the folder, with its name in reports, its path and the number of files in a tree.
#[derive(Clone, Copy)]
pub struct Share {
    /// Name of the target.
    pub name: &'static str,
    /// Path of the folder.
    pub path: &'static str,
    files: u32,
}

/// Source of readings of the NAS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NasSource {
    /// The NAS tells nothing.
    None,
    /// `/proc/diskstats` of the NAS.
    Disk,
}

/// Times of a share's metrics in one run of each task.
pub struct Measured {
    /// Attribution of each metric.
    pub metrics: Vec<Attribution>,
    /// Retransmitted segments, by metric.
    pub lost: BTreeMap<&'static str, u64>,
}

/// Source of the runs.
pub enum Runs {
    /// They are measured, and recorded for [`Runs::Recorded`].
    Live {
        /// The machines.
        lab: Lab,
        /// Copy of the database. Beside it lies a list of the seconds in which the disk was busy in each run.
        copy: PathBuf,
    },
    /// They were recorded by the same trials before.
    Recorded {
        /// Phases of each run.
        phases: VecDeque<Vec<PhaseTimes>>,
        /// Seconds in which the disk of the NAS was busy in each run.
        disk_seconds: VecDeque<f64>,
    },
}

impl Runs {
    /// Starts the machines.
    pub fn live() -> Self {
        let lab = Lab::up("local smb3");
        prepare(&lab);
        let name = format!("why-{}.sqlite", std::process::id());
        Self::Live { lab, copy: Path::new(env!("CARGO_TARGET_TMPDIR")).join(name) }
    }

    /// Reads the copy of a database that was left by a test before.
    pub fn recorded(copy: &Path) -> Self {
        let phases = Reader::open(copy)
            .and_then(|reader| reader.phase_times(u32::MAX, None))
            .expect("it is a database");
        let busy = fs::read_to_string(busy_list(copy)).unwrap_or_default();
        Self::Recorded {
            phases: phases.chunk_by(|one, next| one.run == next.run).map(<[PhaseTimes]>::to_vec).collect(),
            disk_seconds: busy.lines().map(|line| line.parse().expect("seconds")).collect(),
        }
    }

    /// Returns the machines; `None` if the runs were recorded.
    pub fn lab(&self) -> Option<&Lab> {
        match self {
            Self::Live { lab, .. } => Some(lab),
            Self::Recorded { .. } => None,
        }
    }

    /// Runs the tasks once on a share and attributes the time of each metric.
    pub fn measure(&mut self, share: Share, source: NasSource) -> Measured {
        if let Some(lab) = self.lab() {
            std::thread::sleep(FORGOTTEN_AFTER);
            lab.ask("sync; echo 3 >/proc/sys/vm/drop_caches");
            lab.ask_nas("sync; echo 3 >/proc/sys/vm/drop_caches");
        }
        let mut found = Measured { metrics: Vec::new(), lost: BTreeMap::new() };
        for workload in ["folder-index", "incremental-backup"] {
            let (phases, disk_seconds) = self.next(share, workload);
            let readings = match source {
                NasSource::None => BTreeMap::new(),
                NasSource::Disk => {
                    phases.iter().filter_map(|phase| Some((phase.run, disk_seconds?))).collect()
                }
            };
            let metrics = attribute(&phases, &readings);
            found.lost.extend(metrics.iter().map(|one| (one.metric, lost(&phases, one.metric))));
            found.metrics.extend(metrics);
        }
        found
    }

    /// Returns the phases of the next run, and for how many seconds the disk of the NAS was busy.
    fn next(&mut self, share: Share, workload: &str) -> (Vec<PhaseTimes>, Option<f64>) {
        match self {
            Self::Live { lab, copy } => {
                let before = disk_seconds(lab);
                let phases = run(lab, copy, share, workload);
                let busy = disk_seconds(lab) - before;
                let list = fs::read_to_string(busy_list(copy)).unwrap_or_default();
                fs::write(busy_list(copy), format!("{list}{busy}\n")).expect("the list is written");
                (phases, Some(busy))
            }
            Self::Recorded { phases, disk_seconds } => {
                let phases = phases.pop_front().expect("the recording has as many trials");
                let found = phases.first().map(|phase| (phase.target.as_str(), phase.workload.as_str()));
                assert_eq!(found, Some((share.name, workload)), "the recording has other trials");
                (phases, disk_seconds.pop_front())
            }
        }
    }
}

/// Returns the path of the list of busy times beside the copy of a database.
fn busy_list(copy: &Path) -> PathBuf {
    copy.with_extension("busy")
}

/// Makes a file system on the NAS whose disk can be slowed down, exports it and mounts it three times.
fn prepare(lab: &Lab) {
    lab.ask_nas(
        "modprobe -a loop dm-mod dm-delay && truncate -s 1500M /srv/share/.disk && losetup /dev/loop0 /srv/share/.disk && \
         echo \"0 $(blockdev --getsz /dev/loop0) delay /dev/loop0 0 0\" | dmsetup --noudevsync create slow && \
         dmsetup mknodes && mkfs.ext4 -q /dev/mapper/slow && mkdir -p /srv/share/slow && \
         mount -o noatime /dev/mapper/slow /srv/share/slow && chmod 777 /srv/share/slow && \
         exportfs -o rw,sync,no_subtree_check,all_squash,anonuid=1000,anongid=1000,fsid=7,insecure '*:/srv/share/slow'",
    );
    lab.ask(&format!(
        "sysctl -q net.ipv4.tcp_min_rtt_wlen=2; mkdir -p /m/slow3 /m/slow4 /m/local/why && \
         mount -t nfs 10.77.0.2:/srv/share/slow /m/slow3 -o vers=3,nolock,tcp && \
         mount -t nfs 10.77.0.2:/slow /m/slow4 -o vers=4.2 && \
         for s in {}; do mkdir -p $s/t; done",
        SHARES.map(|share| share.path).join(" ")
    ));
}

/// Runs a task once on a share. Returns its phases.
fn run(lab: &Lab, copy: &Path, share: Share, workload: &str) -> Vec<PhaseTimes> {
    let program = env!("CARGO_BIN_EXE_longhaul");
    let Share { name, path, files } = share;
    // The last program that closes the database moves its log into it. The host sees the copy only after a sync.
    lab.ask(&format!(
        "printf '[folder-index]\nfiles = {files}\n' >{CONFIG} && \
         {program} --database {DATABASE} --config {CONFIG} run --scale quick --workload {workload} --target {name}={path}/t \
         >{OUTPUT} 2>&1 || {{ cat {OUTPUT}; exit 1; }}; cp {DATABASE} {} && sync",
        copy.display()
    ));
    let phases =
        Reader::open(copy).and_then(|reader| reader.phase_times(1, None)).expect("the database is complete");
    phases.into_iter().filter(|phase| phase.target.as_str() == name).collect()
}

/// Returns the number of retransmitted segments in the phases of a metric.
fn lost(phases: &[PhaseTimes], name: &str) -> u64 {
    let metric =
        TASKS.iter().flat_map(|task| task.metrics()).find(|known| known.name == name).expect("it is known");
    let belongs = |phase: &&PhaseTimes| {
        (metric.cache == CacheState::None || metric.cache == phase.cache)
            && metric.figures.iter().any(|(known, _)| *known == phase.phase)
    };
    phases.iter().filter(belongs).filter_map(|phase| phase.times.as_ref()?.retransmits).sum()
}

/// Returns the time in which the disk with a delay was busy: the tenth number after its name
/// (Documentation/admin-guide/iostats.rst).
fn disk_seconds(lab: &Lab) -> f64 {
    let stats = text(&lab.nas("cat /proc/diskstats"));
    let line =
        stats.lines().find(|line| line.split_whitespace().nth(2).is_some_and(|name| name.starts_with("dm-")));
    let busy = line.and_then(|line| line.split_whitespace().nth(12)?.parse::<f64>().ok());
    busy.unwrap_or_else(|| panic!("{stats}")) / 1000.0
}
