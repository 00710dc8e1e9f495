//! The folder of one property, and where what is read there comes from.

use std::ffi::{CStr, CString};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use super::names::{CONTROL, FOLDER, folder_of, owns, renamed_folder_of, single_name};
use crate::error::RunError;
use crate::platform::{Access, FileFacts, SYSTEM, System};
use crate::sandbox::Sandbox;
use crate::selfcheck::ScratchFolder;
use crate::timed_fs::{Folder, OpenFile, TimedFs};
use longhaul_model::{Operation, Property, Protocol, ProtocolFamily, ReadBack};

/// [`FOLDER`] as a C string.
const FOLDER_NAME: &CStr = c"fidelity";
/// Free space below which a target counts as full. The checks reserve 1 MiB, and a folder with many names takes more.
const MIN_FREE_BYTES: u64 = 8 << 20;
/// Time within which a share must show that files were removed: clients close files late.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(3);
/// Pause between two attempts to remove the folder.
const REMOVAL_INTERVAL: Duration = Duration::from_millis(100);

/// Open folder of one property.
pub struct PropertyFolder<'a> {
    pub(super) context: &'a TimedFs<'a>,
    pub(super) files: ScratchFolder,
    sandbox: &'a Sandbox,
    protocol: Option<&'a Protocol>,
    /// Present name of the folder, and the name that it gets next.
    names: [CString; 2],
    is_renamed: bool,
}

impl<'a> PropertyFolder<'a> {
    /// Creates the folder of a property. Files that a killed check left behind are removed first.
    ///
    /// # Errors
    ///
    /// If the folder cannot be created.
    pub fn create(
        sandbox: &'a Sandbox,
        property: Property,
        protocol: Option<&'a Protocol>,
        context: &'a TimedFs<'a>,
    ) -> Result<Self, RunError> {
        // The manifest entry is written before the folder is created, because only folders in the manifest are cleaned.
        if sandbox.manifest_entry::<bool>(FOLDER)?.is_none() {
            sandbox.record_entry(FOLDER, &true, context)?;
        }
        remove(sandbox, context)?;
        let parent = context.create_and_open_folder(&sandbox.folder()?, FOLDER_NAME)?;
        let folder = context.create_and_open_folder(&parent, &folder_of(property))?;
        let files = ScratchFolder::from_folders(parent, folder);
        files.write(CONTROL, b"control", context)?;
        let names = [folder_of(property), renamed_folder_of(property)];
        Ok(Self { context, files, sandbox, protocol, names, is_renamed: false })
    }

    /// Removes the folder with all its files.
    ///
    /// # Errors
    ///
    /// If something cannot be removed.
    pub fn remove(self) -> Result<(), RunError> {
        let Self { files, sandbox, context, .. } = self;
        // Over SMB an open handle would keep the folder in place.
        drop(files);
        remove(sandbox, context)
    }

    /// Renames the folder and opens it under its new name, so that nothing that the client remembers by path is used.
    /// A server that refuses it, because it believes that a file is open, leaves the folder as it is.
    pub(super) fn reopen(&mut self) -> Result<(), RunError> {
        let [old, new] = &self.names;
        self.is_renamed = match self.context.rename(self.files.parent(), old, new) {
            Ok(()) => true,
            Err(stopped @ RunError::Stopped(_)) => return Err(stopped),
            Err(_) => false,
        };
        if self.is_renamed {
            self.names.swap(0, 1);
        }
        let folder = self.context.open_folder(self.files.parent(), &self.names[0])?;
        self.files.set_folder(folder);
        Ok(())
    }

    pub(super) fn folder(&self) -> &Folder {
        self.files.folder()
    }

    /// Creates an empty file and closes it.
    pub(super) fn create_file(&self, name: &CStr) -> Result<(), RunError> {
        self.files.write(name, b"", self.context)
    }

    /// Opens a file for reading and writing. A mount that cannot open existing files for writing (gvfs) opens it for
    /// reading.
    pub(super) fn open(&self, name: &CStr) -> Result<OpenFile, RunError> {
        match self.context.open(self.folder(), name, Access::ReadWrite) {
            Err(error) if error.is_unsupported() => self.context.open(self.folder(), name, Access::Read),
            other => other,
        }
    }

    /// Returns the facts about a file, as the server reports them.
    ///
    /// # Errors
    ///
    /// Also if the file does not exist.
    pub(super) fn facts(&self, name: &CStr) -> Result<FileFacts, RunError> {
        self.context.server_facts(self.folder(), name)?.ok_or_else(|| {
            let source = ErrorKind::NotFound.into();
            RunError::operation(Operation::Getattr, &self.folder().join(name), source)
        })
    }

    /// Reads a file from an offset after its content was evicted from memory. Returns the bytes, and where they came
    /// from.
    pub(super) fn read_evicted(
        &self,
        name: &CStr,
        offset: u64,
        length: usize,
    ) -> Result<(Vec<u8>, ReadBack), RunError> {
        let file = self.open(name)?;
        let is_evicted = self.context.evict(&file, offset + length as u64) == Some(0.0);
        let mut bytes = vec![0; length];
        let read = self.context.read_full(&file, &mut bytes, offset)?;
        bytes.truncate(read);
        self.context.close(file)?;
        Ok((bytes, if is_evicted { ReadBack::Server } else { ReadBack::Client }))
    }

    /// Returns where [`Self::facts`] come from. Linux asks the server (`AT_STATX_FORCE_SYNC`).
    pub(super) fn facts_source(&self) -> ReadBack {
        self.source(self.is_smb() || matches!(self.protocol, Some(Protocol::Nfs(_))))
    }

    /// Returns where extended attributes come from: Linux remembers them over NFS, but not over SMB.
    pub(super) fn xattr_source(&self) -> ReadBack {
        self.source(self.is_smb())
    }

    /// Returns where the names of a listing come from. Linux keeps listings by path over SMB, and asks for the time of
    /// change of the folder over NFS.
    pub(super) fn listing_source(&self) -> ReadBack {
        if self.is_renamed { self.facts_source() } else { ReadBack::Client }
    }

    /// Returns the source, given whether the client on Linux asks the server. On a local disk there is no other client:
    /// this machine's file system is what is checked.
    fn source(&self, asks_on_linux: bool) -> ReadBack {
        let is_local = self.protocol.is_some_and(|protocol| protocol.family() == ProtocolFamily::Local);
        let is_server = is_local || (SYSTEM == System::Linux && asks_on_linux);
        if is_server { ReadBack::Server } else { ReadBack::Client }
    }

    /// Returns the protocol of the target; `None` if it is not known.
    pub(super) fn protocol(&self) -> Option<&'a Protocol> {
        self.protocol
    }

    /// Returns whether the target is an AFP share of Linux, whose only client is that of the desktop (gvfs).
    pub(super) fn is_afp_on_linux(&self) -> bool {
        SYSTEM == System::Linux && matches!(self.protocol, Some(Protocol::Afp))
    }

    /// Returns whether the target is an SMB share.
    pub(super) fn is_smb(&self) -> bool {
        matches!(self.protocol, Some(Protocol::Smb(_)))
    }

    /// Returns whether the control file still exists: if it does not, another program removed the files of the check.
    pub(super) fn is_intact(&self) -> bool {
        matches!(self.context.server_facts(self.folder(), CONTROL), Ok(Some(_)))
    }

    /// Returns whether the target has no space for the files of the check.
    pub(super) fn is_full(&self) -> bool {
        self.sandbox.space(self.context).is_ok_and(|space| space.free_bytes < MIN_FREE_BYTES)
    }
}

/// Removes the folder of all checks. Files of others, and the folders that contain them, remain.
///
/// # Errors
///
/// If something cannot be removed.
pub fn remove(sandbox: &Sandbox, context: &TimedFs<'_>) -> Result<(), RunError> {
    let start = Instant::now();
    let mut has_unlinked = false;
    loop {
        match sandbox.remove_folder(FOLDER, context, &|path| owns(FOLDER, path)) {
            Err(error) if error.is_not_empty() && start.elapsed() < REMOVAL_TIMEOUT => {
                std::thread::sleep(REMOVAL_INTERVAL);
            }
            // A client may fail to list a folder because of a name in it (gvfs, with a colon over AFP).
            Err(RunError::Operation { operation: Operation::Readdir, .. }) if !has_unlinked => {
                has_unlinked = true;
                unlink_odd_names(sandbox, context)?;
            }
            other => return other.map(drop),
        }
    }
}

/// Removes the files with odd names by the names that they were given, without listing their folders.
fn unlink_odd_names(sandbox: &Sandbox, context: &TimedFs<'_>) -> Result<(), RunError> {
    let parent = context.open_folder(&sandbox.folder()?, FOLDER_NAME)?;
    for property in Property::ALL {
        let Some(name) = single_name(property) else { continue };
        for folder in [folder_of(property), renamed_folder_of(property)] {
            // Most of these folders and files do not exist.
            if let Ok(folder) = context.open_folder(&parent, &folder) {
                let _ = context.unlink(&folder, &name);
            }
        }
    }
    Ok(())
}
