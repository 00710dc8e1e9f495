//! Parser for the output of `diskutil info -plist` (diskutil(8)).

/// Returns whether the disk is rotational, by the key `SolidState`; `None` if unknown, because some disks
/// lack the key.
pub fn diskutil_spins(output: &str) -> Option<bool> {
    let (_, value) = output.split_once("<key>SolidState</key>")?;
    match value.trim_start() {
        value if value.starts_with("<true/>") => Some(false),
        value if value.starts_with("<false/>") => Some(true),
        _ => None,
    }
}
