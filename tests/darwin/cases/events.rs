//! Watch on the mount table, with `EVFILT_FS`.

use std::time::Duration;

use longhaul_darwin::kernel::{Call, reset, with};
use longhaul_darwin::platform::macos_host::MountWatch;
use longhaul_darwin::platform::types::MountEvent;
use longhaul_darwin::{EINTR, EMFILE, ENOMEM};

/// VQ_LOWDISK, VQ_MOUNT, VQ_UNMOUNT and VQ_DEAD (xnu bsd/sys/mount.h:506-509).
const LOW_DISK: u32 = 0x4;
const MOUNT: u32 = 0x8;
const UNMOUNT: u32 = 0x10;
const DEAD: u32 = 0x20;

#[test]
fn mount_events_are_reported_once_and_others_never() {
    reset();
    let watch = MountWatch::new().unwrap();
    let wait = || watch.wait(Some(Duration::ZERO)).unwrap();
    assert_eq!(wait(), None);
    with(|kernel| kernel.report(LOW_DISK));
    assert_eq!(wait(), None);
    for (event, expected) in
        [(MOUNT, MountEvent::Changed), (UNMOUNT, MountEvent::Changed), (DEAD, MountEvent::Dead)]
    {
        with(|kernel| kernel.report(event));
        assert_eq!((wait(), wait()), (Some(expected), None), "event {event:#x}");
    }
}

#[test]
fn events_between_two_waits_are_not_lost() {
    reset();
    let watch = MountWatch::new().unwrap();
    with(|kernel| [MOUNT, UNMOUNT].map(|event| kernel.report(event)));
    assert_eq!(watch.wait(None).unwrap(), Some(MountEvent::Changed));
    assert_eq!(watch.wait(Some(Duration::ZERO)).unwrap(), None, "both come as one event");
    with(|kernel| [DEAD, UNMOUNT].map(|event| kernel.report(event)));
    assert_eq!(watch.wait(None).unwrap(), Some(MountEvent::Dead), "that tells more");
}

#[test]
fn limit_of_a_wait_reaches_the_kernel() {
    reset();
    let watch = MountWatch::new().unwrap();
    let limit = Duration::from_millis(1500);
    assert_eq!(watch.wait(Some(limit)).unwrap(), None);
    assert_eq!(watch.wait(Some(Duration::MAX)).unwrap(), None);
    assert_eq!(watch.wait(None).unwrap(), None, "interrupted by a signal");
    let longest = Duration::new(i64::MAX as u64, 999_999_999);
    assert_eq!(with(|kernel| kernel.waits.clone()), [Some(limit), Some(longest), None]);
}

#[test]
fn signal_during_a_wait_is_no_change() {
    reset();
    let watch = MountWatch::new().unwrap();
    with(|kernel| kernel.fail(Call::Kevent, EINTR, ..));
    assert_eq!(watch.wait(Some(Duration::ZERO)).unwrap(), None);
}

#[test]
fn watch_that_cannot_be_set_up_is_an_error() {
    for (call, error) in [(Call::Kqueue, EMFILE), (Call::Kevent, ENOMEM)] {
        reset();
        with(|kernel| kernel.fail(call, error, ..));
        assert_eq!(MountWatch::new().err().and_then(|error| error.raw_os_error()), Some(error));
    }
}
