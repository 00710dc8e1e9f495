//! Processes of a trace: their descriptors and current folders.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use crate::import::whole_files::MAX_OPEN;

/// An open file, shared by all descriptors that were duplicated from one another.
#[derive(Debug)]
pub(super) struct OpenFile {
    /// Number of the opening; `None` for what is no file: sockets, pipes.
    pub(super) handle: Option<u64>,
    pub(super) path: Vec<u8>,
    /// Position of the next transfer; `None` if unknown, or if writes go to the end.
    pub(super) position: Option<u64>,
    pub(super) appends: bool,
    /// True if it is only a path (`O_PATH`).
    pub(super) is_path_only: bool,
}

/// A descriptor.
#[derive(Debug, Clone)]
pub(super) struct Descriptor {
    pub(super) file: Rc<RefCell<OpenFile>>,
    pub(super) closes_on_exec: bool,
}

/// Number of descriptors in all processes of a trace.
#[derive(Debug, Clone, Default)]
pub(super) struct DescriptorCount(Rc<Cell<usize>>);

impl DescriptorCount {
    pub(super) fn get(&self) -> usize {
        self.0.get()
    }

    fn add(&self, number: usize) {
        self.0.set(self.0.get() + number);
    }

    fn subtract(&self, number: usize) {
        self.0.set(self.0.get() - number);
    }
}

/// Descriptors of a process.
pub(super) struct Descriptors {
    by_number: HashMap<u64, Descriptor>,
    count: DescriptorCount,
}

impl Descriptors {
    fn new(count: &DescriptorCount) -> Self {
        Self { by_number: HashMap::new(), count: count.clone() }
    }

    /// Returns the descriptors of a process that this one starts; none if there would be too many.
    fn inherited(&self) -> Self {
        let mut copy = Self::new(&self.count);
        if self.count.get() + self.by_number.len() <= MAX_OPEN {
            copy.by_number.clone_from(&self.by_number);
            self.count.add(copy.by_number.len());
        }
        copy
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Descriptor> {
        self.by_number.get_mut(&number)
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        self.count.subtract(self.by_number.len());
    }
}

/// A thread of a trace. Threads of one process share their tables.
#[derive(Clone)]
pub(super) struct Thread {
    pub(super) descriptors: Rc<RefCell<Descriptors>>,
    pub(super) folder: Rc<RefCell<Option<Rc<[u8]>>>>,
}

/// The tables that a new thread shares with the one that started it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Shared {
    pub(super) descriptors: bool,
    pub(super) folder: bool,
}

impl Shared {
    /// Reads the flags of `clone` and `clone3`; `fork` and `vfork` have none.
    pub(super) fn of_call(text: &[u8]) -> Self {
        let has = |flag: &[u8]| text.windows(flag.len()).any(|part| part == flag);
        Self { descriptors: has(b"CLONE_FILES"), folder: has(b"CLONE_FS") }
    }
}

impl Thread {
    /// Returns a thread without descriptors.
    pub(super) fn new(folder: Option<Rc<[u8]>>, count: &DescriptorCount) -> Self {
        Self {
            descriptors: Rc::new(RefCell::new(Descriptors::new(count))),
            folder: Rc::new(RefCell::new(folder)),
        }
    }

    /// Returns a new thread that this one started.
    pub(super) fn start(&self, shared: Shared) -> Self {
        let copy = |table: &Rc<RefCell<Descriptors>>| Rc::new(RefCell::new(table.borrow().inherited()));
        Self {
            descriptors: if shared.descriptors { self.descriptors.clone() } else { copy(&self.descriptors) },
            folder: if shared.folder {
                self.folder.clone()
            } else {
                Rc::new(RefCell::new(self.folder.borrow().clone()))
            },
        }
    }

    /// Returns an open file.
    pub(super) fn file(&self, descriptor: u64) -> Option<Rc<RefCell<OpenFile>>> {
        Some(self.descriptors.borrow().by_number.get(&descriptor)?.file.clone())
    }

    /// Sets a descriptor; returns the number of the opening that ends with it, if it was its last descriptor.
    pub(super) fn set(&self, descriptor: u64, file: Descriptor) -> Option<u64> {
        let mut table = self.descriptors.borrow_mut();
        let previous = table.by_number.insert(descriptor, file);
        if previous.is_none() {
            table.count.add(1);
        }
        previous.and_then(ended)
    }

    /// Closes a descriptor; returns the number of the opening that ends with it.
    pub(super) fn close(&self, descriptor: u64) -> Option<u64> {
        let mut table = self.descriptors.borrow_mut();
        let previous = table.by_number.remove(&descriptor)?;
        table.count.subtract(1);
        ended(previous)
    }

    /// Closes the descriptors that a predicate selects; returns the numbers of the openings that end with them.
    pub(super) fn close_if(&self, selects: impl Fn(u64, &Descriptor) -> bool) -> Vec<u64> {
        let mut table = self.descriptors.borrow_mut();
        let before = table.by_number.len();
        let closed = table.by_number.extract_if(|number, descriptor| selects(*number, descriptor));
        let mut numbers: Vec<u64> = closed.filter_map(|(_, descriptor)| ended(descriptor)).collect();
        table.count.subtract(before - table.by_number.len());
        numbers.sort_unstable();
        numbers
    }

    /// Ends the thread; returns the numbers of the openings that end with it.
    pub(super) fn end(self) -> Vec<u64> {
        if Rc::strong_count(&self.descriptors) > 1 {
            return vec![];
        }
        self.close_if(|_, _| true)
    }
}

/// Returns the number of an opening if this was its last descriptor.
fn ended(descriptor: Descriptor) -> Option<u64> {
    let file = Rc::into_inner(descriptor.file)?;
    file.into_inner().handle
}
