//! Which mounts are measured, by which names, and where on them longhaul may write. The mount table only is read: what
//! is chosen is judged by its path.

use std::io;
use std::path::{Path, PathBuf};

use longhaul_measure::model::{Family, Mount, Protocol, Role, Target, TargetName};
use longhaul_service::pairs::{Likeness, Pair, pairs};
use longhaul_service::target_path::SpecialFolders;

use super::ask::{Ask, until};

/// The mounts that can be compared, in the order of the table: what lies on a network, or may.
pub fn comparable(mounts: &[Mount]) -> Vec<Mount> {
    let may = |mount: &&Mount| match mount.protocol.family() {
        Family::Network | Family::Fuse => true,
        Family::Local | Family::Other => false,
    };
    mounts.iter().filter(may).cloned().collect()
}

/// Lists mounts with their numbers, and what looks alike among them.
pub fn list(ask: &mut dyn Ask, mounts: &[Mount]) {
    ask.tell("Network drives that are mounted (none of them was touched):");
    for (number, mount) in (1..).zip(mounts) {
        let read_only = if mount.read_only { ", read-only: cannot be measured" } else { "" };
        ask.tell(&format!(
            "  {number}  {}  {} from {}{read_only}",
            mount.point.display(),
            mount.protocol,
            mount.source
        ));
    }
    for Pair { a, b, likeness } in pairs(mounts) {
        let what = match likeness {
            Likeness::SameFolder => "look like one and the same folder",
            Likeness::SameServer => "come from one server, but seem to be different folders there",
        };
        ask.tell(&format!("{} and {} {what}.", a + 1, b + 1));
    }
}

/// Asks which are compared. Proposed is what looks like one folder, else all that can be written to.
pub fn which(ask: &mut dyn Ask, mounts: &[Mount]) -> io::Result<Vec<usize>> {
    let proposal = proposed(mounts).iter().map(|at| (at + 1).to_string()).collect::<Vec<_>>().join(",");
    until(ask, ("Which of them are to be compared? Numbers:", &proposal), |answer| numbers(answer, mounts))
}

fn proposed(mounts: &[Mount]) -> Vec<usize> {
    let writable = |at: &usize| !mounts[*at].read_only;
    let same = pairs(mounts)
        .into_iter()
        .find(|pair| pair.likeness == Likeness::SameFolder && writable(&pair.a) && writable(&pair.b));
    match same {
        Some(pair) => alike(mounts, pair.a).into_iter().filter(writable).collect(),
        None => (0..mounts.len()).filter(writable).collect(),
    }
}

/// A mount and all that look like the same folder.
fn alike(mounts: &[Mount], first: usize) -> Vec<usize> {
    let same =
        pairs(mounts).into_iter().filter(|pair| pair.a == first && pair.likeness == Likeness::SameFolder);
    [first].into_iter().chain(same.map(|pair| pair.b)).collect()
}

fn numbers(answer: &str, mounts: &[Mount]) -> Result<Vec<usize>, String> {
    let words = answer.split([',', ' ']).filter(|word| !word.is_empty());
    let mut chosen = vec![];
    for word in words {
        let at = word.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let Some(at) = at.filter(|at| *at < mounts.len()) else {
            return Err(format!("`{word}` is no number between 1 and {}", mounts.len()));
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

/// Asks for the name of each and for its folder.
pub fn targets(
    ask: &mut dyn Ask,
    (mounts, folders): (&[Mount], &SpecialFolders),
    chosen: &[usize],
) -> io::Result<Vec<Target>> {
    let mut targets: Vec<Target> = vec![];
    for at in chosen {
        let mount = &mounts[*at];
        let question = format!("A name for {}:", mount.point.display());
        let proposal = name_for(&mount.protocol, &targets);
        let name = until(ask, (&question, &proposal), |answer| name_of(answer, &targets))?;
        let question = format!("A folder on it in which longhaul may make one of its own, for `{name}`:");
        let proposal = mount.point.display().to_string();
        let path = until(ask, (&question, &proposal), |answer| {
            let path = folder_of(answer, mount, mounts)?;
            match folders.concern(&path).filter(|concern| concern.is_refused()) {
                Some(concern) => Err(format!("{} {concern}; {}", path.display(), concern.advice())),
                None => Ok(path),
            }
        })?;
        targets.push(Target { name, path, role: Role::Share });
    }
    Ok(targets)
}

fn name_of(answer: &str, targets: &[Target]) -> Result<TargetName, String> {
    let name: TargetName =
        answer.parse().map_err(|error: longhaul_measure::model::TargetNameError| error.to_string())?;
    // A server that does not tell upper from lower case would mix up their folders.
    let taken = |target: &Target| target.name.as_str().eq_ignore_ascii_case(name.as_str());
    if targets.iter().any(taken) { Err(format!("`{name}` is taken")) } else { Ok(name) }
}

/// The protocol's own name, with a number where it is taken.
fn name_for(protocol: &Protocol, targets: &[Target]) -> String {
    let base = match protocol {
        Protocol::Afp => "afp",
        Protocol::Nfs(_) => "nfs",
        Protocol::Smb(_) => "smb",
        Protocol::Webdav => "webdav",
        Protocol::Sftp => "sftp",
        Protocol::Fuse(_) => "fuse",
        Protocol::Local(_) | Protocol::Other(_) => "disk",
    };
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    let mut names = [base.to_owned()].into_iter().chain(numbered);
    names.find(|name| name_of(name, targets).is_ok()).unwrap_or_else(|| base.to_owned())
}

fn folder_of(answer: &str, mount: &Mount, mounts: &[Mount]) -> Result<PathBuf, String> {
    let path = mount.point.join(answer);
    if path.components().any(|part| part == std::path::Component::ParentDir) {
        return Err("Write the path without `..`".to_owned());
    }
    match Mount::of_path(mounts, &path) {
        Some(found) if found.point == mount.point => Ok(tidy(&path)),
        _ => Err(format!("{} is not on {}", path.display(), mount.point.display())),
    }
}

/// Without a slash at its end, and without `.` in it.
fn tidy(path: &Path) -> PathBuf {
    path.components().collect()
}

#[cfg(test)]
mod tests {
    use longhaul_measure::model::Negotiated;

    use super::super::ask::tests::Script;
    use super::*;

    fn mount(point: &str, source: &str, protocol: Protocol) -> Mount {
        Mount {
            point: point.into(),
            source: source.to_owned(),
            protocol,
            negotiated: Negotiated::new(),
            read_only: false,
            free_bytes: None,
            total_bytes: None,
            server: None,
            device: None,
        }
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
    fn what_looks_like_one_folder_is_proposed() {
        let mut script = Script::new(&[""]);
        list(&mut script, &mounts());
        assert!(script.said.contains("2 and 4 look like one and the same folder."), "{}", script.said);
        assert!(script.said.contains("2  /mnt/smb  SMB 3.1.1 from //nas/media"), "{}", script.said);
        assert_eq!(which(&mut script, &mounts()).unwrap(), [1, 3]);
    }

    #[test]
    fn without_a_pair_all_are_proposed_that_can_be_written_to() {
        let mut mounts = mounts();
        mounts[3].read_only = true;
        assert_eq!(which(&mut Script::new(&[""]), &mounts).unwrap(), [0, 1, 2]);
        let mut script = Script::new(&["4", "0", "x", " 2, 2 1"]);
        assert_eq!(which(&mut script, &mounts).unwrap(), [1, 0]);
        assert!(
            script.said.contains("read-only") && script.said.contains("between 1 and 4"),
            "{}",
            script.said
        );
    }

    #[test]
    fn names_come_from_the_protocols_and_never_twice() {
        let mut script = Script::new(&["", "", "SMB", "", "../x", "/mnt/nfs", "photos/./2026/"]);
        let folders = SpecialFolders { home: None, database: vec![] };
        let targets = targets(&mut script, (&mounts(), &folders), &[1, 2]).unwrap();
        let found: Vec<_> =
            targets.iter().map(|target| (target.name.as_str(), target.path.to_str().unwrap())).collect();
        assert_eq!(found, [("smb", "/mnt/smb"), ("smb-2", "/mnt/smb2/photos/2026")]);
        for part in ["`SMB` is taken", "without `..`", "/mnt/nfs is not on /mnt/smb2"] {
            assert!(script.said.contains(part), "{part}: {}", script.said);
        }
    }
    #[test]
    fn the_folder_of_the_database_is_asked_for_again() {
        let folders = SpecialFolders { home: None, database: vec!["/mnt/nfs/longhaul".into()] };
        let mut script = Script::new(&["", "longhaul", "photos"]);
        let targets = targets(&mut script, (&mounts(), &folders), &[3]).unwrap();
        assert_eq!(targets[0].path, Path::new("/mnt/nfs/photos"));
        assert!(script.said.contains("is the folder of the database"), "{}", script.said);
    }
}
