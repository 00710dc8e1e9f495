//! Clocks, settings and facts of the process and the machine.

use longhaul_darwin::kernel::{Call, reset, with};
use longhaul_darwin::platform::macos::{
    self, continuous_ns, forbid_remote_hang, io_policy, monotonic_ns, peak_memory_bytes, power,
    set_io_policy, system_version,
};
use longhaul_darwin::platform::macos_counters::server_address;
use longhaul_darwin::platform::macos_host::{self, is_hot, processor_times};
use longhaul_darwin::platform::macos_probe::thread_cpu_ns;
use longhaul_darwin::platform::types::IoPolicy;
use longhaul_darwin::{
    CLOCK_MONOTONIC_RAW, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, CLOCK_UPTIME_RAW, EAGAIN, EINVAL,
    EPERM,
};
use longhaul_model::{Mount, NegotiatedOptions, Protocol};

#[test]
fn each_clock_is_the_one_that_is_meant() {
    reset();
    let day = 86_400_000_000_000;
    with(|kernel| {
        kernel.clocks.extend([
            (CLOCK_UPTIME_RAW, 40 * day + 999_999_999),
            (CLOCK_MONOTONIC_RAW, 50 * day),
            (CLOCK_PROCESS_CPUTIME_ID, 3_000_001_999),
            (CLOCK_THREAD_CPUTIME_ID, 2_000_000_001),
        ]);
    });
    assert_eq!((monotonic_ns(), continuous_ns()), (40 * day + 999_999_999, 50 * day));
    assert_eq!((thread_cpu_ns(), processor_times(&[]).used_us), (2_000_000_001, Some(3_000_001)));
}

#[test]
fn clock_that_fails_reads_zero() {
    reset();
    with(|kernel| kernel.clocks.insert(CLOCK_UPTIME_RAW, 5));
    with(|kernel| kernel.fail(Call::ClockGettime, EINVAL, 1..));
    assert_eq!((monotonic_ns(), monotonic_ns(), thread_cpu_ns()), (5, 0, 0));
}

#[test]
fn disk_policy_is_set_and_read_back() {
    reset();
    assert_eq!(io_policy().unwrap(), IoPolicy::Default);
    set_io_policy(IoPolicy::Throttled).unwrap();
    assert_eq!((io_policy().unwrap(), with(|kernel| kernel.disk_policy)), (IoPolicy::Throttled, 3));
    set_io_policy(IoPolicy::Default).unwrap();
    assert_eq!((io_policy().unwrap(), with(|kernel| kernel.disk_policy)), (IoPolicy::Default, 0));
}

#[test]
fn peak_memory_is_in_bytes_or_unknown() {
    reset();
    with(|kernel| kernel.peak_memory = 50 << 30);
    assert_eq!(peak_memory_bytes(), Some(50 << 30));
    with(|kernel| kernel.peak_memory = -1);
    assert_eq!(peak_memory_bytes(), None);
}

#[test]
fn host_id_is_that_of_the_hardware_or_unknown() {
    reset();
    assert_eq!(macos_host::host_id(), None, "zeros are no id");
    with(|kernel| kernel.host_id = std::array::from_fn(|place| place as u8));
    assert_eq!(macos_host::host_id().as_deref(), Some("000102030405060708090a0b0c0d0e0f"));
    with(|kernel| kernel.fail(Call::Gethostuuid, EAGAIN, ..));
    assert_eq!(macos_host::host_id(), None);
}

#[test]
fn remote_hangs_are_forbidden_for_this_process() {
    reset();
    forbid_remote_hang().unwrap();
    assert!(with(|kernel| kernel.fails_remote_hangs));
    reset();
    with(|kernel| kernel.fail(Call::Sysctlbyname, EPERM, ..));
    assert_eq!(forbid_remote_hang().unwrap_err().raw_os_error(), Some(EPERM));
}

/// Returns the version that is reported for these values of `kern.osproductversion` and `kern.osversion`.
fn version(product: Option<&[u8]>, build: Option<&[u8]>) -> String {
    reset();
    let values = [(c"kern.osproductversion", product), (c"kern.osversion", build)];
    with(|kernel| {
        let known =
            values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), [value?.to_vec()].into())));
        kernel.values.extend(known);
    });
    system_version()
}

#[test]
fn version_has_the_parts_that_are_known() {
    assert_eq!(version(Some(b"15.5\0"), Some(b"24F74\0")), "macOS 15.5 (24F74)");
    assert_eq!(version(Some(b"15.5\0"), None), "macOS 15.5");
    assert_eq!(version(None, None), "macOS");
}

#[test]
fn text_without_an_end_or_of_any_length_is_safe() {
    for length in [0, 1, 127, 128, 129, 4096] {
        let endless = version(Some(&vec![b'1'; length]), None);
        assert!(endless.len() <= "macOS ".len() + 128, "{length} bytes: {endless}");
        let ended = version(Some(&[vec![b'1'; length], vec![0]].concat()), None);
        let expected =
            if length < 128 { format!("macOS {}", "1".repeat(length)) } else { "macOS".to_owned() };
        assert_eq!(ended, expected, "{length} bytes");
    }
}

#[test]
fn heat_comes_from_the_published_pressure() {
    for (level, hot) in
        [(0, Some(false)), (1, Some(false)), (2, Some(true)), (4, Some(true)), (u64::MAX, None)]
    {
        reset();
        with(|kernel| {
            kernel.notifications.insert(c"com.apple.system.thermalpressurelevel".to_owned(), level)
        });
        assert_eq!(is_hot(), hot, "level {level}");
        assert!(with(|kernel| kernel.tokens.is_empty()), "the registration has ended");
    }
}

#[test]
fn pressure_that_cannot_be_read_is_unknown() {
    for call in [Call::NotifyRegisterCheck, Call::NotifyGetState] {
        reset();
        with(|kernel| kernel.fail(call, EINVAL, ..));
        assert_eq!(is_hot(), None);
        assert!(with(|kernel| kernel.tokens.is_empty()), "the registration has ended");
    }
}

#[test]
fn mac_without_its_tools_has_no_answers_instead_of_wrong_ones() {
    reset();
    let mount = Mount::new("/Volumes/media", "//nas/media", Protocol::Smb(None));
    assert_eq!((power(), macos_host::battery_percent(), macos_host::low_power_mode()), (None, None, None));
    assert_eq!((macos_host::backup_running(), macos_host::link_to(None)), (None, None));
    assert_eq!((macos_host::is_rotational(&mount), server_address(&mount)), (None, None));
    assert!(macos_host::keep_awake().is_none());
    let negotiated = NegotiatedOptions::from([("vers".to_owned(), "3".to_owned())]);
    assert_eq!(macos::negotiated(&Mount { negotiated: negotiated.clone(), ..mount }), negotiated);
}

#[test]
fn folders_are_those_of_a_mac() {
    let below_home = [
        (macos::data_directory(), "Library/Application Support/longhaul"),
        (macos::config_directory(), "Library/Application Support/longhaul"),
        (macos::log_directory(), "Library/Logs/longhaul"),
        (macos::service_directory(), "Library/LaunchAgents"),
    ];
    let home = std::env::var_os("HOME").map(std::path::PathBuf::from).filter(|home| home.is_absolute());
    for (folder, path) in below_home {
        assert_eq!(folder, home.as_ref().map(|home| home.join(path)));
    }
}
