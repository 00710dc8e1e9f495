//! Fuzzes the importer of the logs of Synology and QNAP: any trace becomes a recording that reads back.
#![no_main]

use longhaul_recording::{
    Note, Recording, Scrubber, Source, TraceAction, TraceEvent, TraceSink, import, importer,
};

/// Length of the start of each file whose transfers are recorded: a line can stand for 64 GiB in 65,536 transfers, so that a second
/// goes into storing a few lines.
const START: u64 = 16 << 20;

/// Passes on everything but the transfers behind the start of a file.
struct Starts<'a>(&'a mut Scrubber);

impl TraceSink for Starts<'_> {
    fn event(&mut self, event: &TraceEvent<'_>) {
        let is_behind = matches!(event.action,
            TraceAction::Read { offset: Some(offset), .. } | TraceAction::Write { offset: Some(offset), .. } if offset >= START);
        if !is_behind {
            self.0.event(event);
        }
    }

    fn note(&mut self, note: Note<'_>) {
        self.0.note(note);
    }
}

libfuzzer_sys::fuzz_target!(|trace: &[u8]| {
    let folder = b"/share";
    let mut importer = importer(Source::Synology, folder).expect("it is a trace of text");
    let mut scrubber = Scrubber::new(folder);
    import(importer.as_mut(), &mut &*trace, &mut Starts(&mut scrubber)).expect("reading memory");
    let recording = scrubber.finish(Source::Synology, None);
    assert_eq!(Recording::from_bytes(&recording.to_bytes()), Ok(recording));
});
