//! POSIX byte-range locks.

/// Lock on a range of bytes; `first` and `last` are inclusive.
#[derive(Clone, Copy)]
pub struct Lock {
    pub node: u64,
    pub owner: u64,
    pub first: u64,
    pub last: u64,
    pub exclusive: bool,
}

impl Lock {
    fn meets(&self, other: &Self) -> bool {
        self.node == other.node && self.first <= other.last && other.first <= self.last
    }
}

/// All locks of a file system.
#[derive(Default)]
pub struct Locks(Vec<Lock>);

impl Locks {
    /// Returns a lock of another owner that conflicts with the wanted one.
    pub fn conflict(&self, wanted: &Lock) -> Option<Lock> {
        let stands = |lock: &&Lock| {
            lock.meets(wanted) && lock.owner != wanted.owner && (lock.exclusive || wanted.exclusive)
        };
        self.0.iter().find(stands).copied()
    }

    /// Takes a lock and replaces the owner's locks in its range. Returns false if another owner's lock conflicts.
    pub fn take(&mut self, wanted: Lock) -> bool {
        let is_free = self.conflict(&wanted).is_none();
        if is_free {
            self.release(wanted);
            self.0.push(wanted);
        }
        is_free
    }

    /// Releases a range. The parts of a lock before and after the range stay locked.
    pub fn release(&mut self, range: Lock) {
        let mut remaining = vec![];
        for lock in std::mem::take(&mut self.0) {
            if !lock.meets(&range) || lock.owner != range.owner {
                remaining.push(lock);
                continue;
            }
            if lock.first < range.first {
                remaining.push(Lock { last: range.first - 1, ..lock });
            }
            if lock.last > range.last {
                remaining.push(Lock { first: range.last + 1, ..lock });
            }
        }
        self.0 = remaining;
    }
}
