//! Kinds of traces by their first lines.

use super::Importer;
use super::eslogger::EsloggerImporter;
use super::fs_usage::FsUsageImporter;
use super::nas_log::NasLogImporter;
use super::samba::SambaAuditImporter;
use super::strace::StraceImporter;
use crate::Source;

/// Recognizes a trace by its beginning, of which a few kilobytes are enough; `None` if it is none of those that longhaul reads.
pub fn detect(beginning: &[u8]) -> Option<Source> {
    let text = String::from_utf8_lossy(beginning);
    text.lines().take(50).find_map(source_of_line)
}

fn source_of_line(line: &str) -> Option<Source> {
    let first = line.trim_start();
    let lower = first.to_lowercase();
    let is_syslog_of = |marks: &[&str]| marks.iter().any(|mark| line.contains(mark));
    match () {
        () if first.starts_with('{') && line.contains("\"event\"") => Some(Source::Eslogger),
        () if line.contains("smbd_audit") || line.contains("vfs_full_audit.c") => Some(Source::SambaAudit),
        () if is_syslog_of(&["conn log: ", "qulogd"]) || lower.contains("accessed resources") => {
            Some(Source::Qnap)
        }
        () if is_syslog_of(&["WinFileService Event: ", "FileStation Event: "]) => Some(Source::Synology),
        () if lower.contains("event") && lower.contains("file") && lower.contains(',') => {
            Some(Source::Synology)
        }
        () if is_fs_usage(first) => Some(Source::FsUsage),
        () if is_strace(first) => Some(Source::Strace),
        () => None,
    }
}

/// `10:15:30.000400  stat64   /path   0.000400   Finder.81001`
fn is_fs_usage(line: &str) -> bool {
    let time = line.split(' ').next().unwrap_or_default();
    let has_time = time.len() == 15 && time.split(':').count() == 3 && time.contains('.');
    has_time && !line.contains(") = ") && line[time.len()..].starts_with("  ")
}

/// `1234 1764144000.123456 close(3) = 0`
fn is_strace(line: &str) -> bool {
    line.contains(") = ") || line.contains("<unfinished ...>") || line.contains(" resumed>")
}

/// Returns the importer of a kind of trace; `None` for recordings of the pass-through file system, which are no text. `folder` is
/// the recorded folder: relative paths belong to it. Paths in the logs of Synology and QNAP begin with the name of a share, which is
/// the last part of `folder`.
pub fn importer(source: Source, folder: &[u8]) -> Option<Box<dyn Importer>> {
    Some(match source {
        Source::Strace => Box::new(StraceImporter::new(Some(folder))),
        Source::PassThrough => return None,
        Source::FsUsage => Box::new(FsUsageImporter::default()),
        Source::Eslogger => Box::new(EsloggerImporter::default()),
        Source::SambaAudit => Box::new(SambaAuditImporter::new(folder)),
        Source::Synology | Source::Qnap => Box::new(NasLogImporter::new(parent(folder))),
    })
}

/// Returns the folder that contains `folder`, without a slash at the end.
fn parent(folder: &[u8]) -> &[u8] {
    let folder = folder.strip_suffix(b"/").unwrap_or(folder);
    &folder[..folder.iter().rposition(|byte| *byte == b'/').unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixtures_are_recognized() {
        let cases: [(&[u8], Source); 7] = [
            (include_bytes!("../../tests/fixtures/strace/shell.txt"), Source::Strace),
            (include_bytes!("../../tests/fixtures/fs_usage.txt"), Source::FsUsage),
            (include_bytes!("../../tests/fixtures/eslogger.jsonl"), Source::Eslogger),
            (include_bytes!("../../tests/fixtures/samba-full-audit.log"), Source::SambaAudit),
            (include_bytes!("../../tests/fixtures/synology.log"), Source::Synology),
            (include_bytes!("../../tests/fixtures/qnap.log"), Source::Qnap),
            (include_bytes!("../../tests/fixtures/qnap.csv"), Source::Qnap),
        ];
        for (beginning, source) in cases {
            assert_eq!(detect(beginning), Some(source));
        }
        assert_eq!(detect(b"Dear Sir or Madam,\n"), None);
    }

    #[test]
    fn share_of_a_log_is_the_last_part_of_the_folder() {
        let log: &[u8] = include_bytes!("../../tests/fixtures/synology.log");
        for folder in ["/Volumes/photos", "/Volumes/photos/", "/photos"] {
            let mut importer = importer(Source::Synology, folder.as_bytes()).unwrap();
            let mut scrubber = crate::Scrubber::new(folder.as_bytes());
            crate::import::import(importer.as_mut(), &mut &*log, &mut scrubber).unwrap();
            let account = scrubber.finish(Source::Synology, None).account;
            assert_eq!((account.used, account.outside), (10, 0), "{folder}");
        }
    }
}
