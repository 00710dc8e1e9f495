//! Counters from `sysctl` and `proc_pid_rusage`.

use std::net::IpAddr;

use longhaul_darwin::kernel::{Call, interface, reset, with};
use longhaul_darwin::platform::macos_counters::{
    connection_count, disk_counters, read_counters, read_phase_counters,
};
use longhaul_darwin::sockets::{ListedConnection, pcblist};
use longhaul_darwin::{ENOENT, ENOMEM, ifmibdata};
use longhaul_model::{CounterReading, Counters, Mount, Protocol, TargetName};

fn to_nas(address: &str, bytes: [u64; 2]) -> ListedConnection {
    ListedConnection { server: (address.parse::<IpAddr>().unwrap(), 445), bytes, process: 0, state: 4 }
}

/// Sets the values of the connection list that successive calls see.
fn set_lists(values: impl IntoIterator<Item = Vec<u8>>) {
    reset();
    let name = c"net.inet.tcp.pcblist_n".to_owned();
    with(|kernel| kernel.values.insert(name, values.into_iter().collect()));
}

fn target() -> (TargetName, Mount) {
    let server = "192.168.1.5".parse().unwrap();
    let mount = Mount::new("/Volumes/media", "//nas/media", Protocol::Smb(None));
    ("smb".parse().unwrap(), Mount { server: Some(server), ..mount })
}

fn known(reading: &CounterReading) -> Vec<Counters> {
    reading.counters.iter().flatten().cloned().collect()
}

#[test]
fn connections_of_the_kernel_have_their_bytes() {
    let program = ListedConnection { process: 501, ..to_nas("192.168.1.5", [9, 9]) };
    let closed = ListedConnection { state: 1, ..to_nas("192.168.1.5", [9, 9]) };
    set_lists([pcblist(&[program, to_nas("192.168.1.5", [7 << 32, 5]), closed, to_nas("fe80::5", [1, 1])])]);
    assert_eq!(connection_count(), Ok(2));
    let readings = read_counters(&[target()]);
    let found = known(&readings[0]);
    assert_eq!((found[0].read_bytes, found[0].written_bytes), (Some(7 << 32), Some(5)));
}

#[test]
fn list_that_grows_between_two_calls_is_read_whole() {
    let list = |count| pcblist(&vec![to_nas("192.168.1.5", [1, 1]); count]);
    set_lists([list(1), list(30), list(31), list(31)]);
    assert_eq!(connection_count(), Ok(31));
}

#[test]
fn list_that_shrinks_between_two_calls_has_no_left_over_bytes() {
    let list = |count| pcblist(&vec![to_nas("192.168.1.5", [1, 1]); count]);
    set_lists([list(30), list(2)]);
    assert_eq!(connection_count(), Ok(2));
}

#[test]
fn list_that_never_fits_ends_as_an_error() {
    set_lists([pcblist(&[])]);
    with(|kernel| kernel.fail(Call::Sysctlbyname, ENOMEM, 1..));
    let error = connection_count().unwrap_err();
    assert!(error.starts_with("the kernel does not list connections"), "{error}");
    assert!(with(|kernel| kernel.count(Call::Sysctlbyname)) < 20);
}

#[test]
fn cut_list_is_read_without_its_last_connection() {
    let whole = pcblist(&[to_nas("192.168.1.5", [1, 1]), to_nas("192.168.1.5", [2, 2])]);
    let mut counts = vec![];
    for length in (0..whole.len()).step_by(if cfg!(miri) { 97 } else { 1 }) {
        set_lists([whole[..length].to_vec()]);
        counts.push(connection_count().unwrap());
    }
    assert!(counts.is_sorted() && counts.first() == Some(&0) && counts.last() == Some(&2), "{counts:?}");
}

#[test]
fn interfaces_are_read_by_number_and_removed_ones_left_out() {
    reset();
    with(|kernel| {
        kernel.interfaces = vec![None, Some(interface("en0", 7 << 32, 5)), Some(interface("lo0", 1, 1))]
    });
    let readings = read_counters(&[]);
    let found = known(&readings[0]);
    assert_eq!(found.len(), 1, "the loopback interface does not count");
    assert_eq!((found[0].read_bytes, found[0].written_bytes), (Some(7 << 32), Some(5)));
}

#[test]
fn machine_without_interfaces_has_no_counters() {
    reset();
    assert_eq!(known(&read_counters(&[])[0]), []);
}

#[test]
fn name_of_an_interface_that_fills_its_field_ends_there() {
    reset();
    let named = interface("interface-with-a-name", 1, 1);
    let unnamed = ifmibdata { ifmd_name: [0; 16], ..named };
    with(|kernel| kernel.interfaces = vec![Some(named), Some(unnamed)]);
    let names: Vec<String> =
        known(&read_counters(&[])[0]).iter().map(|counters| counters.source.name().to_string()).collect();
    assert!(names[0].contains("interface-with-a") && !names[0].contains("interface-with-a-"), "{names:?}");
}

#[test]
fn kernel_without_the_lists_gives_reasons() {
    reset();
    with(|kernel| kernel.fail(Call::Sysctl, ENOENT, ..));
    let reasons: Vec<String> = read_counters(&[target()])
        .iter()
        .flat_map(|reading| &reading.counters)
        .filter_map(|counters| counters.as_ref().err())
        .map(|unavailable| unavailable.reason.clone())
        .collect();
    assert!(reasons[0].starts_with("the kernel does not list connections: "), "{reasons:?}");
    assert!(reasons[1].starts_with("the kernel does not count interfaces: "), "{reasons:?}");
}

#[test]
fn phase_has_connections_although_the_tool_is_missing() {
    set_lists([pcblist(&[to_nas("192.168.1.5", [3, 4])])]);
    let found = read_phase_counters(&target().1);
    assert_eq!(found.iter().map(|counters| counters.read_bytes).collect::<Vec<_>>(), [Some(3)]);
}

#[test]
fn disk_bytes_are_those_of_the_process() {
    reset();
    with(|kernel| kernel.disk_bytes.insert(70, [4096, u64::MAX]));
    let found = disk_counters(70).unwrap();
    assert_eq!((found.read_bytes, found.written_bytes), (Some(4096), Some(u64::MAX)));
    for process in [71, u32::MAX] {
        let reason = disk_counters(process).unwrap_err().reason;
        assert!(reason.starts_with("the system does not report disk I/O: "), "{reason}");
    }
    assert_eq!(with(|kernel| kernel.count(Call::ProcPidRusage)), 2, "no process has the last number");
}
