//! Tests of the checks on a real folder of the local disk.

use std::path::Path;

use super::{FOLDER, PropertyFolder, check, owns, remove, untestable};
use crate::sandbox::{CleanMode, Sandbox};
use crate::testing::Site;
use crate::timed_fs::TimedFs;
use longhaul_model::{KeepResult, Property};

/// Creates a sandbox in a new folder, and passes both to a test.
fn with_sandbox(test: impl FnOnce(&Path, &Sandbox, &TimedFs<'_>)) {
    let site = Site::new();
    test(site.path(), &site.sandbox(), &site.context(0));
}

#[test]
fn local_folder_keeps_properties_and_nothing_is_left() {
    with_sandbox(|folder, sandbox, context| {
        for property in Property::ALL.into_iter().filter(|property| untestable(*property).is_none()) {
            let mut place = PropertyFolder::create(sandbox, property, None, context).unwrap();
            let finding = check(property, &mut place).unwrap();
            place.remove().unwrap();
            let is_fine = matches!(
                finding.result,
                KeepResult::Kept | KeepResult::NotTested | KeepResult::Refused | KeepResult::Changed
            );
            assert!(is_fine, "{finding:?}");
            assert!(!folder.join(".longhaul-m-nas/fidelity").exists(), "{property:?} left something behind");
        }
    });
}

#[test]
fn removed_files_accuse_nothing() {
    with_sandbox(|folder, sandbox, context| {
        let mut place = PropertyFolder::create(sandbox, Property::HardLink, None, context).unwrap();
        std::fs::remove_dir_all(folder.join(".longhaul-m-nas/fidelity")).unwrap();
        let finding = check(Property::HardLink, &mut place).unwrap();
        assert_eq!(finding.result, KeepResult::NotTested, "{finding:?}");
    });
}

#[test]
fn killed_check_is_cleaned_and_a_foreign_file_stays() {
    with_sandbox(|folder, sandbox, context| {
        for property in [Property::LongName, Property::Backslash, Property::LongPath, Property::SymbolicLink]
        {
            let mut place = PropertyFolder::create(sandbox, property, None, context).unwrap();
            check(property, &mut place).unwrap();
            // Dropped without removal, as after a kill.
            drop(place);
            let foreign = folder.join(".longhaul-m-nas/fidelity/colon");
            std::fs::create_dir(&foreign).unwrap();
            std::fs::write(foreign.join("letter.txt"), "mine").unwrap();
            remove(sandbox, context).unwrap();
            assert!(foreign.join("letter.txt").exists());
            std::fs::remove_dir_all(&foreign).unwrap();
        }
        let report = sandbox.clean(CleanMode::Remove, context, &owns).unwrap();
        assert!(report.sandbox_removed && report.folders.iter().any(|(name, ..)| name == FOLDER));
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
    });
}
