use super::{MAX_THREADS, StraceImporter};
use crate::import::testing::Written;
use crate::import::whole_files::MAX_OPEN;
use crate::import::{Importer, import};

fn run(lines: &[&str]) -> Written {
    let mut written = Written::default();
    let mut importer = StraceImporter::new(Some(b"/share"));
    import(&mut importer, &mut lines.join("\n").as_bytes(), &mut written).unwrap();
    written
}

#[test]
fn each_call_becomes_its_event() {
    for (line, event) in [
        (
            r#"stat("a", {st_mode=S_IFREG|0644, st_size=5, ...}) = 0"#,
            "/share/a Attributes { found: Some(File(5)) } Done",
        ),
        (
            r#"access("/share/a", R_OK) = -1 ENOENT (No such file or directory)"#,
            "/share/a Attributes { found: None } NotFound",
        ),
        (
            r#"statx(AT_FDCWD</s>, "d", AT_STATX_SYNC_AS_STAT, STATX_ALL, {stx_mask=STATX_ALL, stx_mode=S_IFDIR|0755, stx_size=9}) = 0"#,
            "/s/d Attributes { found: Some(Folder) } Done",
        ),
        (
            r#"statx(AT_FDCWD</s>, "d", AT_SYMLINK_NOFOLLOW, STATX_MODE|STATX_SIZE, {stx_mask=STATX_BASIC_STATS, stx_mode=S_IFREG|0644, stx_size=9}) = 0"#,
            "/s/d AttributesButAccessTime { found: Some(File(9)) } Done",
        ),
        (r#"mkdir("d", 0777) = -1 EEXIST (File exists)"#, "/share/d CreateFolder {} Exists"),
        (r#"rmdir("d") = 0"#, "/share/d RemoveFolder {} Done"),
        (r#"unlinkat(AT_FDCWD, "d", AT_REMOVEDIR) = 0"#, "/share/d RemoveFolder {} Done"),
        (r#"unlinkat(5</s>, "f", 0) = 0"#, "/s/f Remove {} Done"),
        (r#"rename("a", "../b") = 0"#, "/share/a -> /b Rename { from: [], to: [] } Done"),
        (
            r#"linkat(AT_FDCWD, "a", AT_FDCWD, "b", 0) = 0"#,
            "/share/a -> /share/b HardLink { from: [], to: [] } Done",
        ),
        (r#"symlink("secret", "l") = 0"#, "/share/l SymbolicLink {} Done"),
        (r#"readlink("l", "secret", 100) = 6"#, "/share/l ReadLink {} Done"),
        (r#"utimensat(AT_FDCWD, "a", NULL, 0) = 0"#, "/share/a SetAttributes {} Done"),
        (r#"fchmod(7</s/x>, 0644) = 0"#, "/s/x SetAttributes {} Done"),
        (r#"truncate("a", 12) = 0"#, "/share/a SetLength { length: 12 } Done"),
        (
            r#"lgetxattr("a", "user.x", NULL, 0) = -1 ENODATA (No data available)"#,
            "/share/a ReadExtendedAttribute {} Failed",
        ),
        (r#"setxattr("a", "user.x", "abc", 3, 0) = 0"#, "/share/a WriteExtendedAttribute { length: 3 } Done"),
        (r#"statfs("/share", {f_type=NFS_SUPER_MAGIC}) = 0"#, "/share FreeSpace {} Done"),
    ] {
        let written = run(&[line]);
        let text = |text: &str| text.replace("{ path: [] }", "{}").replace("{ }", "{}");
        assert_eq!(written.events.iter().map(|event| text(event)).collect::<Vec<_>>(), [event], "{line}");
    }
}

#[test]
fn times_of_day_go_on_after_midnight() {
    let written = run(&[
        r#"23:59:59.500000 openat(AT_FDCWD, "a", O_RDONLY) = 3</share/a> <0.1>"#,
        r#"00:00:00.500000 close(3</share/a>) = 0 <0.1>"#,
        r#"23:59:59.900000 stat("b", {st_mode=S_IFREG|0644, st_size=5, ...}) = 0 <0.1>"#,
        r#"00:00:00.700000 stat("a", {st_mode=S_IFREG|0644, st_size=5, ...}) = 0 <0.1>"#,
    ]);
    let began: Vec<u64> = written.began.iter().map(|began| began.as_millis() as u64 - 86_399_500).collect();
    assert_eq!(began, [0, 1000, 400, 1200]);
}

#[test]
fn positions_follow_reads_writes_and_seeks() {
    let written = run(&[
        r#"openat(AT_FDCWD, "x", O_RDWR|O_CREAT, 0666) = 3"#,
        r#"read(3, "abc"..., 100) = 60"#,
        r#"pread64(3, ""..., 10, 4096) = 10"#,
        r#"readv(3, [{iov_base="a", iov_len=5}, {iov_base="", iov_len=7}], 2) = 5"#,
        r#"lseek(3, 0, SEEK_SET) = 0"#,
        r#"write(3, "abc", 3) = 3"#,
        r#"pwritev2(3, [{iov_base="a", iov_len=1}], 1, 77, 0) = 1"#,
        r#"utimensat(3, NULL, [UTIME_OMIT, {tv_sec=1, tv_nsec=0}], 0) = 0"#,
        r#"close(3) = 0"#,
    ]);
    let transfers = &written.events[1..];
    assert_eq!(
        transfers,
        [
            "Read { handle: 1, offset: Some(0), length: 100, read: 60 } Done",
            "Read { handle: 1, offset: Some(4096), length: 10, read: 10 } Done",
            "Read { handle: 1, offset: Some(60), length: 12, read: 5 } Done",
            "Write { handle: 1, offset: Some(0), length: 3 } Done",
            "Write { handle: 1, offset: Some(77), length: 1 } Done",
            "SetHandleAttributes { handle: 1 } Done",
            "Close { handle: 1 } Done",
        ]
    );
}

#[test]
fn copies_on_the_server_move_both_positions() {
    let written = run(&[
        r#"open("a", O_RDONLY) = 3"#,
        r#"open("b", O_WRONLY|O_CREAT) = 4"#,
        "copy_file_range(3, NULL, 4, NULL, 9223372035781033984, 0) = 700",
        "copy_file_range(3, [5], 4, [77] => [78], 1, 0) = 1",
        "copy_file_range(3, NULL, 4, NULL, 9223372035781033984, 0) = 0",
        "copy_file_range(3, NULL, 4, NULL, 9, 0) = -1 EXDEV (Invalid cross-device link)",
        "ioctl(4, BTRFS_IOC_CLONE or FICLONE, 3) = -1 EOPNOTSUPP (Operation not supported)",
        "ioctl(4, BTRFS_IOC_CLONE or FICLONE, 7) = -1 EXDEV (Invalid cross-device link)",
    ]);
    assert_eq!(
        written.events[2..],
        [
            "Copy { from: 1, to: 2, read_at: Some(0), write_at: Some(0), length: 700 } Done",
            "Copy { from: 1, to: 2, read_at: Some(5), write_at: Some(77), length: 1 } Done",
            "Copy { from: 1, to: 2, read_at: Some(700), write_at: Some(700), length: 0 } Done",
            "Copy { from: 1, to: 2, read_at: Some(0), write_at: Some(0), length: 0 } Failed",
        ]
    );
}

#[test]
fn name_in_an_open_folder_is_told_from_a_path() {
    let written = run(&[
        r#"openat(AT_FDCWD, "d", O_RDONLY|O_DIRECTORY) = 3"#,
        r#"openat(AT_FDCWD, "e", O_PATH|O_DIRECTORY) = 4"#,
        r#"fcntl(3, F_DUPFD_CLOEXEC, 3) = 5"#,
        r#"newfstatat(5, "a", {st_mode=S_IFREG|0644, st_size=5, ...}, 0) = 0"#,
        r#"openat(3, "new", O_WRONLY|O_CREAT, 0666) = 6"#,
        r#"renameat(3, "new", 5, "old") = 0"#,
        r#"renameat2(3, "old", AT_FDCWD, "old", RENAME_NOREPLACE) = 0"#,
        r#"unlinkat(3, "b/c", 0) = 0"#,
        r#"unlinkat(3, "..", AT_REMOVEDIR) = -1 ENOTEMPTY (Directory not empty)"#,
        r#"unlinkat(4, "f", 0) = 0"#,
        r#"unlinkat(AT_FDCWD, "d/b", 0) = 0"#,
        r#"write(6, "d", 1) = 1"#,
    ]);
    let mark = |event: &String| event.strip_suffix(" below an open folder")?.chars().next_back();
    let marks: String = written.events.iter().map(|event| mark(event).unwrap_or('-')).collect();
    assert_eq!(marks, "--111-2-1--", "{:?}", written.events);
}

#[test]
fn file_is_closed_with_its_last_descriptor() {
    let written = run(&[
        r#"1 open("x", O_RDONLY) = 3"#,
        r#"1 dup2(3, 9) = 9"#,
        r#"1 close(3) = 0"#,
        r#"1 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD) = 2"#,
        r#"1 close(9) = 0"#,
        r#"2 read(9, "", 5) = 0"#,
        r#"2 +++ exited with 0 +++"#,
    ]);
    let rest: Vec<&str> = written.events.iter().skip(1).map(String::as_str).collect();
    assert_eq!(
        rest,
        ["Read { handle: 1, offset: Some(0), length: 5, read: 0 } Done", "Close { handle: 1 } Done"]
    );
}

#[test]
fn execution_closes_what_it_should() {
    let written = run(&[
        r#"open("x", O_RDONLY|O_CLOEXEC) = 3"#,
        r#"open("y", O_RDONLY) = 4"#,
        r#"execve("/bin/true", ["true"], 0x7ffd /* 9 vars */) = 0"#,
        r#"close_range(3, 4294967295, 0) = 0"#,
    ]);
    assert_eq!(written.events[2..], ["Close { handle: 1 } Done", "Close { handle: 2 } Done"]);
    assert_eq!(written.notes, ["unknown execve /bin/true"]);
}

#[test]
fn output_without_a_file_is_understood() {
    let written = run(&[
        r#"openat(AT_FDCWD, "x", O_RDONLY) = 3"#,
        r#"clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLDstrace: Process 27820 attached"#,
        r#" <unfinished ...>"#,
        r#"[pid 27820] read(3, "", 5) = 0"#,
        r#"[pid 27817] <... clone resumed>, child_tidptr=0x7f85) = 27820"#,
        r#"[pid 27817] close(3) = 0"#,
        r#"[pid 27820] close(3) = 0"#,
    ]);
    assert_eq!(
        written.events[1..],
        ["Read { handle: 1, offset: Some(0), length: 5, read: 0 } Done", "Close { handle: 1 } Done"]
    );
    assert_eq!(written.notes, [""; 0]);
}

#[test]
fn threads_share_descriptors_and_folder() {
    let written = run(&[
        r#"1 1.0 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD} <unfinished ...>"#,
        r#"2 1.1 openat(AT_FDCWD, "x", O_RDONLY) = 3"#,
        r#"2 1.2 chdir("d") = 0"#,
        r#"1 1.3 <... clone3 resumed>) = 2"#,
        r#"1 1.4 read(3, "", 5) = 0"#,
        r#"1 1.5 unlink("y") = 0"#,
    ]);
    assert!(written.events[1].starts_with("Read { handle: 1"), "{:?}", written.events);
    assert!(written.events[2].starts_with("/share/d/y Remove"), "{:?}", written.events);
    assert_eq!(written.notes, [""; 0]);
}

#[test]
fn thread_that_executes_a_program_takes_over_the_process() {
    let written = run(&[
        r#"1 open("x", O_RDONLY) = 3"#,
        r#"1 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD) = 2"#,
        r#"2 execve("/bin/cat", ["cat"], 0x7ffd <unfinished ...>"#,
        r#"1 +++ superseded by execve in pid 2 +++"#,
        r#"1 <... execve resumed>) = 0"#,
        r#"1 read(3, "", 5) = 0"#,
    ]);
    assert_eq!(written.events[1..], ["Read { handle: 1, offset: Some(0), length: 5, read: 0 } Done"]);
    assert_eq!(written.notes, ["unknown execve /bin/cat"]);
}

#[test]
fn attributes_that_the_file_system_does_not_have_are_no_operations() {
    let written = run(&[
        r#"lgetxattr("tree", "security.selinux", 0x55, 255) = -1 EOPNOTSUPP (Operation not supported)"#,
        r#"getxattr("tree", "system.posix_acl_access", NULL, 0) = -1 EOPNOTSUPP (Operation not supported)"#,
    ]);
    assert_eq!((written.events, written.notes), (vec![], vec![]));
}

#[test]
fn end_of_a_call_without_its_name_is_left_out() {
    let written = run(&["1893  1795684245.282483 <... resumed>) = 0 <0.000098>"]);
    assert_eq!((written.events, written.notes), (vec![], vec![]));
}

#[test]
fn interleaved_calls_are_ordered_by_their_beginning() {
    let written = run(&[
        r#"1 1.0 mkdir("d", 0777 <unfinished ...>"#,
        r#"2 1.1 stat("e", {st_mode=S_IFREG|0644, st_size=5, ...}) = 0"#,
        r#"1 1.2 <... mkdir resumed>) = 0"#,
    ]);
    assert!(written.events[0].starts_with("/share/d CreateFolder"), "{:?}", written.events);
    assert!(written.events[1].starts_with("/share/e Attributes"), "{:?}", written.events);
}

#[test]
fn call_whose_end_is_never_shown_holds_nothing_back() {
    let begun = "1 fsync(9 <unfinished ...>";
    let lines = [begun, begun, r#"2 mkdir("/b", 0777) = 0"#, "1 <... fsync resumed>) = 0"];
    let (_, written) = kept(lines.into_iter().map(str::to_owned));
    assert_eq!(written.events, ["/b CreateFolder { } Done"]);
}

#[test]
fn file_that_was_open_before_is_opened_by_its_path() {
    let written = run(&[r#"read(5</share/x>, "", 10) = 4"#, r#"write(6<socket:[77]>, "", 10) = 10"#]);
    assert_eq!(written.notes, ["added /share/x"]);
    assert_eq!(written.events.len(), 2);
}

#[test]
fn path_only_descriptor_is_used_and_closed_like_others() {
    let written = run(&[
        r#"openat(AT_FDCWD, "d", O_RDONLY|O_NOFOLLOW|O_PATH|O_DIRECTORY) = 3"#,
        r#"newfstatat(3</share/d>, "", {st_mode=S_IFDIR|0755, st_size=9, ...}, AT_EMPTY_PATH) = 0"#,
        r#"fchmodat2(3</share/d>, "", 0700, AT_EMPTY_PATH) = 0"#,
        r#"close(3</share/d>) = 0"#,
        r#"openat(AT_FDCWD, "f", O_RDONLY|O_PATH|O_DIRECTORY) = -1 ENOTDIR (Not a directory)"#,
    ]);
    assert!(written.events[0].contains("access: PathOnly"), "{:?}", written.events);
    assert_eq!(
        written.events[1..],
        [
            "HandleAttributes { handle: 1, found: Some(Folder) } Done",
            "/share/d SetAttributes { } Done",
            "Close { handle: 1 } Done",
            "/share/f Attributes { found: None } Failed"
        ]
    );
}

/// `tar` sets the mode of a folder like this, because it may open nothing but its place in the tree.
#[test]
fn path_of_a_descriptor_below_proc_is_that_of_its_file() {
    let written = run(&[
        r#"openat(AT_FDCWD, "d", O_RDONLY|O_NOFOLLOW|O_PATH|O_DIRECTORY) = 3"#,
        r#"chmod("/proc/self/fd/3", 0700) = 0"#,
        r#"fchmodat(AT_FDCWD, "/dev/fd/3", 0700) = 0"#,
        r#"chmod("/proc/self/fd/3/f", 0700) = 0"#,
        r#"chmod("/proc/self/fd/7", 0700) = -1 ENOENT (No such file or directory)"#,
    ]);
    let places =
        ["/share/d", "/share/d", "/share/d/f"].map(|path| format!("{path} SetAttributes {{ }} Done"));
    assert_eq!(written.events[1..4], places);
    assert_eq!(written.events[4], "/proc/self/fd/7 SetAttributes { } NotFound", "nothing is known of it");
}

#[test]
fn what_is_not_understood_is_counted() {
    for (line, note) in [
        ("read(5, \"\", 10) = 4", "UnknownHandle"),
        ("openat(5, \"x\", O_RDONLY) = 6", "UnknownHandle"),
        ("openat(AT_FDCWD, \"x\", O_RDO", "Damaged"),
        ("<... read resumed>\"\", 5) = 0", "Damaged"),
        ("garbage", "Damaged"),
        ("fallocate(4</share/b>, 0, 0, 9) = 0", "unknown fallocate /share/b"),
        ("fallocate(4, 0, 0, 9) = 0", "UnknownHandle"),
        ("mmap(NULL, 9, PROT_READ, MAP_PRIVATE, 3</share/a>, 0) = 0x7f", "unknown mmap /share/a"),
        ("new_call(3</share/a>) = 0", "unknown other /share/a"),
        ("renameat2(AT_FDCWD, \"/a\", AT_FDCWD, \"/b\", RENAME_EXCHANGE) = 0", "unknown rename_exchange /a"),
    ] {
        assert_eq!(run(&[line]).notes, [note], "{line}");
    }
}

#[test]
fn calls_that_ask_no_file_system_are_no_events() {
    for line in [
        "mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f64e2c97000",
        "close(77) = -1 EBADF (Bad file descriptor)",
        "futex(0x7ffd, FUTEX_WAIT, 1, NULL) = ? ERESTARTSYS (To be restarted)",
        "exit_group(0) = ?",
        "write(1, \"hello\", 5) = 5",
        "--- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED} ---",
        "strace: Process 6000 attached",
    ] {
        let written = run(&[line]);
        assert!(written.events.is_empty() && written.notes.is_empty(), "{line}: {:?}", written.notes);
    }
}

#[test]
fn numbers_in_brackets_are_descriptors_of_pipes_only() {
    let written = run(&[
        r#"openat(AT_FDCWD, "x", O_RDONLY) = 16"#,
        r#"accept(4, {sa_family=AF_INET, sin_port=htons(5)}, [16]) = 6"#,
        r#"read(16, "", 5) = 0"#,
        r#"read(6, "", 5) = 0"#,
        r#"signalfd4(-1, [INT], 8, SFD_CLOEXEC) = 7"#,
        r#"read(7, "", 5) = 0"#,
        r#"pipe2([16, 17], O_CLOEXEC) = 0"#,
    ]);
    assert_eq!(
        written.events[1..],
        ["Read { handle: 1, offset: Some(0), length: 5, read: 0 } Done", "Close { handle: 1 } Done"]
    );
    assert_eq!(written.notes, [""; 0]);
}

#[test]
fn question_for_a_lock_is_no_lock() {
    let written = run(&[
        r#"openat(AT_FDCWD, "x", O_RDWR) = 3"#,
        r#"fcntl(3, F_GETLK, {l_type=F_UNLCK, l_whence=SEEK_SET, l_start=0, l_len=1}) = 0"#,
        r#"fcntl(3, F_SETLK, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=1}) = 0"#,
    ]);
    assert_eq!(written.events[1..], ["Lock { handle: 1 } Done"]);
    assert_eq!(written.notes, [""; 0]);
}

#[test]
fn names_of_folders_are_counted_without_dots() {
    let written = run(&[
        r#"openat(AT_FDCWD, ".", O_RDONLY|O_DIRECTORY) = 3"#,
        r#"getdents64(3, 0x55caea883210 /* 12 entries */, 32768) = 88"#,
        r#"getdents64(3, 0x55caea883210 /* 0 entries */, 32768) = 0"#,
    ]);
    assert_eq!(
        written.events[1..],
        ["List { handle: 1, entries: Some(10) } Done", "List { handle: 1, entries: Some(0) } Done"]
    );
}

#[test]
fn any_cut_or_shuffle_of_a_real_trace_ends_without_panic() {
    let trace: &[u8] = include_bytes!("../../../tests/fixtures/strace/shell.txt");
    let lines: Vec<&[u8]> = trace.split(|byte| *byte == b'\n').collect();
    for step in [1, 3, 7, lines.len() / 2] {
        let mut written = Written::default();
        let mut importer = StraceImporter::new(None);
        for index in 0..lines.len() {
            let line = lines[index * step % lines.len()];
            importer.line(&line[..line.len() - index % (line.len() + 1)], &mut written);
        }
        importer.end(&mut written);
        assert!(!written.notes.is_empty());
    }
}

/// Reads lines, and returns the importer with what it still keeps.
fn kept(lines: impl Iterator<Item = String>) -> (StraceImporter, Written) {
    let (mut importer, mut written) = (StraceImporter::new(Some(b"/share")), Written::default());
    lines.for_each(|line| importer.line(line.as_bytes(), &mut written));
    (importer, written)
}

#[test]
fn descriptors_of_all_processes_have_one_limit() {
    let opens = (3..2003).map(|number| format!(r#"1 openat(AT_FDCWD, "f{number}", O_RDONLY) = {number}"#));
    let forks = (10_000..12_000).map(|child| format!("1 fork() = {child}"));
    let (importer, written) = kept(opens.chain(forks));
    assert_eq!(importer.threads.len(), 2001);
    let kept = importer.descriptors.get();
    assert!((60_000..=MAX_OPEN).contains(&kept), "{kept}");
    assert_eq!(written.events.len(), 2000, "nothing was closed");
    drop(importer.threads);
    assert_eq!(importer.descriptors.get(), 0);
}

#[test]
fn openings_without_an_end_are_closed_at_the_limit() {
    let open = |number: usize| format!(r#"1 openat(AT_FDCWD, "a", O_RDONLY) = {number}"#);
    let (importer, written) = kept((3..MAX_OPEN + 4).map(open));
    assert_eq!(written.events.iter().filter(|event| event.starts_with("Close")).count(), MAX_OPEN);
    assert_eq!(importer.descriptors.get(), 1);
}

#[test]
fn threads_beyond_the_limit_are_not_followed() {
    let (importer, written) = kept((1..=MAX_THREADS + 1).map(|thread| format!("{thread} fsync(9) = 0")));
    assert_eq!(importer.threads.len(), MAX_THREADS);
    assert_eq!(written.notes.len(), MAX_THREADS + 1, "each call is counted as unknown");
}

#[test]
fn thread_beyond_the_limit_opens_nothing() {
    let followed = (1..=MAX_THREADS).map(|thread| format!("{thread} fsync(9) = 0"));
    let beyond = (0..2).map(|_| format!(r#"{} read(5</share/x>, "", 10) = 4"#, MAX_THREADS + 1));
    let (_, written) = kept(followed.chain(beyond));
    assert_eq!(written.events, [""; 0]);
    assert_eq!(written.notes[MAX_THREADS..], ["UnknownHandle", "UnknownHandle"]);
}

#[test]
fn folder_with_a_name_that_is_too_long_is_unknown() {
    let long = "x".repeat(5000);
    let change = format!(r#"chdir("/{long}") = 0"#);
    let written = run(&[&change, r#"mkdir("a", 0777) = 0"#, r#"mkdir("/b", 0777) = 0"#]);
    assert_eq!(written.events, ["/b CreateFolder { } Done"]);
    assert_eq!(written.notes, ["UnknownHandle"]);
}
