//! Error numbers of macOS (xnu bsd/sys/errno.h:90-264). Above 34 they differ from those of Linux.

use std::ffi::c_int;

pub use linux_libc::{EKEYEXPIRED, EKEYREJECTED, EKEYREVOKED, ENOKEY, EREMOTEIO};

macro_rules! errors {
    ($($name:ident = $number:literal,)*) => {
        $(
            #[doc = concat!("Error ", stringify!($number), " of macOS.")]
            pub const $name: c_int = $number;
        )*
    };
}

errors! {
    EPERM = 1, ENOENT = 2, ESRCH = 3, EINTR = 4, EIO = 5, ENXIO = 6, EBADF = 9, EDEADLK = 11, ENOMEM = 12, EACCES = 13,
    EFAULT = 14, EBUSY = 16, EEXIST = 17, EXDEV = 18, ENODEV = 19, ENOTDIR = 20, EISDIR = 21, EINVAL = 22, ENFILE = 23,
    EMFILE = 24, ENOTTY = 25, ETXTBSY = 26, EFBIG = 27, ENOSPC = 28, EROFS = 30, EMLINK = 31, EPIPE = 32, ERANGE = 34,
    EAGAIN = 35, EPROTONOSUPPORT = 43, ENOTSUP = 45, ENETDOWN = 50, ENETUNREACH = 51, ECONNABORTED = 53, ECONNRESET = 54,
    ENOBUFS = 55, ENOTCONN = 57, ETIMEDOUT = 60, ECONNREFUSED = 61, ELOOP = 62, ENAMETOOLONG = 63, EHOSTDOWN = 64,
    EHOSTUNREACH = 65, ENOTEMPTY = 66, EDQUOT = 69, ESTALE = 70, ENOLCK = 77, ENOSYS = 78, EOVERFLOW = 84,
    ECANCELED = 89, EILSEQ = 92, ENOATTR = 93, ENODATA = 96, EPROTO = 100, EOPNOTSUPP = 102,
}
