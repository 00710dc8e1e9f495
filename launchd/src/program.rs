//! By which path the service names its program: one that is still right after an update.
//!
//! macOS ties permissions for network volumes to the program's path and signature: a service that points into a folder
//! with a version in its name loses them, or its program, with each update.

use std::path::{Path, PathBuf};

/// The path to use, and what may go wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StableProgram {
    /// The path.
    pub path: PathBuf,
    /// Why it may not stay right, and what to do; `None` if nothing speaks against it.
    pub warning: Option<String>,
}

/// Finds a path for a program that survives updates.
///
/// `resolve` gives the file that a path leads to, or `None`; `folders` are those of `PATH`, in which a stable name may
/// be found.
pub fn stable_program(
    program: &Path,
    folders: &[PathBuf],
    resolve: &dyn Fn(&Path) -> Option<PathBuf>,
) -> StableProgram {
    let file = resolve(program).unwrap_or_else(|| program.to_owned());
    if trouble(program).is_none() && trouble(&file).is_none() {
        return StableProgram { path: program.to_owned(), warning: None };
    }
    let name = program.file_name().unwrap_or_default();
    let in_folders = folders.iter().filter(|folder| folder.is_absolute()).map(|folder| folder.join(name));
    let candidates = [program.to_owned()].into_iter().chain(homebrew(&file)).chain(in_folders);
    let same = |path: &PathBuf| resolve(path).as_ref() == Some(&file);
    match candidates.into_iter().find(|path| trouble(path).is_none() && same(path)) {
        Some(path) => StableProgram { path, warning: None },
        None => {
            StableProgram { path: program.to_owned(), warning: trouble(&file).or_else(|| trouble(program)) }
        }
    }
}

/// Homebrew keeps each version in a folder of its own, and a link without a version to the one in force:
/// `PREFIX/opt/FORMULA` and `PREFIX/bin` (Homebrew, Formula Cookbook, `opt_bin`).
fn homebrew(file: &Path) -> Vec<PathBuf> {
    let parts: Vec<_> = file.components().collect();
    let Some(cellar) = parts.iter().position(|part| part.as_os_str() == "Cellar") else { return vec![] };
    let (Some(formula), Some(below)) = (parts.get(cellar + 1), parts.get(cellar + 3..)) else {
        return vec![];
    };
    let prefix: PathBuf = parts[..cellar].iter().collect();
    let below: PathBuf = below.iter().collect();
    vec![prefix.join("opt").join(formula).join(&below), prefix.join(below)]
}

/// What speaks against a path, by its names alone.
fn trouble(path: &Path) -> Option<String> {
    let has = |part: &str| path.components().any(|component| component.as_os_str() == part);
    let why = if has("Cellar") {
        "lies in a folder of Homebrew that the next update removes. Run longhaul by its name, as in `longhaul install`"
    } else if path.starts_with("/nix/store") {
        "lies in the Nix store under a name that changes with each update. Install longhaul into a profile"
    } else if has("AppTranslocation") || path.starts_with("/Volumes") {
        "lies on a disk image, or where macOS puts what was only downloaded. Move longhaul to /usr/local/bin"
    } else if has("target") && (has("debug") || has("release")) {
        "lies in a build folder. `cargo install --path .` puts it where it stays"
    } else if ["/tmp", "/private/tmp", "/var/tmp", "/private/var/folders"]
        .iter()
        .any(|place| path.starts_with(place))
    {
        "lies in a folder for temporary files. Move longhaul to a folder that stays"
    } else if path
        .parent()
        .is_some_and(|folder| folder.components().any(|part| is_version(part.as_os_str().to_str())))
    {
        "lies in a folder with a version in its name, so that an update leaves it behind. Link it to a folder without one"
    } else {
        return None;
    };
    Some(format!("{} {why}; then `longhaul install` again", path.display()))
}

/// Whether a name is a version, or ends in one: `1.2`, `v1.2.3`, `longhaul-0.1.0`.
fn is_version(name: Option<&str>) -> bool {
    let Some(last) = name.and_then(|name| name.rsplit(['-', '@', '_']).next()) else { return false };
    let numbers: Vec<&str> = last.strip_prefix('v').unwrap_or(last).split('.').collect();
    numbers.len() >= 2
        && numbers.iter().all(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a program is found as, where these links lead to these files.
    fn found(program: &str, links: &[(&str, &str)], folders: &[&str]) -> StableProgram {
        let resolve = |path: &Path| {
            let link = links.iter().find(|(from, _)| path == Path::new(from));
            Some(link.map_or_else(|| path.to_owned(), |(_, to)| PathBuf::from(to)))
        };
        let folders: Vec<PathBuf> = folders.iter().map(PathBuf::from).collect();
        stable_program(Path::new(program), &folders, &resolve)
    }

    const CELLAR: &str = "/opt/homebrew/Cellar/longhaul/0.1.0/bin/longhauld";

    #[test]
    fn a_plain_path_is_taken_as_it_is() {
        let stable = StableProgram { path: "/usr/local/bin/longhauld".into(), warning: None };
        assert_eq!(found("/usr/local/bin/longhauld", &[], &["/opt/homebrew/bin"]), stable);
    }

    #[test]
    fn homebrew_is_named_by_the_link_that_it_moves_along() {
        let opt = "/opt/homebrew/opt/longhaul/bin/longhauld";
        let bin = "/opt/homebrew/bin/longhauld";
        assert_eq!(found(CELLAR, &[(opt, CELLAR)], &[]).path, Path::new(opt));
        assert_eq!(found(CELLAR, &[(bin, CELLAR)], &[]).path, Path::new(bin));
        let by_name = found(bin, &[(bin, CELLAR), (opt, CELLAR)], &[]);
        assert_eq!(
            (by_name.path, by_name.warning),
            (bin.into(), None),
            "the link that was called is as good"
        );
    }

    #[test]
    fn a_link_to_another_version_is_not_taken() {
        let opt = "/opt/homebrew/opt/longhaul/bin/longhauld";
        let older = "/opt/homebrew/Cellar/longhaul/0.0.9/bin/longhauld";
        let stable = found(CELLAR, &[(opt, older)], &[]);
        assert_eq!(stable.path, Path::new(CELLAR));
        assert!(stable.warning.unwrap().contains("next update removes"));
    }

    #[test]
    fn a_name_on_the_path_helps_where_the_file_does_not_stay() {
        let file = "/nix/store/0abc-longhaul-0.1.0/bin/longhauld";
        let profile = "/home/ada/.nix-profile/bin/longhauld";
        let folders = ["relative", "/usr/bin", "/home/ada/.nix-profile/bin"];
        assert_eq!(found(file, &[(profile, file)], &folders).path, Path::new(profile));
    }

    #[test]
    fn what_will_not_stay_is_warned_of_with_what_to_do() {
        for (path, part) in [
            ("/nix/store/0abc-longhaul-0.1.0/bin/longhauld", "Nix store"),
            ("/home/ada/longhaul/target/release/longhauld", "cargo install"),
            ("/private/var/folders/x/T/AppTranslocation/y/longhauld", "downloaded"),
            ("/Volumes/longhaul/longhauld", "disk image"),
            ("/tmp/longhauld", "temporary"),
            ("/opt/longhaul-0.1.0/longhauld", "version"),
            ("/home/ada/.local/share/mise/installs/longhaul/0.1.0/bin/longhauld", "version"),
        ] {
            let warning = found(path, &[], &[]).warning.unwrap_or_else(|| panic!("{path} is not warned of"));
            assert!(warning.contains(part) && warning.contains(path), "{warning}");
        }
    }

    #[test]
    fn a_number_in_a_name_is_not_a_version() {
        for name in ["python3", "x86_64", "2026", "a.b", "lib64", "1.", "longhaul-x.1"] {
            assert!(!is_version(Some(name)), "{name}");
        }
    }
}
