//! Nothing of a name, a content or an error's text gets into a recording.

use std::collections::HashSet;
use std::sync::LazyLock;

use longhaul_recording::{Recording, Scrubber, Source, StraceImporter, import, importer};

/// Number of hostile names.
const NAMES: u64 = 100_000;
/// Number of letters by which each name is recognized.
const LETTERS: usize = 10;

/// Parts around the letters: secrets, separators, format strings, control characters, other scripts.
const HOSTILE: [&str; 16] = [
    "password=",
    "%s%n%x",
    "{}{0:?}",
    "../../",
    "\\",
    "\"",
    "\n",
    "<",
    ">",
    " resumed>",
    "<unfinished ...>",
    ") = 3",
    "\u{202e}gnp",
    "日本語",
    "é\u{301}",
    "\u{0}",
];

/// A generator of numbers (xorshift64*): the names must be the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn letters(&mut self) -> String {
        (0..LETTERS).map(|_| char::from(b'a' + (self.next() >> 32) as u8 % 26)).collect()
    }

    fn hostile(&mut self) -> &'static str {
        HOSTILE[(self.next() >> 32) as usize % HOSTILE.len()]
    }
}

/// Quotes a name as strace does.
fn quoted(name: &str) -> String {
    let escape = |byte: u8| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        b'\n' => "\\n".to_owned(),
        b' '..=b'~' => char::from(byte).to_string(),
        other => format!("\\{other:03o}"),
    };
    name.bytes().map(escape).collect()
}

/// Returns lines with a name in each place in which strace shows names, contents or texts; some are damaged.
fn lines(name: &str, number: u64) -> String {
    let descriptor = quoted(name).replace('<', "\\74").replace('>', "\\76");
    let name = quoted(name);
    match number % 8 {
        0 => format!(
            "1 {number}.5 openat(AT_FDCWD</share>, \"{name}\", O_RDONLY) = 3</share/{descriptor}> <0.1>"
        ),
        1 => format!("1 {number}.5 rename(\"/share/{name}\", \"/share/d/{name}.jpg\") = 0"),
        2 => format!("1 {number}.5 lsetxattr(\"/share/x\", \"user.{name}\", \"{name}\", 3, 0) = 0"),
        3 => format!("1 {number}.5 write(3</share/{descriptor}>, \"{name}\"..., 100) = 100"),
        4 => format!(
            "1 {number}.5 {name}(3</share/{descriptor}>) = 0\n1 {number}.6 call(3</share/{descriptor}>) = 0"
        ),
        5 => format!("1 {number}.5 symlink(\"{name}\", \"/share/{name}\") = -1 E{name} ({name})"),
        6 => format!("{name} openat(AT_FDCWD</share>, \"{name}"),
        _ => format!("1 {number}.5 execve(\"/share/{name}\", [\"{name}\"], 0x7ff) = 0"),
    }
}

/// The result of [`hostile_recording`], which is expensive.
static HOSTILE_RECORDING: LazyLock<(HashSet<String>, Recording)> = LazyLock::new(hostile_recording);

/// Returns the letters of the hostile names, and the recording of a trace with these names.
fn hostile_recording() -> (HashSet<String>, Recording) {
    let mut words = HashSet::new();
    let mut numbers = Numbers(0x1234_5678_9abc_def1);
    let mut scrubber = Scrubber::new(b"/share");
    let mut importer = StraceImporter::new(None);
    for number in 0..NAMES {
        let word = numbers.letters();
        let text = lines(&format!("{}{word}{}", numbers.hostile(), numbers.hostile()), number);
        import(&mut importer, &mut text.as_bytes(), &mut scrubber).expect("reading memory");
        words.insert(word);
    }
    assert!(format!("{scrubber:?}").len() < 100, "the scrubber shows counts only");
    (words, scrubber.finish(Source::Strace, None))
}

fn shows_any(words: &HashSet<String>, bytes: &[u8]) -> bool {
    let is_word = |window: &[u8]| std::str::from_utf8(window).is_ok_and(|text| words.contains(text));
    bytes.windows(LETTERS).any(is_word)
}

#[test]
fn no_name_of_a_hundred_thousand_is_kept() {
    let (words, recording) = &*HOSTILE_RECORDING;
    assert_eq!(words.len() as u64, NAMES);
    assert!(recording.account.used > NAMES / 2, "{:?}", recording.account);
    let bytes = recording.to_bytes();
    assert!(!shows_any(words, &bytes), "in the stored file");
    // The stored columns are compressed; this is all that they hold.
    let read = Recording::from_bytes(&bytes).expect("just written");
    assert!(!shows_any(words, format!("{read:?}").as_bytes()), "in what the file holds");
}

#[test]
fn errors_show_nothing_of_a_file() {
    let (words, recording) = &*HOSTILE_RECORDING;
    let bytes = recording.to_bytes();
    for cut in [5, 25, 200, bytes.len() / 2] {
        let error = Recording::from_bytes(&bytes[..cut]).expect_err("it is cut");
        assert!(!shows_any(words, format!("{error} {error:?}").as_bytes()));
    }
}

#[test]
fn two_recordings_of_one_trace_are_equal() {
    // Hashes under a random key must not decide the order of anything.
    let (_, again) = hostile_recording();
    assert_eq!(again.to_bytes(), HOSTILE_RECORDING.1.to_bytes());
}

/// Returns lines of other traces with a name in each place that shows one.
fn line_of(source: Source, name: &str) -> String {
    let json = serde_json::to_string(name).expect("text");
    let name = name.replace('\n', "");
    match source {
        Source::FsUsage => format!("10:15:30.000400  stat64    /share/{name}   0.000400   {name}.81001"),
        Source::Eslogger => {
            let path = json.replacen('"', "\"/share/", 1);
            format!(
                "{{\"time\":\"2026-11-20T10:00:01Z\",\"process\":{{\"audit_token\":{{\"pid\":5}}}},\"event\":{{\"unlink\":{{\"target\":{{\"path\":{path}}},\"x\":{json}}}}}}}"
            )
        }
        Source::SambaAudit => {
            format!("Nov 20 09:15:23 {name} smbd_audit: {name}|1.2.3.4|unlinkat|ok|/share/{name}")
        }
        Source::Synology => format!(
            "Mar 11 17:30:01 {name} WinFileService Event: read, Path: /share/{name}, File/Folder: File, Size: 6.00 KB, User: {name}, IP: 1.2.3.4"
        ),
        _ => format!(
            "Sep  6 10:00:01 {name} qulogd[1]: conn log: Users: {name}, Source IP: 1.2.3.4, Computer name: {name}, Connection type: SAMBA, Accessed resources: share/{name}, Action: Delete"
        ),
    }
}

#[test]
fn no_name_of_any_other_trace_is_kept() {
    for source in [Source::FsUsage, Source::Eslogger, Source::SambaAudit, Source::Synology, Source::Qnap] {
        let mut numbers = Numbers(0x0dd_ba11);
        let mut words = HashSet::new();
        let mut scrubber = Scrubber::new(b"/share");
        let mut importer = importer(source, b"/share").expect("it is a trace of text");
        for _ in 0..NAMES / 50 {
            let word = numbers.letters();
            let line = line_of(source, &format!("{}{word}{}", numbers.hostile(), numbers.hostile()));
            import(importer.as_mut(), &mut line.as_bytes(), &mut scrubber).expect("reading memory");
            words.insert(word);
        }
        let recording = scrubber.finish(source, None);
        assert!(recording.account.used > NAMES / 100, "{source:?}: {:?}", recording.account);
        let read = Recording::from_bytes(&recording.to_bytes()).expect("just written");
        assert!(!shows_any(&words, format!("{read:?}").as_bytes()), "{source:?}");
    }
}
