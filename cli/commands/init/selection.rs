//! Selects the mounts to measure, their names, and the folders on them that longhaul may write to. Only the mount
//! table is read, and folders are checked by their paths; no mount is touched.

use std::io;
use std::path::{Path, PathBuf};

use longhaul_model::{Mount, Protocol, Role, Target, TargetName};
use longhaul_service::similar_mounts::{MountPair, MountSimilarity, similar_pairs};
use longhaul_service::target_path::SpecialFolders;

use super::prompt::{ChoiceList, Prompter, ask_until_valid};
use crate::commands::targets::visible;

/// Kinds of FUSE mounts that belong to the system: of the desktop, of containers, and of packages of programs. That of gvfs has the
/// shares of the desktop as its folders.
const SYSTEM_FUSE: [&str; 7] =
    ["fuse-overlayfs", "gvfsd-fuse", "lxcfs", "portal", "snapfuse", "squashfuse", "squashfuse_ll"];

/// Mounts to choose from, and the folders on them that need care.
#[derive(Clone, Copy)]
pub struct MountTable<'a> {
    /// The mounts.
    pub mounts: &'a [Mount],
    /// The home folder and the folders of the database.
    pub folders: &'a SpecialFolders,
}

/// Returns the mounts that can be compared, in the order of the mount table: network and FUSE file systems, without those of the system,
/// those that a later mount covers, and those that a Mac refuses to this user.
pub fn comparable_mounts(mounts: &[Mount], user: u32) -> Vec<Mount> {
    let is_drive = |mount: &&Mount| mount.protocol.family().is_remote() && !is_of_system(mount);
    let is_usable = |mount: &&Mount| !mount.is_refused_to(user);
    visible(mounts).filter(is_drive).filter(is_usable).cloned().collect()
}

/// Returns whether a FUSE mount is not a network drive: it belongs to the system, contains a program (AppImage mounts it at `.mount_NAME`),
/// or is a local disk, such as one with NTFS.
fn is_of_system(mount: &Mount) -> bool {
    let Protocol::Fuse(kind) = &mount.protocol else { return false };
    let is_known = kind.as_deref().is_some_and(|kind| SYSTEM_FUSE.contains(&kind));
    let name = mount.point.file_name().unwrap_or_default();
    // Where a file system names no source, libfuse names its device.
    let is_disk = mount.source.starts_with("/dev/") && mount.source != "/dev/fuse";
    is_known || is_disk || name.as_encoded_bytes().starts_with(b".mount_")
}

/// Prints the mounts with their numbers, and which of them look like the same folder or server.
pub fn print_mounts(ask: &mut dyn Prompter, mounts: &[Mount]) {
    ask.print("Network drives that are mounted (none of them was touched):");
    for (number, mount) in (1..).zip(mounts) {
        let read_only = if mount.read_only { ", read-only: cannot be measured" } else { "" };
        ask.print(&format!(
            "  {number}  {}  {} from {}{read_only}",
            mount.point.display(),
            mount.protocol,
            mount.source
        ));
    }
    for MountPair { a, b, similarity: kind } in similar_pairs(mounts) {
        let what = match kind {
            MountSimilarity::SameFolder => "look like the same folder",
            MountSimilarity::SameServer => "are on the same server, but seem to be different folders",
        };
        ask.print(&format!("{} and {} {what}.", a + 1, b + 1));
    }
}

/// Asks for the mounts to compare, in a list at a terminal, else by their numbers. The proposal is a group that looks
/// like the same folder, or else all writable mounts.
pub fn ask_mounts(ask: &mut dyn Prompter, mounts: &[Mount]) -> io::Result<Vec<usize>> {
    let proposal = default_selection(mounts);
    if let Some(chosen) = choose_mounts(ask, mounts, &proposal)? {
        return Ok(chosen);
    }
    let proposal = proposal.iter().map(|at| (at + 1).to_string()).collect::<Vec<_>>().join(",");
    ask_until_valid(ask, "Which of them do you want to compare? Numbers:", &proposal, |answer| {
        parse_numbers(answer, mounts)
    })
}

/// Shows the writable mounts in a list to mark them; returns `None` without a terminal.
fn choose_mounts(
    ask: &mut dyn Prompter,
    mounts: &[Mount],
    proposal: &[usize],
) -> io::Result<Option<Vec<usize>>> {
    let writable: Vec<usize> = (0..mounts.len()).filter(|at| !mounts[*at].read_only).collect();
    let list = ChoiceList {
        question: "Which of them do you want to compare?",
        entries: writable.iter().map(|at| format!("{} {}", at + 1, mounts[*at].point.display())).collect(),
        proposal: (0..writable.len()).filter(|entry| proposal.contains(&writable[*entry])).collect(),
    };
    let chosen = ask.choose(&list)?;
    Ok(chosen.map(|entries| entries.into_iter().map(|entry| writable[entry]).collect()))
}

fn default_selection(mounts: &[Mount]) -> Vec<usize> {
    let writable = |at: &usize| !mounts[*at].read_only;
    let same = similar_pairs(mounts).into_iter().find(|pair| {
        pair.similarity == MountSimilarity::SameFolder && writable(&pair.a) && writable(&pair.b)
    });
    match same {
        Some(pair) => similar_mounts(mounts, pair.a).into_iter().filter(writable).collect(),
        None => (0..mounts.len()).filter(writable).collect(),
    }
}

/// Returns a mount and all others that look like the same folder.
fn similar_mounts(mounts: &[Mount], first: usize) -> Vec<usize> {
    let same = similar_pairs(mounts)
        .into_iter()
        .filter(|pair| pair.a == first && pair.similarity == MountSimilarity::SameFolder);
    [first].into_iter().chain(same.map(|pair| pair.b)).collect()
}

fn parse_numbers(answer: &str, mounts: &[Mount]) -> Result<Vec<usize>, String> {
    let words = answer.split([',', ' ']).filter(|word| !word.is_empty());
    let mut chosen = vec![];
    for word in words {
        let at = word.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let Some(at) = at.filter(|at| *at < mounts.len()) else {
            return Err(format!("`{word}` is not a number between 1 and {}", mounts.len()));
        };
        if mounts[at].read_only {
            return Err(format!(
                "{word} is mounted read-only, and longhaul has to write its test data there"
            ));
        }
        if !chosen.contains(&at) {
            chosen.push(at);
        }
    }
    if chosen.is_empty() { Err("Give at least one number".to_owned()) } else { Ok(chosen) }
}

/// Asks for the name and the folder of each selected mount.
pub fn ask_targets(
    ask: &mut dyn Prompter,
    MountTable { mounts, folders }: MountTable<'_>,
    chosen: &[usize],
) -> io::Result<Vec<Target>> {
    let mut targets: Vec<Target> = vec![];
    for at in chosen {
        let mount = &mounts[*at];
        let question = format!("Name for {}:", mount.point.display());
        let proposal = default_name(&mount.protocol, &targets);
        let name = ask_until_valid(ask, &question, &proposal, |answer| parse_name(answer, &targets))?;
        let question = format!("Folder in which longhaul may create its own folder, for `{name}`:");
        let proposal = mount.point.display().to_string();
        let path = ask_until_valid(ask, &question, &proposal, |answer| {
            let path = parse_folder(answer, mount, mounts)?;
            match folders.concern(&path).filter(|concern| concern.is_refused()) {
                Some(concern) => Err(format!("{} {concern}; {}", path.display(), concern.advice())),
                None => Ok(path),
            }
        })?;
        targets.push(Target { name, path, role: Role::Share });
    }
    Ok(targets)
}

fn parse_name(answer: &str, targets: &[Target]) -> Result<TargetName, String> {
    let name: TargetName =
        answer.parse().map_err(|error: longhaul_model::TargetNameError| error.to_string())?;
    // On a case-insensitive server, the folders of two names that differ only in case would be the same.
    let taken = |target: &Target| target.name.as_str().eq_ignore_ascii_case(name.as_str());
    if targets.iter().any(taken) { Err(format!("`{name}` is taken")) } else { Ok(name) }
}

/// Returns the name of the protocol, with a number appended if that name is taken.
fn default_name(protocol: &Protocol, targets: &[Target]) -> String {
    let base = match protocol {
        Protocol::Afp => "afp",
        Protocol::Nfs(_) => "nfs",
        Protocol::Smb(_) => "smb",
        Protocol::Webdav => "webdav",
        Protocol::Sftp => "sftp",
        Protocol::Fuse(_) => "fuse",
        Protocol::Other(name) if protocol.family().is_remote() => name.as_str(),
        Protocol::Local(_) | Protocol::Other(_) => "disk",
    };
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    let mut names = [base.to_owned()].into_iter().chain(numbered);
    names.find(|name| parse_name(name, targets).is_ok()).unwrap_or_else(|| base.to_owned())
}

fn parse_folder(answer: &str, mount: &Mount, mounts: &[Mount]) -> Result<PathBuf, String> {
    let path = mount.point.join(answer);
    if path.components().any(|part| part == std::path::Component::ParentDir) {
        return Err("Write the path without `..`".to_owned());
    }
    match Mount::for_path(mounts, &path) {
        Some(found) if found.point == mount.point => Ok(normalized(&path)),
        _ => Err(format!("{} is not on {}", path.display(), mount.point.display())),
    }
}

/// Returns a path without a trailing slash and without `.` components.
fn normalized(path: &Path) -> PathBuf {
    path.components().collect()
}

#[cfg(test)]
mod tests {

    use super::super::prompt::tests::Script;
    use super::*;

    /// Id of the user who runs the command.
    const USER: u32 = 501;

    fn mount(point: &str, source: &str, protocol: Protocol) -> Mount {
        Mount::new(point, source, protocol)
    }

    fn mounts() -> Vec<Mount> {
        vec![
            mount("/mnt/other", "//office/x", Protocol::Smb(None)),
            mount("/mnt/smb", "//nas/media", Protocol::Smb(Some("3.1.1".to_owned()))),
            mount("/mnt/smb2", "//nas/photos", Protocol::Smb(None)),
            mount("/mnt/nfs", "nas:/volume1/media", Protocol::Nfs(None)),
        ]
    }

    #[test]
    fn mounts_of_the_system_are_no_network_drives() {
        let workstation = include_bytes!("../../../daemon/measure/tests/fixtures/mountinfo-workstation.txt");
        let mut mounts = longhaul_measure::parse::mountinfo(workstation);
        let fuse = |point: &str, kind: &str| mount(point, "x", Protocol::Fuse(Some(kind.to_owned())));
        mounts.extend([
            fuse("/run/user/1000/doc", "portal"),
            fuse("/tmp/.mount_nvimAb1", "nvim.appimage"),
            fuse("/mnt/cloud", "rclone"),
            mount("/mnt/ceph", "10.0.0.1:/", Protocol::Other("ceph".to_owned())),
            mount("/mnt/smb", "//other/x", Protocol::Smb(None)),
        ]);
        let found = comparable_mounts(&mounts, USER);
        let found: Vec<&str> = found.iter().map(|mount| mount.point.to_str().unwrap()).collect();
        let shares = ["/mnt/nfs4", "/mnt/loop", "/mnt/my share", "/mnt/ssh", "/mnt/dav"];
        assert_eq!(found, [&shares[..], &["/mnt/cloud", "/mnt/ceph", "/mnt/smb"]].concat());
        assert_eq!(default_name(&mounts[mounts.len() - 2].protocol, &[]), "ceph");
    }

    #[test]
    fn share_that_another_user_of_a_mac_mounted_is_left_out() {
        let of = |point: &str, owner: u32| Mount {
            owner: Some(owner),
            ..mount(point, "//nas/media", Protocol::Smb(None))
        };
        let found = comparable_mounts(&[of("/Volumes/media", USER + 1), of("/Volumes/media-1", USER)], USER);
        assert_eq!(found, [of("/Volumes/media-1", USER)]);
    }

    #[test]
    fn mounts_of_the_same_folder_are_proposed() {
        let mut script = Script::new(&[""]);
        print_mounts(&mut script, &mounts());
        assert!(script.output.contains("2 and 4 look like the same folder."), "{}", script.output);
        assert!(script.output.contains("2  /mnt/smb  SMB 3.1.1 from //nas/media"), "{}", script.output);
        assert_eq!(ask_mounts(&mut script, &mounts()).unwrap(), [1, 3]);
    }

    #[test]
    fn otherwise_all_writable_mounts_are_proposed() {
        let mut mounts = mounts();
        mounts[3].read_only = true;
        assert_eq!(ask_mounts(&mut Script::new(&[""]), &mounts).unwrap(), [0, 1, 2]);
        let mut script = Script::new(&["4", "0", "x", " 2, 2 1"]);
        assert_eq!(ask_mounts(&mut script, &mounts).unwrap(), [1, 0]);
        assert!(
            script.output.contains("read-only") && script.output.contains("between 1 and 4"),
            "{}",
            script.output
        );
    }

    #[test]
    fn default_names_are_protocols_and_unique() {
        let mut script = Script::new(&["", "", "SMB", "", "../x", "/mnt/nfs", "photos/./2026/"]);
        let folders = SpecialFolders { home: None, database: vec![] };
        let targets =
            ask_targets(&mut script, MountTable { mounts: &mounts(), folders: &folders }, &[1, 2]).unwrap();
        let found: Vec<_> =
            targets.iter().map(|target| (target.name.as_str(), target.path.to_str().unwrap())).collect();
        assert_eq!(found, [("smb", "/mnt/smb"), ("smb-2", "/mnt/smb2/photos/2026")]);
        for part in ["`SMB` is taken", "without `..`", "/mnt/nfs is not on /mnt/smb2"] {
            assert!(script.output.contains(part), "{part}: {}", script.output);
        }
    }
    #[test]
    fn folder_of_the_database_is_rejected() {
        let folders = SpecialFolders { home: None, database: vec!["/mnt/nfs/longhaul".into()] };
        let mut script = Script::new(&["", "longhaul", "photos"]);
        let targets =
            ask_targets(&mut script, MountTable { mounts: &mounts(), folders: &folders }, &[3]).unwrap();
        assert_eq!(targets[0].path, Path::new("/mnt/nfs/photos"));
        assert!(script.output.contains("is the folder of the database"), "{}", script.output);
    }
}
