//! Constants and structs of macOS on 64-bit processors, under the names that the `libc` crate gives them there.
//! `layouts.rs` compares them with those of that crate.
#![allow(non_camel_case_types, reason = "the names are those of C")]
#![allow(missing_docs, reason = "the fields are those of Apple's headers, which each type names")]

use std::ffi::{c_char, c_int, c_long, c_uchar, c_uint, c_ushort};

// What only `unix.rs` calls, which runs on Linux anyway.
pub use linux_libc::{
    F_RDLCK, F_SETLK, F_UNLCK, F_WRLCK, SEEK_SET, SIG_IGN, SIGPIPE, SIGSEGV, c_short, c_void, close, flock,
    getloadavg, off_t, sigaction, time_t,
};

pub type clockid_t = c_uint;
pub type pid_t = i32;
pub type rusage_info_t = *mut c_void;
pub type timespec = linux_libc::timespec;

pub const MNT_RDONLY: c_int = 0x1;
pub const MNT_LOCAL: c_int = 0x1000;
pub const MNT_WAIT: c_int = 1;
pub const MNT_NOWAIT: c_int = 2;
pub const O_EVTONLY: c_int = 0x8000;
pub const F_RDAHEAD: c_int = 45;
pub const F_NOCACHE: c_int = 48;
pub const F_FULLFSYNC: c_int = 51;
pub const CLOCK_MONOTONIC_RAW: clockid_t = 4;
pub const CLOCK_UPTIME_RAW: clockid_t = 8;
pub const CLOCK_PROCESS_CPUTIME_ID: clockid_t = 12;
pub const CLOCK_THREAD_CPUTIME_ID: clockid_t = 16;
pub const RUSAGE_SELF: c_int = 0;
pub const RUSAGE_INFO_V2: c_int = 2;
pub const EVFILT_FS: i16 = -9;
pub const EV_ADD: u16 = 0x1;
pub const EV_CLEAR: u16 = 0x20;

pub const ATTR_BIT_MAP_COUNT: c_ushort = 5;
pub const FSOPT_NOFOLLOW: u32 = 0x1;
pub const ATTR_CMN_NAME: u32 = 0x1;
pub const ATTR_CMN_FSID: u32 = 0x4;
pub const ATTR_CMN_OBJTYPE: u32 = 0x8;
pub const ATTR_CMN_CRTIME: u32 = 0x200;
pub const ATTR_CMN_MODTIME: u32 = 0x400;
pub const ATTR_CMN_CHGTIME: u32 = 0x800;
pub const ATTR_CMN_FNDRINFO: u32 = 0x4000;
pub const ATTR_CMN_OWNERID: u32 = 0x8000;
pub const ATTR_CMN_GRPID: u32 = 0x1_0000;
pub const ATTR_CMN_ACCESSMASK: u32 = 0x2_0000;
pub const ATTR_CMN_FLAGS: u32 = 0x4_0000;
pub const ATTR_CMN_USERACCESS: u32 = 0x20_0000;
pub const ATTR_CMN_FILEID: u32 = 0x200_0000;
pub const ATTR_CMN_ADDEDTIME: u32 = 0x1000_0000;
pub const ATTR_CMN_RETURNED_ATTRS: u32 = 0x8000_0000;
pub const ATTR_DIR_ENTRYCOUNT: u32 = 0x2;
pub const ATTR_DIR_MOUNTSTATUS: u32 = 0x4;
pub const ATTR_FILE_TOTALSIZE: u32 = 0x2;
pub const ATTR_FILE_ALLOCSIZE: u32 = 0x4;
pub const ATTR_FILE_DATALENGTH: u32 = 0x200;
pub const ATTR_FILE_RSRCLENGTH: u32 = 0x1000;

/// Facts about a mount (xnu bsd/sys/mount.h:110, variant with inodes of 64 bits).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct statfs {
    pub f_bsize: u32,
    pub f_iosize: i32,
    pub f_blocks: u64,
    pub f_bfree: u64,
    pub f_bavail: u64,
    pub f_files: u64,
    pub f_ffree: u64,
    pub f_fsid: [i32; 2],
    pub f_owner: u32,
    pub f_type: u32,
    pub f_flags: u32,
    pub f_fssubtype: u32,
    pub f_fstypename: [c_char; 16],
    pub f_mntonname: [c_char; 1024],
    pub f_mntfromname: [c_char; 1024],
    pub f_flags_ext: u32,
    pub f_reserved: [u32; 7],
}

/// Attributes that a caller requests (xnu bsd/sys/attr.h:87).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct attrlist {
    pub bitmapcount: c_ushort,
    pub reserved: u16,
    pub commonattr: u32,
    pub volattr: u32,
    pub dirattr: u32,
    pub fileattr: u32,
    pub forkattr: u32,
}

/// Attributes that were returned (xnu bsd/sys/attr.h).
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct attribute_set_t {
    pub commonattr: u32,
    pub volattr: u32,
    pub dirattr: u32,
    pub fileattr: u32,
    pub forkattr: u32,
}

/// Place of an attribute of variable length (xnu bsd/sys/attr.h).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct attrreference_t {
    pub attr_dataoffset: i32,
    pub attr_length: u32,
}

/// Event of a kqueue (xnu bsd/sys/event.h:94).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct kevent {
    pub ident: usize,
    pub filter: i16,
    pub flags: u16,
    pub fflags: u32,
    pub data: isize,
    pub udata: *mut c_void,
}

/// Use of a process (xnu bsd/sys/resource.h:242).
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct rusage_info_v2 {
    pub ri_uuid: [u8; 16],
    pub ri_user_time: u64,
    pub ri_system_time: u64,
    pub ri_pkg_idle_wkups: u64,
    pub ri_interrupt_wkups: u64,
    pub ri_pageins: u64,
    pub ri_wired_size: u64,
    pub ri_resident_size: u64,
    pub ri_phys_footprint: u64,
    pub ri_proc_start_abstime: u64,
    pub ri_proc_exit_abstime: u64,
    pub ri_child_user_time: u64,
    pub ri_child_system_time: u64,
    pub ri_child_pkg_idle_wkups: u64,
    pub ri_child_interrupt_wkups: u64,
    pub ri_child_pageins: u64,
    pub ri_child_elapsed_abstime: u64,
    pub ri_diskio_bytesread: u64,
    pub ri_diskio_byteswritten: u64,
}

/// Time with microseconds, which take 32 bits (xnu bsd/sys/_types/_timeval.h).
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct timeval {
    pub tv_sec: i64,
    pub tv_usec: i32,
}

/// Resources that a process used; `ru_maxrss` is in bytes (getrusage(2)).
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct rusage {
    pub ru_utime: timeval,
    pub ru_stime: timeval,
    pub ru_maxrss: c_long,
    pub ru_ixrss: c_long,
    pub ru_idrss: c_long,
    pub ru_isrss: c_long,
    pub ru_minflt: c_long,
    pub ru_majflt: c_long,
    pub ru_nswap: c_long,
    pub ru_inblock: c_long,
    pub ru_oublock: c_long,
    pub ru_msgsnd: c_long,
    pub ru_msgrcv: c_long,
    pub ru_nsignals: c_long,
    pub ru_nvcsw: c_long,
    pub ru_nivcsw: c_long,
}

/// Counters of an interface (xnu bsd/net/if_var.h:207).
#[derive(Clone, Copy, Default)]
#[repr(C, packed(4))]
pub struct if_data64 {
    pub ifi_type: c_uchar,
    pub ifi_typelen: c_uchar,
    pub ifi_physical: c_uchar,
    pub ifi_addrlen: c_uchar,
    pub ifi_hdrlen: c_uchar,
    pub ifi_recvquota: c_uchar,
    pub ifi_xmitquota: c_uchar,
    pub ifi_unused1: c_uchar,
    pub ifi_mtu: u32,
    pub ifi_metric: u32,
    pub ifi_baudrate: u64,
    pub ifi_ipackets: u64,
    pub ifi_ierrors: u64,
    pub ifi_opackets: u64,
    pub ifi_oerrors: u64,
    pub ifi_collisions: u64,
    pub ifi_ibytes: u64,
    pub ifi_obytes: u64,
    pub ifi_imcasts: u64,
    pub ifi_omcasts: u64,
    pub ifi_iqdrops: u64,
    pub ifi_noproto: u64,
    pub ifi_recvtiming: u32,
    pub ifi_xmittiming: u32,
    pub ifi_lastchange: [i32; 2],
}

/// An interface with its counters (xnu bsd/net/if_mib.h:65).
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct ifmibdata {
    pub ifmd_name: [c_char; 16],
    pub ifmd_pcount: c_uint,
    pub ifmd_flags: c_uint,
    pub ifmd_snd_len: c_uint,
    pub ifmd_snd_maxlen: c_uint,
    pub ifmd_snd_drops: c_uint,
    pub ifmd_filler: [c_uint; 4],
    pub ifmd_data: if_data64,
}
