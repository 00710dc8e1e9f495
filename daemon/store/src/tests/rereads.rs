//! Second readings, from which it is said whether a client caches.

use longhaul_measure::model::{CacheState, Outcome, Protocol, Run};

use super::{Place, new_round, samples, target};

#[test]
fn second_readings_of_the_newest_epoch_are_found_with_what_crossed() {
    let place = Place::new();
    let writer = place.writer();
    let round = writer.begin_round(new_round()).unwrap();
    let run = |slot| samples::run(round, slot);
    let renamed = Run { protocol: Some(Protocol::Afp), ..run(0) };
    let failed = Run { outcome: Outcome::Error, ..run(2) };
    for run in [renamed, run(1), failed] {
        writer.add_run(&target(), &run).unwrap();
    }
    let found = place.reader().rereads().unwrap();
    let stored = &place.runs()[1];
    let warm = stored.run.phases.iter().find(|phase| phase.cache == CacheState::Warm).unwrap();
    assert_eq!(found.len(), 1, "not of an older epoch, a failed run or a cold phase: {found:?}");
    assert_eq!((found[0].epoch, Some(&found[0].wire)), (stored.epoch, warm.wire.as_ref()));
    assert_eq!((found[0].bytes_read, found[0].files), (warm.bytes_read, warm.files_opened()));
}
