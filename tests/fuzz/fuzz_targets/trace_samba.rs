//! Fuzzes the importer of the log of vfs_full_audit: any trace becomes a recording that reads back.
#![no_main]

use longhaul_recording::{Recording, Scrubber, Source, import, importer};

libfuzzer_sys::fuzz_target!(|trace: &[u8]| {
    let folder = b"/share";
    let mut importer = importer(Source::SambaAudit, folder).expect("it is a trace of text");
    let mut scrubber = Scrubber::new(folder);
    import(importer.as_mut(), &mut &*trace, &mut scrubber).expect("reading memory");
    let recording = scrubber.finish(Source::SambaAudit, None);
    assert_eq!(Recording::from_bytes(&recording.to_bytes()), Ok(recording));
});
