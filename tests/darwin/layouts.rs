//! Layouts and numbers of macOS that the platform code relies on. On a Mac this file is compiled against the real `libc`, on
//! Linux against the stand-in: a value on which the two disagree does not compile on one of them.

#[cfg(any(target_os = "linux", target_os = "macos"))]
mod checks {
    use std::mem::{offset_of, size_of};

    macro_rules! sizes {
        ($($kind:ident = $size:literal,)*) => { $(const _: () = assert!(size_of::<libc::$kind>() == $size);)* };
    }
    macro_rules! offsets {
        ($($kind:ident.$field:ident = $offset:literal,)*) => {
            $(const _: () = assert!(offset_of!(libc::$kind, $field) == $offset);)*
        };
    }
    macro_rules! numbers {
        ($($name:ident = $number:literal,)*) => { $(const _: () = assert!(libc::$name == $number);)* };
    }

    sizes! {
        attribute_set_t = 20, attrlist = 24, attrreference_t = 8, if_data64 = 128, ifmibdata = 180, kevent = 32, rusage = 144,
        rusage_info_v2 = 160, statfs = 2168, timespec = 16, timeval = 16,
    }
    offsets! {
        statfs.f_bsize = 0, statfs.f_blocks = 8, statfs.f_bavail = 24, statfs.f_fsid = 48, statfs.f_flags = 64,
        statfs.f_fstypename = 72, statfs.f_mntonname = 88, statfs.f_mntfromname = 1112, statfs.f_flags_ext = 2136,
        attrlist.bitmapcount = 0, attrlist.commonattr = 4, attrlist.dirattr = 12, attrlist.fileattr = 16,
        attribute_set_t.commonattr = 0, attribute_set_t.dirattr = 8, attribute_set_t.fileattr = 12,
        attrreference_t.attr_length = 4,
        kevent.filter = 8, kevent.flags = 10, kevent.fflags = 12, kevent.data = 16, kevent.udata = 24,
        rusage.ru_maxrss = 32, rusage_info_v2.ri_diskio_bytesread = 144, rusage_info_v2.ri_diskio_byteswritten = 152,
        ifmibdata.ifmd_data = 52, if_data64.ifi_ierrors = 32, if_data64.ifi_oerrors = 48, if_data64.ifi_ibytes = 64,
        if_data64.ifi_obytes = 72, if_data64.ifi_iqdrops = 96,
    }
    numbers! {
        MNT_RDONLY = 0x1, MNT_LOCAL = 0x1000, MNT_WAIT = 1, MNT_NOWAIT = 2, O_EVTONLY = 0x8000, F_RDAHEAD = 45,
        F_NOCACHE = 48, F_FULLFSYNC = 51, CLOCK_MONOTONIC_RAW = 4, CLOCK_UPTIME_RAW = 8, CLOCK_PROCESS_CPUTIME_ID = 12,
        CLOCK_THREAD_CPUTIME_ID = 16, RUSAGE_SELF = 0, RUSAGE_INFO_V2 = 2, EVFILT_FS = -9, EV_ADD = 0x1, EV_CLEAR = 0x20,
        ATTR_BIT_MAP_COUNT = 5, FSOPT_NOFOLLOW = 0x1, ATTR_CMN_NAME = 0x1, ATTR_CMN_FSID = 0x4, ATTR_CMN_OBJTYPE = 0x8,
        ATTR_CMN_CRTIME = 0x200, ATTR_CMN_MODTIME = 0x400, ATTR_CMN_CHGTIME = 0x800, ATTR_CMN_FNDRINFO = 0x4000,
        ATTR_CMN_OWNERID = 0x8000, ATTR_CMN_GRPID = 0x1_0000, ATTR_CMN_ACCESSMASK = 0x2_0000, ATTR_CMN_FLAGS = 0x4_0000,
        ATTR_CMN_USERACCESS = 0x20_0000, ATTR_CMN_FILEID = 0x200_0000, ATTR_CMN_ADDEDTIME = 0x1000_0000,
        ATTR_CMN_RETURNED_ATTRS = 0x8000_0000, ATTR_DIR_ENTRYCOUNT = 0x2, ATTR_DIR_MOUNTSTATUS = 0x4,
        ATTR_FILE_TOTALSIZE = 0x2, ATTR_FILE_ALLOCSIZE = 0x4, ATTR_FILE_DATALENGTH = 0x200, ATTR_FILE_RSRCLENGTH = 0x1000,
    }
    numbers! {
        EPERM = 1, ENOENT = 2, ESRCH = 3, EINTR = 4, EIO = 5, ENXIO = 6, EBADF = 9, EDEADLK = 11, ENOMEM = 12, EACCES = 13,
        EFAULT = 14, EBUSY = 16, EEXIST = 17, EXDEV = 18, ENODEV = 19, ENOTDIR = 20, EISDIR = 21, EINVAL = 22, ENFILE = 23,
        EMFILE = 24, ENOTTY = 25, ETXTBSY = 26, EFBIG = 27, ENOSPC = 28, EROFS = 30, EMLINK = 31, EPIPE = 32, ERANGE = 34,
        EAGAIN = 35, EPROTONOSUPPORT = 43, ENOTSUP = 45, ENETDOWN = 50, ENETUNREACH = 51, ECONNABORTED = 53,
        ECONNRESET = 54, ENOBUFS = 55, ENOTCONN = 57, ETIMEDOUT = 60, ECONNREFUSED = 61, ELOOP = 62, ENAMETOOLONG = 63,
        EHOSTDOWN = 64, EHOSTUNREACH = 65, ENOTEMPTY = 66, EDQUOT = 69, ESTALE = 70, ENOLCK = 77, ENOSYS = 78,
        EOVERFLOW = 84, ECANCELED = 89, EILSEQ = 92, ENOATTR = 93, ENODATA = 96, EPROTO = 100, EOPNOTSUPP = 102,
    }
}
