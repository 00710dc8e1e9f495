//! The order that a replay keeps: waits between threads, as few as needed.
//!
//! Two operations keep their order if they use one name, one file or one open file, or if one lists the folder in which the
//! other changes a name, and one of the two changes something (the rules of ROOT, Weiss et al., SOSP 2013). Everything
//! else may overlap.

use super::steps::{ReplayThread, Wait};

/// Number of words for what replay threads knew when they waited. Beyond that, older knowledge is forgotten, which adds waits
/// that are not needed and never leaves out one that is.
const MAX_KNOWLEDGE_WORDS: usize = 4 << 20;

/// Position of a step: replay thread, and the number of its steps that are complete after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    pub lane: u32,
    pub steps: u32,
}

/// Use of a thing by an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// It may overlap with other uses of this kind.
    Shared,
    /// It may overlap with other uses of this kind, but not with the shared ones: changes of different names in a folder.
    Apart,
    /// It overlaps with no other use.
    Alone,
}

/// The last steps of each replay thread that used a thing.
#[derive(Debug, Clone, Default)]
#[expect(clippy::box_collection, reason = "one for each name: 16 bytes instead of 24")]
enum Points {
    #[default]
    None,
    One(Point),
    Many(Box<Vec<Point>>),
}

impl Points {
    fn as_slice(&self) -> &[Point] {
        match self {
            Self::None => &[],
            Self::One(point) => std::slice::from_ref(point),
            Self::Many(points) => points,
        }
    }

    fn add(&mut self, point: Point) {
        match self {
            Self::None => *self = Self::One(point),
            Self::One(one) if one.lane == point.lane => *one = point,
            Self::One(one) => *self = Self::Many(Box::new(vec![*one, point])),
            Self::Many(points) => match points.iter_mut().find(|known| known.lane == point.lane) {
                Some(known) => *known = point,
                None => points.push(point),
            },
        }
    }
}

/// A thing whose uses keep an order: a name, the names in a folder, the content of a file, an open file.
#[derive(Debug, Clone)]
pub struct Resource {
    /// Kind of the uses in `current`, which may overlap with each other.
    group: Use,
    current: Points,
    previous: Points,
}

impl Default for Resource {
    fn default() -> Self {
        Self { group: Use::Shared, current: Points::None, previous: Points::None }
    }
}

impl Resource {
    /// Adds a use and returns the steps that must be complete before it.
    pub fn enter(&mut self, kind: Use, point: Point) -> &[Point] {
        if kind == Use::Alone || kind != self.group {
            self.previous = std::mem::take(&mut self.current);
            self.group = kind;
        }
        self.current.add(point);
        self.previous.as_slice()
    }
}

/// Knowledge of the replay threads about each other: which steps are complete for certain.
pub struct Knowledge {
    lanes: usize,
    /// Complete steps of each thread, as each thread knows it.
    known: Vec<u32>,
    /// Knowledge of each thread from some step on: number of that step, and place in `words`, for each thread in order.
    snapshots: Vec<Vec<(u32, u32)>>,
    words: Vec<u32>,
}

impl Knowledge {
    pub fn new(lanes: usize) -> Self {
        Self { lanes, known: vec![0; lanes * lanes], snapshots: vec![vec![]; lanes], words: vec![] }
    }

    /// Adds the waits of the next step of a thread that others do not imply already.
    pub fn add_waits(&mut self, lane: &mut ReplayThread, own: u32, needed: &mut Vec<Point>) {
        let before = lane.wait_count();
        // The latest steps first: they imply the most.
        needed.sort_unstable_by_key(|point| std::cmp::Reverse(point.steps));
        for point in needed.drain(..) {
            let index = own as usize * self.lanes + point.lane as usize;
            if point.lane == own || self.known[index] >= point.steps {
                continue;
            }
            lane.push_wait(Wait { lane: point.lane, steps: point.steps });
            self.known[index] = point.steps;
            self.learn(own, point);
        }
        if lane.wait_count() > before {
            self.keep(own, lane.len());
        }
    }

    /// Adds what the other thread knew when it made the step that is waited for.
    fn learn(&mut self, own: u32, point: Point) {
        let snapshots = &self.snapshots[point.lane as usize];
        let after = snapshots.partition_point(|(step, _)| *step < point.steps);
        let Some((_, begin)) = after.checked_sub(1).and_then(|index| snapshots.get(index)) else { return };
        let theirs = &self.words[*begin as usize..][..self.lanes];
        let ours = &mut self.known[own as usize * self.lanes..][..self.lanes];
        ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours = (*ours).max(*theirs));
    }

    /// Keeps what a thread knows from this step on.
    fn keep(&mut self, own: u32, step: u32) {
        if self.words.len() + self.lanes > MAX_KNOWLEDGE_WORDS {
            self.words.clear();
            self.snapshots.iter_mut().for_each(Vec::clear);
        }
        self.snapshots[own as usize].push((step, self.words.len() as u32));
        let begin = own as usize * self.lanes;
        self.words.extend_from_slice(&self.known[begin..begin + self.lanes]);
    }
}
