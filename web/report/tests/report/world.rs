//! Made-up weeks: what some shares were like, told round by round, and the summary of it.

use std::sync::LazyLock;

use jiff::tz::TimeZone;
use longhaul_measure::model::{Event, Outcome, Role, RoundStatus, Scale, Times};
use longhaul_measure::summary::{
    History, KeptEpoch, KeptRound, KeptRun, KeptTarget, Premises, Question, Week, Weekly, weekly,
};
use longhaul_measure::workloads::WORKLOADS;
use longhaul_report::Environment;

/// Monday of 2026-W39.
pub const MONDAY: i64 = 20_717;
pub const DAY_US: i64 = 86_400_000_000;

/// What is asked of a story: which target, which task of which workload, on which day, in which round of it.
#[derive(Clone, Copy)]
pub struct Moment {
    pub target: usize,
    pub workload: usize,
    pub place: usize,
    pub day: i64,
    pub turn: i64,
}

impl Moment {
    /// A number between -1 and 1 that looks drawn and is always the same.
    pub fn noise(self, salt: u64) -> f64 {
        let parts = [self.target as i64, self.workload as i64, self.place as i64, self.day, self.turn];
        let mut x =
            parts.iter().fold(salt, |x, part| (x ^ part.cast_unsigned()).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        x ^= x >> 29;
        x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x ^= x >> 32;
        (x >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

pub type Story<'s> = &'s dyn Fn(Moment) -> (Outcome, f64);

pub struct World {
    pub history: History,
    pub rounds_a_day: i64,
}

impl World {
    pub fn new(targets: &[(&str, Role, &str)]) -> Self {
        let epoch = |(place, (name, _, protocol)): (usize, &(&str, Role, &str))| KeptEpoch {
            number: place as i64 + 1,
            target: name.parse().unwrap(),
            opened_us: MONDAY * DAY_US,
            protocol: Some((*protocol).to_owned()),
        };
        let history = History {
            premises: Premises { machine: Some("f00dfeed".to_owned()), ..Premises::default() },
            targets: targets
                .iter()
                .map(|(name, role, _)| KeptTarget { name: name.parse().unwrap(), role: *role })
                .collect(),
            epochs: targets.iter().enumerate().map(epoch).collect(),
            ..History::default()
        };
        Self { history, rounds_a_day: 6 }
    }

    pub fn pair() -> Self {
        Self::new(&[("smb", Role::Share, "SMB 3.1.1"), ("nfs", Role::Share, "NFS 4.2")])
    }

    pub fn live(mut self, days: impl IntoIterator<Item = i64>, story: Story<'_>) -> Self {
        for day in days {
            for turn in 0..self.rounds_a_day {
                self.round((day, turn), (RoundStatus::Ok, None), story);
            }
        }
        self
    }

    pub fn round(&mut self, (day, turn): (i64, i64), end: (RoundStatus, Option<&str>), story: Story<'_>) {
        let number = self.history.rounds.len() as i64 + 1;
        let started_us = (MONDAY + day) * DAY_US + turn * 3_600_000_000;
        self.history.rounds.push(KeptRound {
            number,
            started_us,
            utc_offset_seconds: 0,
            scale: Scale::Standard,
            status: Some(end.0),
            reason: end.1.map(str::to_owned),
        });
        if end.0 == RoundStatus::Skipped {
            return;
        }
        for workload in 0..WORKLOADS.len() {
            for target in 0..self.history.targets.len() {
                let run =
                    self.run(Moment { target, workload, place: 0, day, turn }, (number, started_us), story);
                self.history.runs.push(run);
            }
        }
    }

    fn run(&self, moment: Moment, (round, started_us): (i64, i64), story: Story<'_>) -> KeptRun {
        let (outcome, seconds) = story(moment);
        let places = 0..WORKLOADS[moment.workload].endpoints().len();
        KeptRun {
            number: self.history.runs.len() as i64 + 1,
            round,
            epoch: moment.target as i64 + 1,
            target: moment.target,
            workload: moment.workload,
            scale: Scale::Standard,
            outcome,
            started_us,
            seconds,
            times: places
                .filter(|_| outcome == Outcome::Ok)
                .fold(Times::NONE, |times, place| times.with(place, story(Moment { place, ..moment }).1)),
        }
    }

    pub fn event(
        mut self,
        day: i64,
        (target, kind): (Option<&str>, &str),
        detail: serde_json::Value,
    ) -> Self {
        self.history.events.push(Event {
            target: target.map(|name| name.parse().unwrap()),
            kind: kind.to_owned(),
            detail,
            at_us: (MONDAY + day) * DAY_US + 34_200_000_000,
        });
        self
    }

    pub fn after_days(&self, days: i64) -> Weekly {
        let week = Week::of_day(MONDAY + days - 1);
        weekly(&self.history, &Question { week, scale: None, zone: TimeZone::UTC })
    }
}

/// A steady share that takes so many seconds.
pub fn steady(seconds: f64, moment: Moment) -> (Outcome, f64) {
    (Outcome::Ok, seconds * (0.08 * moment.noise(7) + 0.04 * Moment { turn: 0, ..moment }.noise(3)).exp())
}

/// Two shares of which the first takes a fifth less, for four weeks.
pub fn a_fifth() -> Weekly {
    static KNOWN: LazyLock<Weekly> = LazyLock::new(tell_of_a_fifth);
    KNOWN.clone()
}

fn tell_of_a_fifth() -> Weekly {
    let story = |moment: Moment| steady(if moment.target == 0 { 8.0 } else { 10.0 }, moment);
    World::pair().live(0..28, &story).after_days(28)
}

/// What each endpoint usually takes, in seconds, by workload and place.
fn usual(workload: usize, place: usize) -> f64 {
    let table: [&[f64]; 5] =
        [&[3.2, 0.7, 11.0, 2.4], &[14.0, 2.1, 0.38, 0.09], &[41.0], &[65.0, 18.0], &[190.0, 19.0]];
    table.get(workload).and_then(|places| places.get(place)).copied().unwrap_or(5.0)
}

/// Eight weeks of three shares and the local disk: NFS hangs now and then, AFP changes with a system update, four days of
/// holidays are missing, some rounds were skipped.
pub fn eight_weeks() -> World {
    static KNOWN: LazyLock<History> = LazyLock::new(|| tell_of_eight_weeks().history);
    World { history: KNOWN.clone(), rounds_a_day: 6 }
}

/// The last of the eight.
pub fn last_week() -> Weekly {
    static KNOWN: LazyLock<Weekly> = LazyLock::new(|| eight_weeks().after_days(56));
    KNOWN.clone()
}

fn tell_of_eight_weeks() -> World {
    let mut world = World::new(&[
        ("smb", Role::Share, "SMB 3.1.1"),
        ("nfs", Role::Share, "NFS 4.2"),
        ("afp", Role::Share, "AFP"),
        ("local", Role::Baseline, "ext4"),
    ]);
    let story = |moment: Moment| {
        let Moment { target, workload, place, day, turn } = moment;
        if target == 1 && workload == 3 && (day * 7 + turn) % 41 == 5 {
            return (Outcome::Hung, 900.0);
        }
        if target == 1 && (day, turn) == (51, 2) {
            return (Outcome::Error, 4.0);
        }
        let cold = if place % 2 == 0 { 1.0 } else { 0.9 };
        let factor = match target {
            0 => 1.0,
            1 => 1.22 * [0.8, 1.05, 1.1, 1.0, 1.0][workload] * cold,
            2 => {
                if day < 30 {
                    1.55
                } else {
                    1.06
                }
            }
            _ => 0.06,
        };
        let weather = Moment { target: 0, workload: 0, place: 0, turn: 0, ..moment }.noise(11);
        let own = Moment { workload: 0, place: 0, turn: 0, ..moment }.noise(13);
        let spread = 0.16 * moment.noise(1) + 0.1 * moment.noise(2) + 0.2 * weather + 0.07 * own;
        (Outcome::Ok, usual(workload, place) * factor * spread.exp())
    };
    let holidays = 17..21;
    world = world.live((0..56).filter(|day| !holidays.contains(day)), &story);
    world.round((54, 7), (RoundStatus::Skipped, Some("on battery")), &story);
    world.round((54, 8), (RoundStatus::Skipped, Some("on battery")), &story);
    world.round((55, 9), (RoundStatus::Void, Some("the machine slept during it")), &story);
    world.history.premises.mix = [
        ("photo-batch/open-cold", 10.0),
        ("folder-index/open-folder-cold", 60.0),
        ("incremental-backup/backup", 7.0),
    ]
    .into_iter()
    .map(|(key, count)| (key.to_owned(), count))
    .collect();
    let update = serde_json::json!({"before": "26.0", "after": "26.1"});
    let negotiated = serde_json::json!({"before": {"path": "/Volumes/annas media", "addr": "10.0.0.2", "vers": "4.1"}, "after": {"vers": "4.2"}});
    world
        .event(30, (None, "os-update"), update)
        .event(50, (None, "mtu"), serde_json::json!({"before": 1500, "after": 9000}))
        .event(
            51,
            (Some("nfs"), "hang"),
            serde_json::json!({"seconds": 900, "operation": "getattr", "path": "/Volumes/annas media/x"}),
        )
        .event(52, (Some("nfs"), "options"), negotiated)
}

/// A machine whose every part that could name somebody does.
pub fn environment() -> Environment {
    let negotiated = [
        ("signing", "on"),
        ("vers", "3.1.1"),
        ("addr", "10.0.0.2"),
        ("username", "anna"),
        ("rsize", "1048576"),
    ];
    let negotiated = negotiated.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Environment {
        longhaul: "0.1.0".to_owned(),
        system: Some("Linux 6.1.0-annas-build".to_owned()),
        processors: Some(8),
        memory_bytes: Some(17_179_869_184),
        negotiated: [("smb".parse().unwrap(), negotiated)].into_iter().collect(),
    }
}
