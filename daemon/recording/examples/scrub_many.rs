//! Measures the import of a long trace: `cargo run --release -p longhaul-recording --example scrub_many -- 10000000`.
//!
//! It writes lines of strace for a person who browses 50,000 photos in 500 folders, imports and scrubs them, encodes the
//! recording and prints time, peak memory and size.

use std::time::Instant;

use longhaul_recording::{Importer, Recording, Scrubber, Source, StraceImporter};

/// Number of operations for each photo: attributes, open, attributes, three reads, close, a name that does not exist.
const PER_PHOTO: u64 = 8;
const PHOTOS: u64 = 50_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let operations: u64 = std::env::args().nth(1).unwrap_or_else(|| "300000".into()).parse()?;
    let started = Instant::now();
    let recording = import(operations);
    let bytes = recording.to_bytes();
    let seconds = started.elapsed().as_secs_f64();
    println!("{} operations: {seconds:.1} s, {} bytes", recording.operations.len(), bytes.len());
    let status = std::fs::read_to_string("/proc/self/status")?;
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default());
    Ok(())
}

fn import(operations: u64) -> Recording {
    let mut scrubber = Scrubber::new(b"/mnt/nas");
    let mut importer = StraceImporter::new(None);
    let mut now = 1_764_144_000_000_000u64;
    for index in 0..operations.div_ceil(PER_PHOTO) {
        for line in lines(index) {
            // Pauses of 20 to 4,000 us that look random.
            now += 20 + index.wrapping_mul(2_654_435_761) % 4000;
            let line = format!("77 {}.{:06} {line} <0.{:06}>", now / 1_000_000, now % 1_000_000, now % 3000);
            importer.line(line.as_bytes(), &mut scrubber);
        }
    }
    importer.end(&mut scrubber);
    scrubber.finish(Source::Strace, None)
}

fn lines(index: u64) -> [String; PER_PHOTO as usize] {
    let photo = index.wrapping_mul(7919) % PHOTOS;
    let path = format!("/mnt/nas/album {}/IMG_{photo:06}.jpg", photo % 500);
    let size = 200_000 + photo.wrapping_mul(48_271) % 90_000;
    let last = size - 2 * 98_304;
    [
        format!(
            "newfstatat(AT_FDCWD</mnt>, \"{path}\", {{st_mode=S_IFREG|0644, st_size={size}, ...}}, 0) = 0"
        ),
        format!("openat(AT_FDCWD</mnt>, \"{path}\", O_RDONLY|O_CLOEXEC) = 5<{path}>"),
        format!("fstat(5<{path}>, {{st_mode=S_IFREG|0644, st_size={size}, ...}}) = 0"),
        format!("read(5<{path}>, \"\\377\\330\\377\\340\"..., 98304) = 98304"),
        format!("read(5<{path}>, \"\\10\"..., 98304) = 98304"),
        format!("read(5<{path}>, \"\\10\"..., 98304) = {last}"),
        format!("close(5<{path}>) = 0"),
        format!(
            "access(\"/mnt/nas/album {}/._IMG_{photo:06}.jpg\", F_OK) = -1 ENOENT (No such file)",
            photo % 500
        ),
    ]
}
