//! The properties of files in words.

use longhaul_model::Property;

/// Returns a property in a few words, as a row of the matrix names it.
pub fn property_words(property: Property) -> &'static str {
    match property {
        Property::Permissions => "permission bits",
        Property::ModificationTime => "modification time",
        Property::BirthTime => "creation time",
        Property::TinyAttribute => "extended attribute, 1 B",
        Property::SmallAttribute => "extended attribute, 4 KiB",
        Property::LargeAttribute => "extended attribute, 64 KiB",
        Property::FinderTags => "Finder tags",
        Property::FinderInfo => "Finder info",
        Property::ResourceFork => "resource fork",
        Property::AccessControlList => "access control list",
        Property::ComposedName => "composed letter (NFC) in a name",
        Property::DecomposedName => "decomposed letter (NFD) in a name",
        Property::NormalizationPair => "names that differ in normalization",
        Property::CasePair => "names that differ in case",
        Property::TrailingDot => "dot at the end of a name",
        Property::TrailingSpace => "space at the end of a name",
        Property::Colon => "colon in a name",
        Property::Backslash => "backslash in a name",
        Property::QuestionMark => "question mark in a name",
        Property::Asterisk => "asterisk in a name",
        Property::QuotationMark => "quotation mark in a name",
        Property::AngleBrackets => "< and > in a name",
        Property::VerticalBar => "vertical bar in a name",
        Property::LongName => "name of 255 bytes",
        Property::WideName => "name of 255 UTF-16 units",
        Property::LongPath => "path above 1,024 bytes",
        Property::HardLink => "hard link",
        Property::SymbolicLink => "symbolic link",
        Property::SparseFile => "sparse file",
        Property::Preallocation => "preallocated space",
        Property::LockWithinMount => "lock within this mount",
        Property::LockAcrossMounts => "lock across mounts",
        Property::RenameOverOpen => "rename over an open file",
        Property::DeleteWhileOpen => "delete while open",
        Property::MemoryMap => "write through mapped memory",
        Property::ExclusiveCreate => "exclusive creation",
        Property::LargeFolder => "folder with many names",
        Property::LargeFile => "file above 4 GiB",
    }
}
