//! Processes of a trace: their descriptors and current folders.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// An open file, shared by all descriptors that were duplicated from one another.
#[derive(Debug)]
pub(super) struct OpenFile {
    /// Number of the opening; `None` for what is no file: sockets, pipes.
    pub(super) handle: Option<u64>,
    pub(super) path: Vec<u8>,
    /// Position of the next transfer; `None` if unknown, or if writes go to the end.
    pub(super) position: Option<u64>,
    pub(super) appends: bool,
    /// True if it is only a place in the tree (`O_PATH`).
    pub(super) is_place: bool,
}

/// A descriptor.
#[derive(Debug, Clone)]
pub(super) struct Descriptor {
    pub(super) file: Rc<RefCell<OpenFile>>,
    pub(super) closes_on_exec: bool,
}

/// Descriptors, by number.
pub(super) type Descriptors = HashMap<u64, Descriptor>;

/// A thread of a trace. Threads of one process share their tables.
#[derive(Clone, Default)]
pub(super) struct Thread {
    pub(super) descriptors: Rc<RefCell<Descriptors>>,
    pub(super) folder: Rc<RefCell<Option<Vec<u8>>>>,
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
    /// Returns a thread whose current folder is known.
    pub(super) fn in_folder(folder: Option<Vec<u8>>) -> Self {
        Self { folder: Rc::new(RefCell::new(folder)), ..Self::default() }
    }

    /// Returns a new thread that this one started.
    pub(super) fn start(&self, shared: Shared) -> Self {
        let copy = |table: &Rc<RefCell<Descriptors>>| Rc::new(RefCell::new(table.borrow().clone()));
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
        Some(self.descriptors.borrow().get(&descriptor)?.file.clone())
    }

    /// Sets a descriptor; returns the number of the opening that ends with it, if it was its last descriptor.
    pub(super) fn set(&self, descriptor: u64, file: Descriptor) -> Option<u64> {
        let previous = self.descriptors.borrow_mut().insert(descriptor, file);
        previous.and_then(ended)
    }

    /// Closes a descriptor; returns the number of the opening that ends with it.
    pub(super) fn close(&self, descriptor: u64) -> Option<u64> {
        let previous = self.descriptors.borrow_mut().remove(&descriptor);
        previous.and_then(ended)
    }

    /// Closes the descriptors that a predicate selects; returns the numbers of the openings that end with them.
    pub(super) fn close_if(&self, selects: impl Fn(u64, &Descriptor) -> bool) -> Vec<u64> {
        let mut table = self.descriptors.borrow_mut();
        let closed = table.extract_if(|number, descriptor| selects(*number, descriptor));
        let mut numbers: Vec<u64> = closed.filter_map(|(_, descriptor)| ended(descriptor)).collect();
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
