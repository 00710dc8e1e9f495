//! Tests of rereads: warm phases with wire counters, from which client caching is detected.

use longhaul_model::{CacheState, Outcome, Protocol, Run};

use super::{TestDb, samples, target};

#[test]
fn rereads_are_warm_phases_of_the_newest_epoch() {
    let (db, writer, round) = TestDb::with_round();
    let run = |slot| samples::run(round, slot);
    let older_epoch = Run { protocol: Some(Protocol::Afp), ..run(0) };
    let failed = Run { outcome: Outcome::Error, ..run(2) };
    for run in [older_epoch, run(1), failed] {
        writer.add_run(&target(), &run, &[]).unwrap();
    }
    let found = db.reader().rereads().unwrap();
    let stored = &db.runs()[1];
    let warm = stored.run.phases.iter().find(|phase| phase.cache == CacheState::Warm).unwrap();
    assert_eq!(found.len(), 1, "an older epoch, failed runs and cold phases are excluded: {found:?}");
    assert_eq!((found[0].epoch, Some(&found[0].wire)), (stored.epoch, warm.wire.as_ref()));
    assert_eq!((found[0].bytes_read, found[0].files), (warm.bytes_read, warm.files_opened()));
}
