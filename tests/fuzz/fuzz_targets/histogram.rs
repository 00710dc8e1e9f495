//! Fuzzes the decoder of stored histograms: a decoded histogram has quantiles, and encoding it again changes nothing.
#![no_main]

use longhaul_model::Histogram;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(histogram) = Histogram::decode(bytes) else { return };
    let _ = (histogram.quantile_ns(0.0), histogram.quantile_ns(0.5), histogram.quantile_ns(1.0));
    assert_eq!(Histogram::decode(&histogram.encode()).as_ref(), Ok(&histogram));
});
