//! One thread at work: its files, its open handles, its steps.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::files::Files;
use super::log::Log;
use super::names::{digits, text};
use super::sets::Set;
use crate::context::{Buffer, Context, OpenFile};
use crate::corpus::draw::draw;
use crate::error::RunError;
use crate::platform::{Access, RangeLock, Wanted};
use crate::profile::{Action, Amount, At, Choose, Pick, Share, Step, Work};

/// Bytes that a lock covers, and how many places it is taken at: Netatalk's afp_lantest locks 10 bytes at 0, 10, ... 390.
const LOCK_BYTES: u64 = 10;
const LOCK_PLACES: u64 = 40;

/// What all threads of a phase share.
pub struct Crew<'a> {
    /// The turn that their writes are of.
    pub turn: u64,
    /// The seed of what is drawn.
    pub seed: u64,
    /// Whether a thread failed, so that the others end.
    pub failed: &'a AtomicBool,
    /// Whether each repetition is written down.
    pub keeps_each: bool,
}

/// An open file, and where in it the thread is.
struct Open {
    file: OpenFile,
    bytes: u64,
    next: u64,
    last: u64,
}

/// One thread.
pub struct Thread<'a> {
    crew: &'a Crew<'a>,
    context: &'a Context<'a>,
    work: &'a Work,
    set: &'a Set,
    files: Files,
    open: BTreeMap<u64, Open>,
    /// What was added to files, by number.
    added: BTreeMap<u64, u64>,
    turn: u64,
    written: Buffer,
    read: Buffer,
    log: Log,
    began: Moment,
}

/// Seconds of the phase, and how many of them were spent in calls by this thread's door.
#[derive(Clone, Copy)]
struct Moment {
    at: f64,
    in_calls: f64,
}

impl Moment {
    fn now(context: &Context<'_>) -> Self {
        Self { at: context.elapsed(), in_calls: context.in_calls() }
    }

    /// Seconds since then in which no call was made.
    fn outside_calls(self, context: &Context<'_>) -> f64 {
        let now = Self::now(context);
        (now.at - self.at) - (now.in_calls - self.in_calls)
    }
}

/// Moves bytes of a file: its number, where they are and how many.
type Transfer<'a> = fn(&mut Thread<'a>, u64, (u64, usize)) -> Result<(), RunError>;

/// Whether a repetition may be followed by another.
enum Went {
    On,
    OutOfFiles,
}

impl<'a> Thread<'a> {
    /// A thread that has its part of the set: the `place`th of those that do this work.
    pub fn new(
        crew: &'a Crew<'a>,
        context: &'a Context<'a>,
        (work, set): (&'a Work, &'a Set),
        place: u64,
    ) -> Self {
        let began = Moment::now(context);
        let seed = draw(crew.seed, 0x7468_7265, place);
        let is_mine = |number: &u64| work.share == Share::All || number % work.threads == place;
        let there = set.present.lock().expect("nobody panicked with it").clone();
        let (present, absent) =
            (0..set.spec.count).filter(is_mine).partition(|number| there.contains(number));
        let mut files = Files::new(present, absent, seed);
        if work.pick == Pick::Shuffled {
            files.shuffle(seed);
        }
        let longest = work.all_steps().map(|step| step.block.0 as usize).max().unwrap_or_default();
        Self {
            crew,
            context,
            work,
            set,
            files,
            open: BTreeMap::new(),
            added: BTreeMap::new(),
            turn: set.only_turn.unwrap_or(crew.turn),
            written: Buffer::new(longest),
            read: Buffer::new(longest),
            log: if crew.keeps_each { Log::with_each() } else { Log::default() },
            began,
        }
    }

    /// Does its work to the end, and says what came of it.
    pub fn work(mut self) -> Result<Log, RunError> {
        let result = self.all();
        if result.is_err() {
            self.crew.failed.store(true, Relaxed);
        }
        result?;
        if self.work.share == Share::Own {
            let mut there = self.set.present.lock().expect("nobody panicked with it");
            there.extend(self.files.present());
            self.files.absent().for_each(|number| {
                there.remove(&number);
            });
        }
        Ok(self.log)
    }

    /// What is done before, what is timed, and what is still open afterwards.
    fn all(&mut self) -> Result<(), RunError> {
        self.work.before.iter().try_for_each(|step| self.step(step, 0).map(drop))?;
        let ready = Moment::now(self.context);
        self.log.aside = ready.at - self.began.at;
        self.began = ready;
        self.timed()?;
        self.log.own = (self.began.outside_calls(self.context) - self.log.waited).max(0.0);
        let done = self.context.elapsed();
        std::mem::take(&mut self.open).into_values().try_for_each(|open| self.context.close(open.file))?;
        self.log.aside += self.context.elapsed() - done;
        Ok(())
    }

    /// The repetitions, and what is done after them.
    fn timed(&mut self) -> Result<(), RunError> {
        if self.work.pick == Pick::Listed {
            self.files.arrange(self.set.listed(self.context)?.into_iter());
        }
        let count = self.work.times.unwrap_or_else(|| match self.work.seconds {
            Some(_) => u64::MAX,
            None => self.files.in_all(),
        });
        let begin = self.context.elapsed();
        let mut now = begin;
        self.log.begin(self.context.in_calls());
        for turn in 0..count {
            let due = self.work.per_second.map_or(now, |rate| begin + turn as f64 / rate);
            let is_over = |seconds| due.max(now) - begin >= seconds;
            if self.work.seconds.is_some_and(is_over) || self.crew.failed.load(Relaxed) {
                break;
            }
            if due > now {
                self.wait_until(due)?;
            }
            if let Went::OutOfFiles = self.once(turn)? {
                break;
            }
            now = self.context.elapsed();
            self.log.note(now, || self.context.in_calls());
        }
        self.work.after.iter().try_for_each(|step| self.step(step, 0).map(drop))
    }

    /// Waits until a second of the phase; this is neither the target's time nor the thread's own.
    fn wait_until(&mut self, second: f64) -> Result<(), RunError> {
        let began = self.context.elapsed();
        self.context.wait_until(second)?;
        self.log.waited += self.context.elapsed() - began;
        Ok(())
    }

    /// One repetition.
    fn once(&mut self, turn: u64) -> Result<Went, RunError> {
        let creates_first = self.work.steps[0].action == Action::Create;
        if !creates_first && self.choose(self.work.pick).is_none() {
            return Ok(Went::OutOfFiles);
        }
        let work = self.work;
        match work.choose {
            Choose::All => {
                for step in &work.steps {
                    if let Went::OutOfFiles = self.step(step, turn)? {
                        return Ok(Went::OutOfFiles);
                    }
                }
                Ok(Went::On)
            }
            // That no file is there, or that all are, passes.
            Choose::One => {
                let step = self.drawn();
                self.step(step, turn).map(|_| Went::On)
            }
        }
    }

    fn drawn(&mut self) -> &'a Step {
        let sum: f64 = self.work.steps.iter().map(|step| step.weight).sum();
        let mut at = self.files.below(1 << 53) as f64 / (1u64 << 53) as f64 * sum;
        let last = &self.work.steps[self.work.steps.len() - 1];
        self.work
            .steps
            .iter()
            .find(|step| {
                at -= step.weight;
                at < 0.0
            })
            .unwrap_or(last)
    }

    fn step(&mut self, step: &Step, turn: u64) -> Result<Went, RunError> {
        if !(turn + 1).is_multiple_of(step.every) {
            return Ok(Went::On);
        }
        if step.pick == Some(Pick::All) {
            return self.step_for_all(step);
        }
        if step.action == Action::SyncFolders {
            return self.set.sync_folders(self.context).map(|()| Went::On);
        }
        if step.action == Action::Create {
            let Some(number) = self.files.create(step.pick.unwrap_or(self.work.pick)) else {
                return Ok(Went::OutOfFiles);
            };
            return self.create(number);
        }
        if let Some(pick) = step.pick {
            self.choose(pick);
        }
        match self.files.current() {
            Some(number) => self.act(step, number, turn).map(|()| Went::On),
            None => Ok(Went::OutOfFiles),
        }
    }

    fn step_for_all(&mut self, step: &Step) -> Result<Went, RunError> {
        if step.action == Action::Create {
            while let Some(number) = self.files.create(Pick::Next) {
                self.create(number)?;
            }
            return Ok(Went::On);
        }
        // What is synced or closed for all is what is open.
        let numbers: Vec<u64> = match step.action {
            Action::Sync | Action::Close => self.open.keys().copied().collect(),
            _ => self.files.present().collect(),
        };
        numbers.into_iter().try_for_each(|number| self.act(step, number, 0)).map(|()| Went::On)
    }

    fn choose(&mut self, pick: Pick) -> Option<u64> {
        let at_end = |open: &Open| open.next >= open.bytes;
        let is_done = || self.files.chosen().and_then(|number| self.open.get(&number)).is_some_and(at_end);
        if pick == Pick::AtEnd && is_done() {
            let chosen = self.files.choose(Pick::Next);
            if let Some(open) = chosen.and_then(|number| self.open.get_mut(&number)) {
                open.next = 0;
            }
            return chosen;
        }
        self.files.choose(pick)
    }

    fn act(&mut self, step: &Step, number: u64, turn: u64) -> Result<(), RunError> {
        let (context, folder) = (self.context, self.set.folder_of(number));
        let name = self.set.name_of(number);
        let beside = |begin: &str, end: &str| text(format!("{begin}{}{end}", digits(number)));
        match step.action {
            Action::Create => self.create(number).map(drop),
            Action::Open => {
                self.open.remove(&number).map_or(Ok(()), |open| context.close(open.file))?;
                self.opened(number).map(drop)
            }
            Action::Read => self.transfer(step, number, Self::read),
            Action::Write => self.transfer(step, number, Self::write),
            Action::Append => self.append(step, number),
            Action::Sync => context.sync(&self.opened(number)?.file).map(drop),
            Action::SyncFolders => self.set.sync_folders(context),
            Action::Close => self.open.remove(&number).map_or(Ok(()), |open| context.close(open.file)),
            Action::Stat => context.getattr(folder, name).map(drop),
            Action::Lookup => context.lookup(folder, &beside("._", "")).map(drop),
            Action::Xattr => context.getxattr_at(folder, name, c"user.longhaul", &mut [0; 64]).map(drop),
            Action::List => self.list(number),
            Action::Rename => {
                let moved = beside("", "-moved");
                context.rename((folder, name), (folder, &moved))?;
                context.rename((folder, &moved), (folder, name))
            }
            Action::Lock | Action::Unlock => {
                let what = if step.action == Action::Lock { RangeLock::Take } else { RangeLock::Release };
                let begin = turn % LOCK_PLACES * LOCK_BYTES;
                context.lock(&self.opened(number)?.file, what, (begin, LOCK_BYTES))
            }
            Action::WithoutReadAhead => {
                context.without_read_ahead(&self.opened(number)?.file);
                Ok(())
            }
            Action::Evict => self.evict(step, number),
            Action::Delete => {
                self.open.remove(&number).map_or(Ok(()), |open| context.close(open.file))?;
                self.added.remove(&number);
                self.files.delete();
                context.unlink(folder, name)
            }
            Action::MakeFolder => context.add_folder(folder, &beside("f", "")),
            Action::RemoveFolder => context.remove_folder(folder, &beside("f", "")),
        }
    }

    fn create(&mut self, number: u64) -> Result<Went, RunError> {
        let reads = self.work.all_steps().any(|step| step.action == Action::Read);
        let access = if reads { Access::Both } else { Access::Write };
        let file = self.context.create_for(self.set.folder_of(number), self.set.name_of(number), access)?;
        let bytes = self.set.bytes_of(number);
        self.open.insert(number, Open { file, bytes, next: 0, last: 0 });
        Ok(Went::On)
    }

    /// The handle of a file, which is opened if it is not open.
    fn opened(&mut self, number: u64) -> Result<&mut Open, RunError> {
        if !self.open.contains_key(&number) {
            let (folder, name) = (self.set.folder_of(number), self.set.name_of(number));
            // No size is asked for: other threads may be adding to the file.
            let file = match self.work.writes() {
                true => self.context.open_in_place(folder, name, None)?,
                false => self.context.open(folder, name, Access::Read)?,
            };
            let bytes = self.set.bytes_of(number) + self.added.get(&number).copied().unwrap_or_default();
            self.open.insert(number, Open { file, bytes, next: 0, last: 0 });
        }
        Ok(self.open.get_mut(&number).expect("it was just put there"))
    }

    /// Moves one block, or all blocks of a file in their order.
    fn transfer(&mut self, step: &Step, number: u64, one: Transfer<'a>) -> Result<(), RunError> {
        let bytes = self.opened(number)?.bytes;
        match step.amount {
            Amount::Block => {
                let place = self.place(step, number, bytes);
                let length = step.block.0.min(bytes.saturating_sub(place).max(1)) as usize;
                one(self, number, (place, length))
            }
            Amount::File => (0..bytes.div_ceil(step.block.0)).try_for_each(|block| {
                let place = block * step.block.0;
                one(self, number, (place, step.block.0.min(bytes - place) as usize))
            }),
        }
    }

    /// Where the next block is.
    fn place(&mut self, step: &Step, number: u64, bytes: u64) -> u64 {
        let blocks = (bytes / step.block.0).max(1);
        let drawn = if step.at == At::Random { self.files.below(blocks) * step.block.0 } else { 0 };
        let open = self.open.get_mut(&number).expect("it was opened for this");
        open.last = match step.at {
            At::Random => drawn,
            At::Same => open.last,
            At::Next if open.next >= bytes => 0,
            At::Next => open.next,
        };
        open.next = open.last + step.block.0;
        open.last
    }

    fn read(&mut self, number: u64, (place, length): (u64, usize)) -> Result<(), RunError> {
        let open = &self.open[&number];
        let settled = self.set.writes.settled(number);
        let found = self.context.read_full(&open.file, &mut self.read[..length], place)?;
        self.log.add_read(found as u64);
        if found < length && self.set.is_whole && place < open.bytes {
            return Err(RunError::damaged(
                open.file.path(),
                format!("it ends at byte {}", place + found as u64),
            ));
        }
        if !settled.is_some_and(|then| self.set.writes.is_settled_since(number, then)) {
            return Ok(());
        }
        self.set.verify(number, (self.turn, place), &self.read[..found])
    }

    fn write(&mut self, number: u64, (place, length): (u64, usize)) -> Result<(), RunError> {
        self.set.fill(number, (self.turn, place), &mut self.written[..length]);
        let _writing = self.set.writes.begin(number);
        self.context.write_all(&self.open[&number].file, &self.written[..length], place)?;
        self.log.add_written(length as u64);
        Ok(())
    }

    fn append(&mut self, step: &Step, number: u64) -> Result<(), RunError> {
        let end = self.opened(number)?.bytes;
        self.write(number, (end, step.block.0 as usize))?;
        *self.added.entry(number).or_default() += step.block.0;
        self.opened(number)?.bytes += step.block.0;
        Ok(())
    }

    /// Drops one block, or all of the file, from this machine's cache.
    fn evict(&mut self, step: &Step, number: u64) -> Result<(), RunError> {
        let bytes = self.opened(number)?.bytes;
        let range = match step.amount {
            Amount::Block => (self.place(step, number, bytes), step.block.0),
            Amount::File => (0, bytes),
        };
        self.context.drop_cached(&self.open[&number].file, range);
        Ok(())
    }

    /// Lists the folder of a file, through a handle of its own.
    fn list(&self, number: u64) -> Result<(), RunError> {
        let folder = self.context.open_folder(self.set.folder_of(number), c".")?;
        self.context.list(&folder, Wanted::Names, &mut Default::default(), |_| Ok::<_, RunError>(()))
    }
}
