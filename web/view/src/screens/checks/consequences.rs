//! Consequences of a result for a backup, a photo library, a Git checkout or a Time Machine bundle.

use longhaul_model::{KeepResult, Property};

/// Returns the meaning of a property that is changed, refused or lost; `None` for all other results.
pub fn consequence(property: Property, result: KeepResult) -> Option<&'static str> {
    match result {
        KeepResult::Refused => Some(refused(property)),
        KeepResult::Changed | KeepResult::Lost => Some(altered(property)),
        KeepResult::Kept | KeepResult::Hung | KeepResult::NotTested => None,
    }
}

/// Returns the meaning of a property that is changed or lost without an error.
fn altered(property: Property) -> &'static str {
    match property {
        Property::Permissions => {
            "A backup restores scripts without their executable bit, and Git may show every file as changed."
        }
        Property::ModificationTime => {
            "A backup that compares exact times may copy files again; most programs compare to 1 or 2 s."
        }
        Property::BirthTime => "A photo library that sorts by creation time may sort photos differently.",
        Property::TinyAttribute | Property::SmallAttribute | Property::LargeAttribute => {
            "A backup loses extended attributes and does not notice."
        }
        Property::FinderTags => "Tags and colours of files are gone after a copy, and no program notices.",
        Property::FinderInfo => "Labels and hidden extensions of Mac files are gone after a copy.",
        Property::ResourceFork => "Old Mac fonts and documents lose their content without an error.",
        Property::AccessControlList => "A backup restores files that other users may, or may not, read.",
        Property::ComposedName | Property::DecomposedName => {
            "A sync program may treat a file with an accent as new, and copy it again or delete it."
        }
        Property::NormalizationPair => "Of two files with the same visible name, a copy keeps only one.",
        Property::CasePair => {
            "A Git checkout of Linux sources, or a backup of Linux, loses one of two files such as README and readme."
        }
        Property::TrailingDot | Property::TrailingSpace => {
            "A backup finds such a file under another name, and may copy it again each time."
        }
        Property::Colon
        | Property::Backslash
        | Property::QuestionMark
        | Property::Asterisk
        | Property::QuotationMark
        | Property::AngleBrackets
        | Property::VerticalBar => {
            "Files with this character are renamed: a backup does not find them under the original name."
        }
        Property::LongName | Property::WideName => "A backup cuts long names, and may mix up two files.",
        Property::LongPath => "A backup of deep folders loses the most deeply nested files.",
        Property::HardLink => "Backups that link unchanged files need the full space for each copy.",
        Property::SymbolicLink => {
            "A Git checkout or a bundle such as an app gets copies in place of links, and may not start."
        }
        Property::SparseFile => {
            "Disk images and virtual machines take their full size, in a Time Machine bundle too."
        }
        Property::Preallocation => "A program that reserved space can still run out of it.",
        Property::LockWithinMount | Property::LockAcrossMounts => {
            "Two programs may write a photo library or a database at the same time, and damage it."
        }
        Property::RenameOverOpen => {
            "Saving a document that is open elsewhere may lose the old or the new version."
        }
        Property::DeleteWhileOpen => "A program may lose its temporary file while it uses it.",
        Property::MemoryMap => "Databases that map their files, such as a photo library's, may lose changes.",
        Property::ExclusiveCreate => "Lock files do not protect: Git may write twice at once.",
        Property::LargeFolder => "Listings of a large photo folder are incomplete.",
        Property::LargeFile => "Videos and disk images above 4 GiB are damaged.",
    }
}

/// Returns the meaning of a property that is refused with an error.
fn refused(property: Property) -> &'static str {
    match property {
        Property::Permissions => "A backup reports errors, or restores all files with the same permissions.",
        Property::ModificationTime => "A backup cannot keep times, and copies every file again each time.",
        Property::BirthTime => "A copy shows the day on which it was made as its creation time.",
        Property::TinyAttribute => "A backup with extended attributes (`rsync -X`) reports errors.",
        Property::SmallAttribute | Property::LargeAttribute => {
            "A backup reports an error for files with large attributes, such as icons of folders."
        }
        Property::FinderTags => "A Mac writes tags to `._` files instead, which other systems show.",
        Property::FinderInfo => "A Mac writes labels to `._` files instead, which other systems show.",
        Property::ResourceFork => {
            "A Mac writes the fork to a `._` file, which must not be separated from its file."
        }
        Property::AccessControlList => "A backup with access control lists (`rsync -A`) reports errors.",
        Property::ComposedName | Property::DecomposedName => "Files with an accent cannot be copied.",
        Property::NormalizationPair => {
            "Of two files with the same visible name, the second one is not copied."
        }
        Property::CasePair => "A Git checkout stops at the second of two names such as README and readme.",
        Property::TrailingDot
        | Property::TrailingSpace
        | Property::Colon
        | Property::Backslash
        | Property::QuestionMark
        | Property::Asterisk
        | Property::QuotationMark
        | Property::AngleBrackets
        | Property::VerticalBar => "A backup stops, or reports an error, at each file with such a name.",
        Property::LongName => "A backup reports an error at each long name.",
        Property::WideName => {
            "Long names in languages with wide letters, which a Mac or Windows allows, cannot be copied."
        }
        Property::LongPath => "A backup reports errors for deep folders.",
        Property::HardLink => {
            "Backups that link unchanged files (`rsync --link-dest`) fail or copy everything."
        }
        Property::SymbolicLink => "A Git checkout or an app with links cannot be copied whole.",
        Property::SparseFile => "Disk images cannot be stored.",
        Property::Preallocation => "Programs that reserve space write zeros instead, which takes longer.",
        Property::LockWithinMount | Property::LockAcrossMounts => {
            "Databases and photo libraries refuse to open, or open without protection."
        }
        Property::RenameOverOpen => "Saving a document that is open elsewhere fails.",
        Property::DeleteWhileOpen => "Programs leave temporary files behind.",
        Property::MemoryMap => "Some databases and Git cannot work in this folder.",
        Property::ExclusiveCreate => "Lock files cannot be created: Git does not work in this folder.",
        Property::LargeFolder => "A folder with many photos cannot be filled.",
        Property::LargeFile => "Videos and disk images above 4 GiB cannot be stored.",
    }
}
