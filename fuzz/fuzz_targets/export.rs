//! An archive as CSV or JSON Lines: it is read or refused, and what was read is public or can be made so.
#![no_main]

use std::path::Path;

use longhaul_export::read_bytes;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // Parquet is another project's parser, behind a fence that lets no panic through.
    if bytes.starts_with(b"PAR1") {
        return;
    }
    let Ok(imported) = read_bytes(bytes, Path::new("export")) else { return };
    let history = longhaul_measure::summary::public(imported.history.clone());
    assert_eq!(longhaul_measure::summary::public(history.clone()), history);
    let _ = imported.left_out.iter().map(ToString::to_string).collect::<Vec<_>>();
});
