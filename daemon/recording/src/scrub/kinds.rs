//! Kinds of files by the extension of their names.

use crate::FileKind;

/// Extensions in lower case, by kind.
const EXTENSIONS: [(FileKind, &str); 8] = [
    (
        FileKind::Image,
        "jpg jpeg png gif heic heif tif tiff webp bmp svg psd psb ai dng cr2 cr3 nef arw raf orf rw2 xmp thm",
    ),
    (FileKind::Video, "mp4 mov m4v mkv avi webm mpg mpeg mts m2ts wmv prproj fcpbundle"),
    (FileKind::Audio, "mp3 m4a aac flac wav aif aiff ogg opus wma"),
    (
        FileKind::Document,
        "pdf doc docx xls xlsx ppt pptx odt ods odp pages numbers key txt md rtf csv html htm epub tex",
    ),
    (
        FileKind::Source,
        "c h cc cpp hpp rs go py js ts jsx tsx java kt swift m mm rb php pl sh css scss json toml yaml yml xml lua cs sql o a so rlib class pyc",
    ),
    (
        FileKind::Archive,
        "zip gz tgz bz2 xz zst tar 7z rar dmg iso img vmdk vdi qcow2 sparsebundle pack idx jar deb",
    ),
    (FileKind::Database, "sqlite sqlite3 db db3 lrcat lrdata photoslibrary mdb accdb wal shm journal"),
    (FileKind::Temporary, "tmp temp part partial crdownload download lock lck swp bak"),
];

/// Returns the kind of file that a name stands for. Only the kind is kept, not the extension.
pub(super) fn kind_of(name: &[u8]) -> FileKind {
    if name.ends_with(b"~") || name.starts_with(b"~$") || name.starts_with(b".~") {
        return FileKind::Temporary;
    }
    // Journals of SQLite have a suffix after the extension: `catalogue.db-wal`.
    let extension = name.rsplit(|byte| matches!(byte, b'.' | b'-')).next().unwrap_or_default();
    if extension.len() == name.len() || extension.is_empty() || extension.len() > 16 {
        return FileKind::Other;
    }
    let lower = extension.to_ascii_lowercase();
    let has = |list: &str| list.split(' ').any(|known| known.as_bytes() == lower);
    EXTENSIONS.iter().find(|(_, list)| has(list)).map_or(FileKind::Other, |(kind, _)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extension_decides_the_kind() {
        for (name, kind) in [
            ("IMG_0001.JPG", FileKind::Image),
            ("holiday.mov", FileKind::Video),
            ("catalogue.db-journal", FileKind::Database),
            ("report.docx~", FileKind::Temporary),
            ("~$report.docx", FileKind::Temporary),
            ("Makefile", FileKind::Other),
            ("jpg", FileKind::Other),
            ("name.", FileKind::Other),
            ("main.rs", FileKind::Source),
        ] {
            assert_eq!(kind_of(name.as_bytes()), kind, "{name}");
        }
    }
}
