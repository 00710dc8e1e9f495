//! Fuzzes the import of CSV and JSON Lines exports. Imported data can be anonymized, and doing so twice changes
//! nothing.
#![no_main]

use std::path::Path;

use longhaul_export::read_bytes;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    // Parquet files are read by another project's parser, whose panics are caught.
    if bytes.starts_with(b"PAR1") {
        return;
    }
    let Ok(imported) = read_bytes(bytes, Path::new("export")) else { return };
    let history = longhaul_analysis::summary::anonymize(imported.history.clone());
    assert_eq!(longhaul_analysis::summary::anonymize(history.clone()), history);
    let _ = imported.skipped.iter().map(ToString::to_string).collect::<Vec<_>>();
});
