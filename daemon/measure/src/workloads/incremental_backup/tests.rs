use super::copy_engine::FileMatch;
use super::*;
use crate::testing::Site;

const FOLDER: &str = "folder 0000";
const LETTER: &str = "folder 0000/Dokument 000001 r0.dat";
/// A name that a source gives to a file, but that the source of these tests does not have.
const STRAY: &str = "folder 0000/Dokument 000002 r0.dat";

/// Copies a small source and passes the handle, the source and the destination to `check`.
fn with_copy(check: impl FnOnce(&TimedFs<'_>, &LocalTree, &Folder)) {
    let (from, site) = (tempfile::tempdir().unwrap(), Site::new());
    std::fs::create_dir(from.path().join(FOLDER)).unwrap();
    std::fs::write(from.path().join(LETTER), "dear").unwrap();
    let context = site.context(0);
    let root = context.open_folder_path(site.path()).unwrap();
    let tree = LocalTree::read(from.path()).unwrap();
    copy_engine::copy(&context, &root, scan(&context, &tree, &root).unwrap().batches()).unwrap();
    check(&context, &tree, &root);
}

#[test]
fn a_copy_keeps_the_modification_time() {
    with_copy(|context, tree, root| {
        assert_eq!(require_equal(context, tree, root).unwrap(), "kept");
        assert_eq!(scan(context, tree, root).unwrap().files_to_copy(), 0);
    });
}

#[test]
fn a_lost_modification_time_is_no_damage() {
    with_copy(|context, tree, root| {
        let copy = root.path().join(LETTER);
        std::fs::File::open(&copy).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(require_equal(context, tree, root).unwrap(), "lost");
        assert_eq!(scan(context, tree, root).unwrap().files_to_copy(), 1);
    });
}

#[test]
fn only_orphaned_apple_double_files_are_deleted() {
    with_copy(|context, tree, root| {
        let double = root.path().join("folder 0000/._Dokument 000001 r0.dat");
        std::fs::write(&double, "attributes").unwrap();
        std::fs::write(root.path().join("._folder 0000"), "attributes").unwrap();
        let left = scan(context, tree, root).unwrap();
        assert_eq!((left.files_to_copy(), left.files_to_delete()), (0, 0));
        assert_eq!((left.apple_double_files, left.first_mismatch()), (2, None));
        let orphan = root.path().join("folder 0000/._Dokument 000002 r0.dat");
        std::fs::write(&orphan, "attributes").unwrap();
        let left = scan(context, tree, root).unwrap();
        assert_eq!((left.files_to_delete(), left.first_mismatch()), (1, None));
        copy_engine::delete(context, root, &left).unwrap();
        assert_eq!(require_equal(context, tree, root).unwrap(), "kept");
        assert!(double.exists() && !orphan.exists());
    });
}

#[test]
fn missing_extra_and_resized_copies_are_damage() {
    let damages: [fn(&Path); 3] = [
        |root| std::fs::remove_file(root.join(LETTER)).unwrap(),
        |root| std::fs::write(root.join(STRAY), "x").unwrap(),
        |root| std::fs::write(root.join(LETTER), "longer than it was").unwrap(),
    ];
    for damage in damages {
        with_copy(|context, tree, root| {
            damage(root.path());
            assert!(matches!(require_equal(context, tree, root), Err(RunError::Damaged { .. })));
        });
    }
}

#[test]
fn foreign_files_are_counted_and_kept() {
    let foreign = [
        ".DS_Store",
        "letter.txt",
        "folder 0000/letter.txt",
        "folder 0000/._letter.txt.gone",
        "folder 0000/Dokument 000099 r0.dat",
    ];
    with_copy(|context, tree, root| {
        foreign.iter().for_each(|name| std::fs::write(root.path().join(name), "mine").unwrap());
        let left = scan(context, tree, root).unwrap();
        assert_eq!((left.unexpected_files, left.apple_double_files), (4, 1));
        assert_eq!((left.files_to_delete(), left.first_mismatch()), (0, None));
        copy_engine::delete(context, root, &left).unwrap();
        assert_eq!(require_equal(context, tree, root).unwrap(), "kept");
        assert!(foreign.iter().all(|name| root.path().join(name).exists()));
    });
}

#[test]
fn file_that_only_the_listing_shows_is_copied() {
    with_copy(|context, tree, root| {
        std::fs::remove_file(root.path().join(LETTER)).unwrap();
        let local = tree.folders.iter().find(|folder| !folder.files.is_empty()).unwrap();
        let folder = copy_engine::open_path(context, root, &local.names).unwrap();
        let found = copy_engine::match_file(context, &folder, &local.files[0]).unwrap();
        assert!(matches!(found, FileMatch::Different));
    });
}

#[test]
fn file_that_is_already_gone_counts_as_deleted() {
    with_copy(|context, tree, root| {
        std::fs::write(root.path().join(STRAY), "x").unwrap();
        let left = scan(context, tree, root).unwrap();
        assert_eq!(left.files_to_delete(), 1);
        std::fs::remove_file(root.path().join(STRAY)).unwrap();
        copy_engine::delete(context, root, &left).unwrap();
    });
}

#[test]
fn only_the_name_of_a_destination_is_recognized() {
    let owns = |name: &str| IncrementalBackup.owns(&Path::new(name).join(LETTER));
    assert!(owns("600"));
    for foreign in ["+600", "0600", " 600", "600.0", "folder"] {
        assert!(!owns(foreign), "{foreign}");
    }
}
