//! Parsers of what a NAS answers. They are pure: any bytes end in a reading or in an error, in bounded time and memory.

mod devices;
pub mod exposition;
pub mod proc_files;
pub mod snmp_tables;
