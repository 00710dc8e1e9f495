//! POSIX locks on ranges of bytes.

/// One lock. Both ends are part of it.
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
    /// A lock of another owner that stands in the way of this one.
    pub fn conflict(&self, wanted: &Lock) -> Option<Lock> {
        let stands = |lock: &&Lock| {
            lock.meets(wanted) && lock.owner != wanted.owner && (lock.exclusive || wanted.exclusive)
        };
        self.0.iter().find(stands).copied()
    }

    /// Takes a lock, over what its owner has there; `false` if another owner's stands in the way.
    pub fn take(&mut self, wanted: Lock) -> bool {
        let is_free = self.conflict(&wanted).is_none();
        if is_free {
            self.release(wanted);
            self.0.push(wanted);
        }
        is_free
    }

    /// Gives a range back: what was locked around it stays locked.
    pub fn release(&mut self, range: Lock) {
        let mut kept = vec![];
        for lock in std::mem::take(&mut self.0) {
            if !lock.meets(&range) || lock.owner != range.owner {
                kept.push(lock);
                continue;
            }
            if lock.first < range.first {
                kept.push(Lock { last: range.first - 1, ..lock });
            }
            if lock.last > range.last {
                kept.push(Lock { first: range.last + 1, ..lock });
            }
        }
        self.0 = kept;
    }
}
