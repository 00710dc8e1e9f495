//! Fuzzes the parser of the tables of an SNMP agent, and the library that decodes them.
#![no_main]

use async_snmp::ber::Decoder;
use async_snmp::varbind::decode_varbind_list;
use longhaul_nas::MAX_DISKS;
use longhaul_nas::parse::snmp_tables::{self, SnmpAnswer};

libfuzzer_sys::fuzz_target!(|bytes: Vec<u8>| {
    let Ok(values) = decode_varbind_list(&mut Decoder::new(bytes.into())) else { return };
    let answer = SnmpAnswer { values: values.clone(), loads: values.clone(), disks: values };
    if let Ok(reading) = snmp_tables::read(&answer) {
        assert!(reading.disks.len() <= MAX_DISKS);
    }
});
