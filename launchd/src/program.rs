//! Chooses a path of the program that stays valid after an update.
//!
//! macOS ties permissions for network volumes to the path and signature of a program. A service that uses a folder
//! with a version in its name would lose its permissions, or its program, with each update.

use std::path::{Path, PathBuf};

/// Names of what cargo writes beside the programs that it builds (cargo, src/cargo/core/compiler/layout.rs). With `build.build-dir`, the
/// fingerprints are in another folder.
const BUILD_FILES: [&str; 2] = [".cargo-lock", ".fingerprint"];

/// The path to use, with a warning if it may not last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StableProgram {
    /// Path of the program.
    pub path: PathBuf,
    /// The reason why the path may become invalid, with advice; `None` if there is none.
    pub warning: Option<String>,
}

/// Returns a path of a program that stays valid after updates.
///
/// `resolve` returns the file that a path leads to, or `None`; `folders` are the entries of `PATH`, in which a
/// stable path may be found.
pub fn stable_program(
    program: &Path,
    folders: &[PathBuf],
    resolve: &dyn Fn(&Path) -> Option<PathBuf>,
) -> StableProgram {
    let file = resolve(program).unwrap_or_else(|| program.to_owned());
    let exists = |path: &Path| resolve(path).is_some();
    let warning_of = |path: &Path| stability_warning(path, &exists);
    if warning_of(program).is_none() && warning_of(&file).is_none() {
        return StableProgram { path: program.to_owned(), warning: None };
    }
    // The path itself comes first, so that a stable link that the user called is kept.
    let name = program.file_name().unwrap_or_default();
    let in_folders = folders.iter().filter(|folder| folder.is_absolute()).map(|folder| folder.join(name));
    let candidates = [program.to_owned()].into_iter().chain(homebrew_links(&file)).chain(in_folders);
    let same = |path: &PathBuf| resolve(path).as_ref() == Some(&file);
    match candidates.into_iter().find(|path| warning_of(path).is_none() && same(path)) {
        Some(path) => StableProgram { path, warning: None },
        None => StableProgram {
            path: program.to_owned(),
            warning: warning_of(&file).or_else(|| warning_of(program)),
        },
    }
}

/// Returns the version-independent links that Homebrew keeps for a versioned file: `PREFIX/opt/FORMULA` and
/// `PREFIX/bin` (Homebrew, Formula Cookbook, `opt_bin`).
fn homebrew_links(file: &Path) -> Vec<PathBuf> {
    let parts: Vec<_> = file.components().collect();
    let Some(cellar) = parts.iter().position(|part| part.as_os_str() == "Cellar") else { return vec![] };
    let (Some(formula), Some(below)) = (parts.get(cellar + 1), parts.get(cellar + 3..)) else {
        return vec![];
    };
    let prefix: PathBuf = parts[..cellar].iter().collect();
    let below: PathBuf = below.iter().collect();
    vec![prefix.join("opt").join(formula).join(&below), prefix.join(below)]
}

/// Returns the reason why a path may become invalid, judged by its components, and by what `exists` beside it.
fn stability_warning(path: &Path, exists: &dyn Fn(&Path) -> bool) -> Option<String> {
    let has = |part: &str| path.components().any(|component| component.as_os_str() == part);
    // The folder of cargo may have any name (`CARGO_TARGET_DIR`).
    let is_built = || BUILD_FILES.iter().any(|name| exists(&path.with_file_name(name)));
    let why = if has("Cellar") {
        "is in a folder of Homebrew that the next update removes. Run longhaul by its name, as in `longhaul service install`"
    } else if path.starts_with("/nix/store") {
        "is in the Nix store under a name that changes with each update. Install longhaul into a profile"
    } else if has("AppTranslocation") || path.starts_with("/Volumes") {
        "is on another disk or a disk image, or in a folder that macOS uses for downloaded programs. Move longhaul to /usr/local/bin"
    } else if has("target") && (has("debug") || has("release")) || is_built() {
        "is in a build folder. Install it with `cargo install --path .`"
    } else if ["/tmp", "/private/tmp", "/var/tmp", "/private/var/folders"]
        .iter()
        .any(|place| path.starts_with(place))
    {
        "is in a folder for temporary files. Move longhaul to a permanent folder"
    } else if path
        .parent()
        .is_some_and(|folder| folder.components().any(|part| is_version(part.as_os_str().to_str())))
    {
        "is in a folder with a version in its name, so an update will use another path. Create a link to it in a folder without a version"
    } else {
        return None;
    };
    Some(format!("{} {why}; then run `longhaul service install` again", path.display()))
}

/// Returns whether a name is a version or ends with one: `1.2`, `v1.2.3`, `longhaul-0.1.0`.
fn is_version(name: Option<&str>) -> bool {
    let Some(last) = name.and_then(|name| name.rsplit(['-', '@', '_']).next()) else { return false };
    let numbers: Vec<&str> = last.strip_prefix('v').unwrap_or(last).split('.').collect();
    numbers.len() >= 2
        && numbers.iter().all(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the stable path of a program, where each link leads to the given file. Cargo has built it if a link is one of its files.
    fn resolved(program: &str, links: &[(&str, &str)], folders: &[&str]) -> StableProgram {
        let resolve = |path: &Path| {
            let link = links.iter().find(|(from, _)| path == Path::new(from));
            let is_build_file = BUILD_FILES.iter().any(|name| path.ends_with(name));
            let without_link = || (!is_build_file).then(|| path.to_owned());
            link.map_or_else(without_link, |(_, to)| Some(PathBuf::from(to)))
        };
        let folders: Vec<PathBuf> = folders.iter().map(PathBuf::from).collect();
        stable_program(Path::new(program), &folders, &resolve)
    }

    const CELLAR: &str = "/opt/homebrew/Cellar/longhaul/0.1.0/bin/longhauld";

    #[test]
    fn plain_path_is_used_unchanged() {
        let stable = StableProgram { path: "/usr/local/bin/longhauld".into(), warning: None };
        assert_eq!(resolved("/usr/local/bin/longhauld", &[], &["/opt/homebrew/bin"]), stable);
    }

    #[test]
    fn homebrew_program_is_found_by_its_link() {
        let opt = "/opt/homebrew/opt/longhaul/bin/longhauld";
        let bin = "/opt/homebrew/bin/longhauld";
        assert_eq!(resolved(CELLAR, &[(opt, CELLAR)], &[]).path, Path::new(opt));
        assert_eq!(resolved(CELLAR, &[(bin, CELLAR)], &[]).path, Path::new(bin));
        let by_name = resolved(bin, &[(bin, CELLAR), (opt, CELLAR)], &[]);
        assert_eq!(
            (by_name.path, by_name.warning),
            (bin.into(), None),
            "the link that was called is also stable"
        );
    }

    #[test]
    fn link_to_another_version_is_not_used() {
        let opt = "/opt/homebrew/opt/longhaul/bin/longhauld";
        let older = "/opt/homebrew/Cellar/longhaul/0.0.9/bin/longhauld";
        let stable = resolved(CELLAR, &[(opt, older)], &[]);
        assert_eq!(stable.path, Path::new(CELLAR));
        assert!(stable.warning.unwrap().contains("next update removes"));
    }

    #[test]
    fn link_in_a_path_folder_is_preferred() {
        let file = "/nix/store/0abc-longhaul-0.1.0/bin/longhauld";
        let profile = "/home/ada/.nix-profile/bin/longhauld";
        let folders = ["relative", "/usr/bin", "/home/ada/.nix-profile/bin"];
        assert_eq!(resolved(file, &[(profile, file)], &folders).path, Path::new(profile));
    }

    #[test]
    fn unstable_paths_give_a_warning_with_advice() {
        for (path, part) in [
            ("/nix/store/0abc-longhaul-0.1.0/bin/longhauld", "Nix store"),
            ("/home/ada/longhaul/target/release/longhauld", "cargo install"),
            ("/private/var/folders/x/T/AppTranslocation/y/longhauld", "downloaded"),
            ("/Volumes/longhaul/longhauld", "disk image"),
            ("/tmp/longhauld", "temporary"),
            ("/opt/longhaul-0.1.0/longhauld", "version"),
            ("/home/ada/.local/share/mise/installs/longhaul/0.1.0/bin/longhauld", "version"),
        ] {
            let warning = resolved(path, &[], &[]).warning.unwrap_or_else(|| panic!("{path} has no warning"));
            assert!(warning.contains(part) && warning.contains(path), "{warning}");
        }
    }

    #[test]
    fn build_folder_may_have_any_name() {
        let program = "/home/ada/builds/release/longhauld";
        assert_eq!(resolved(program, &[], &[]).warning, None);
        for file in ["/home/ada/builds/release/.cargo-lock", "/home/ada/builds/release/.fingerprint"] {
            let warning = resolved(program, &[(file, file)], &[]).warning.unwrap_or_else(|| panic!("{file}"));
            assert!(warning.contains("cargo install"), "{warning}");
        }
    }

    #[test]
    fn number_in_a_name_is_not_a_version() {
        for name in ["python3", "x86_64", "2026", "a.b", "lib64", "1.", "longhaul-x.1"] {
            assert!(!is_version(Some(name)), "{name}");
        }
    }
}
