//! A file system in memory that makes the steps of a plan, in any order that the waits allow.

use std::collections::HashMap;

use longhaul_model::draw::draw_below;

use super::super::*;
use crate::{ActionResult, InitialState, NodeNumber};

/// A folder: the name under which it was made, and the number of folders that were made under it before. A renamed folder keeps it.
type FolderId = (NodeNumber, u32);

/// The recorded folder.
const ROOT: FolderId = (NodeNumber(0), 0);

/// A file system in memory that makes the steps of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Simulated {
    /// Things in each folder, by their names.
    pub(super) names: HashMap<(FolderId, NodeNumber), Thing>,
    /// Number of folders that were made under each name.
    made: HashMap<NodeNumber, u32>,
    /// Writes of each file, in their order.
    pub(super) writes: HashMap<FileNumber, Vec<u64>>,
    pub(super) open: HashMap<Slot, Thing>,
    /// Folders that are open and have not been renamed or removed since.
    folders: HashMap<Slot, NodeNumber>,
    /// Number of writes that each read saw, by its place in the plan.
    pub(super) seen: HashMap<(usize, u32), usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thing {
    Folder(FolderId),
    File(FileNumber),
    Link,
}

impl Simulated {
    fn new(plan: &ReplayPlan) -> Self {
        let thing = |(number, node): (u32, &PlannedNode)| {
            let thing = match node.initial {
                InitialState::Absent => return None,
                InitialState::Folder => Thing::Folder((NodeNumber(number), 0)),
                InitialState::File(_) => Thing::File(FileNumber(number)),
                InitialState::Link => Thing::Link,
            };
            Some((((node.parent, 0), NodeNumber(number)), thing))
        };
        let names = (0..).zip(&plan.nodes).skip(1).filter_map(thing).collect();
        Self { names, ..Self::default() }
    }

    /// Returns the folder that contains a name, if it exists.
    fn parent(&self, plan: &ReplayPlan, node: NodeNumber) -> Option<FolderId> {
        match self.find(plan, plan.nodes[node.0 as usize].parent)? {
            Thing::Folder(folder) => Some(folder),
            Thing::File(_) | Thing::Link => None,
        }
    }

    fn find(&self, plan: &ReplayPlan, node: NodeNumber) -> Option<Thing> {
        if node.0 == 0 {
            return Some(Thing::Folder(ROOT));
        }
        self.names.get(&(self.parent(plan, node)?, node)).copied()
    }

    fn add(&mut self, plan: &ReplayPlan, node: NodeNumber, thing: Thing) {
        let parent = self.parent(plan, node).expect("its folder exists");
        self.names.insert((parent, node), thing);
    }

    fn remove(&mut self, plan: &ReplayPlan, node: NodeNumber) -> Option<Thing> {
        let parent = self.parent(plan, node)?;
        self.names.remove(&(parent, node))
    }

    /// Makes a step and returns its answer.
    fn make(
        &mut self,
        plan: &ReplayPlan,
        (lane, number): (usize, u32),
        action: PlannedAction,
    ) -> ActionResult {
        use PlannedAction as P;
        let found = |world: &Self, node| world.find(plan, node);
        let answer = |thing: Option<Thing>| thing.map_or(ActionResult::NotFound, |_| ActionResult::Done);
        match action {
            P::OpenFile(open) => match (found(self, open.node), open.creates) {
                (Some(_), true) => return ActionResult::Exists,
                (None, false) => return ActionResult::NotFound,
                (None, true) => {
                    self.add(plan, open.node, Thing::File(open.file));
                    assert!(self.open.insert(open.slot, Thing::File(open.file)).is_none(), "slot in use");
                }
                (Some(thing), false) => {
                    assert_eq!(thing, Thing::File(open.file));
                    assert!(self.open.insert(open.slot, thing).is_none(), "slot in use");
                }
            },
            P::OpenFolder { node, slot } | P::OpenPathOnly { node, slot } => {
                let thing = found(self, node).expect("it is there");
                let is_folder = matches!(thing, Thing::Folder(_));
                assert!(is_folder || matches!(action, P::OpenPathOnly { .. }));
                assert!(self.open.insert(slot, thing).is_none(), "slot in use");
                self.folders.extend(is_folder.then_some((slot, node)));
            }
            P::Close { slot } => {
                assert!(self.open.remove(&slot).is_some());
                self.folders.remove(&slot);
            }
            P::Read { slot, .. } => {
                let Some(Thing::File(file)) = self.open.get(&slot) else { panic!("not open") };
                self.seen.insert((lane, number), self.writes.get(file).map_or(0, Vec::len));
            }
            P::Write { slot, offset, .. } => {
                let Some(Thing::File(file)) = self.open.get(&slot) else { panic!("not open") };
                self.writes.entry(*file).or_default().push(offset);
            }
            P::Copy(copy) => {
                let [Some(Thing::File(from)), Some(Thing::File(to))] =
                    [copy.from, copy.to].map(|slot| self.open.get(&slot).copied())
                else {
                    panic!("not open")
                };
                self.seen.insert((lane, number), self.writes.get(&from).map_or(0, Vec::len));
                self.writes.entry(to).or_default().push(copy.write_at);
            }
            P::Clone { from, to } => {
                assert!([from, to].iter().all(|slot| self.open.contains_key(slot)) && from != to);
            }
            P::Attributes { node } | P::AttributesButAccessTime { node } => return answer(found(self, node)),
            P::SlotAttributes { slot } | P::List { slot } => assert!(self.open.contains_key(&slot)),
            other => return self.change_name(plan, other),
        }
        ActionResult::Done
    }

    /// Makes a step that changes a name, and returns its answer.
    fn change_name(&mut self, plan: &ReplayPlan, action: PlannedAction) -> ActionResult {
        use PlannedAction as P;
        let found = |world: &Self, node| world.find(plan, node);
        match action {
            P::CreateFolder { node } => {
                if found(self, node).is_some() {
                    return ActionResult::Exists;
                }
                let made = self.made.entry(node).or_default();
                *made += 1;
                let folder = (node, *made);
                self.add(plan, node, Thing::Folder(folder));
            }
            P::Remove { node } => {
                let was = self.remove(plan, node);
                return was.map_or(ActionResult::NotFound, |_| ActionResult::Done);
            }
            P::RemoveFolder { node } => {
                let Some(Thing::Folder(removed)) = self.remove(plan, node) else { panic!("no folder") };
                assert!(self.names.keys().all(|(folder, _)| *folder != removed), "not empty");
                self.folders.retain(|_, folder| *folder != node);
            }
            P::RenameToNew { from, to } => {
                let both = [from, to].map(|node| found(self, node).is_some());
                assert_eq!(both, [true, true], "it would be done");
                return ActionResult::Exists;
            }
            P::Rename { from, to } => {
                let Some(thing) = self.remove(plan, from) else { return ActionResult::NotFound };
                self.folders.retain(|_, folder| *folder != from && !is_below(plan, *folder, from));
                self.add(plan, to, thing);
            }
            other => panic!("{other:?} is not simulated"),
        }
        ActionResult::Done
    }
}

fn is_below(plan: &ReplayPlan, name: NodeNumber, folder: NodeNumber) -> bool {
    let parent = plan.nodes[name.0 as usize].parent;
    name.0 > 0 && (parent == folder || is_below(plan, parent, folder))
}

/// Makes all steps, in an order that a seed draws among those that the waits allow.
pub(super) fn replay(plan: &ReplayPlan, seed: u64) -> Simulated {
    let mut world = Simulated::new(plan);
    let mut steps: Vec<_> = plan.lanes.iter().map(|lane| lane.steps().peekable()).collect();
    let mut done = vec![0u32; plan.lanes.len()];
    for turn in 0..plan.step_count() {
        let is_ready = |lane: &usize, steps: &mut Vec<std::iter::Peekable<Steps<'_>>>| {
            let next = steps[*lane].peek();
            next.is_some_and(|step| step.waits.iter().all(|wait| done[wait.lane as usize] >= wait.steps))
        };
        let ready: Vec<usize> = (0..done.len()).filter(|lane| is_ready(lane, &mut steps)).collect();
        assert!(!ready.is_empty(), "all threads wait for each other");
        let lane = ready[draw_below(seed, 1, turn, ready.len() as u64) as usize];
        let step = steps[lane].next().unwrap();
        if let Some(slot) = step.folder {
            let folder = *world.folders.get(&slot).expect("open and neither renamed nor removed");
            let names: Vec<_> = step.action.names().collect();
            assert!(!names.is_empty() && names.iter().all(|name| is_below(plan, *name, folder)), "{step:?}");
        }
        assert_eq!(world.make(plan, (lane, done[lane]), step.action), step.expected, "{:?}", step.action);
        done[lane] += 1;
    }
    world
}
