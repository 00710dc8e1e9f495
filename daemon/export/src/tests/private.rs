//! Tests that exports contain no private data.

use longhaul_model::{Event, History, Timestamp};
use serde_json::json;

use super::histories::small;
use super::{TEXTS, archive, bytes_of};
use crate::Window;

#[test]
fn exports_contain_no_path_server_or_user() {
    let detail = json!({
        "before": {"path": "/Users/ada/nas", "negotiated": {"rsize": "1048576"}},
        "after": {"path": "/Users/ada/nas2", "server": "diskstation", "source": "//ada@nas/media"},
    });
    let event =
        Event { target: None, kind: "epoch".into(), detail, at_us: longhaul_model::Timestamp::from_us(7) };
    let history = History { events: vec![event], ..small() };
    for format in TEXTS {
        let events = bytes_of(format, |output| crate::events(history.clone(), &Window::default(), output));
        for bytes in [archive(&history, format), events] {
            let text = String::from_utf8(bytes).unwrap();
            assert!(text.contains("1048576") && text.contains("hidden-2"), "{text}");
            assert!(
                ["/Users", "ada", "diskstation", "nas"].iter().all(|private| !text.contains(private)),
                "{text}"
            );
        }
    }
}

#[test]
fn exports_of_damage_name_no_file() {
    let detail = json!({"file": "photo-batch/0/IMG_1.JPG", "pattern": {"other-file": {"name": "IMG_2.JPG"}}, "offset": 4096});
    let event = Event { target: None, kind: "mismatch".into(), detail, at_us: Timestamp::from_us(7) };
    let history = History { events: vec![event], ..small() };
    let text = String::from_utf8(archive(&history, crate::Format::Json)).unwrap();
    assert!(text.contains("4096") && text.contains("other-file") && !text.contains("IMG_"), "{text}");
}
