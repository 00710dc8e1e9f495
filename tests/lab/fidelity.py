"""Writes files with the properties that `longhaul fidelity` checks, or looks which of them exist.

`fidelity.py write FOLDER` runs in the client, on a mount; `fidelity.py look FOLDER` runs in the NAS, on its disk. Both use
plain system calls and share no code with longhaul. `look` prints one line for each property: its name, `there` or `missing`,
and what was found.
"""

import os
import struct
import sys

ACL = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHi", *entry) for entry in [(1, 6, -1), (2, 4, 65533), (4, 4, -1), (16, 4, -1), (32, 4, -1)]
)
MODIFIED_NS = 1_700_000_001_123_456_789
NAMES = {
    "composed-name": "caf\u00e9",
    "decomposed-name": "cafe\u0301",
    "trailing-dot": "end.",
    "trailing-space": "end ",
    "colon": "a:b",
    "backslash": "a\\b",
    "question-mark": "a?b",
    "asterisk": "a*b",
    "quotation-mark": 'a"b',
    "angle-brackets": "a<>b",
    "vertical-bar": "a|b",
    "long-name": "n" * 255,
    "wide-name": "\u00e9" * 255,
}
PAIRS = {"normalization-pair": ("caf\u00e9", "cafe\u0301"), "case-pair": ("Case", "case")}
ATTRIBUTES = {
    "tiny-attribute": ("user.longhaul.note", 1),
    "small-attribute": ("user.longhaul.note", 4096),
    "large-attribute": ("user.longhaul.note", 65536),
    "finder-tags": ("user.com.apple.metadata:_kMDItemUserTags", 59),
    "finder-info": ("user.com.apple.FinderInfo", 32),
}
PART, DEPTH = "n" * 200, 6


def create(path, content=b"content"):
    with open(path, "xb") as file:
        file.write(content)


def write_one(name, folder):
    file, other = os.path.join(folder, "file"), os.path.join(folder, "other")
    if name in NAMES:
        return create(os.path.join(folder, NAMES[name]))
    if name in PAIRS:
        for one in PAIRS[name]:
            # As most programs do: a name that exists is written over.
            with open(os.path.join(folder, one), "wb") as opened:
                opened.write(one.encode())
        return None
    if name == "long-path":
        deep = folder
        for _ in range(DEPTH):
            deep = os.path.join(deep, PART)
            os.mkdir(deep)
        return create(os.path.join(deep, "file"))
    if name in ("sparse-file", "large-file"):
        with open(file, "xb") as opened:
            os.pwrite(opened.fileno(), b"Z", (16 << 20) if name == "sparse-file" else (4 << 30))
        return None
    if name == "preallocation":
        with open(file, "xb") as opened:
            # The C library would write zeros where the file system refuses; the system call does not.
            import ctypes

            if ctypes.CDLL(None, use_errno=True).fallocate64(opened.fileno(), 0, ctypes.c_long(0), ctypes.c_long(1 << 20)):
                raise OSError(ctypes.get_errno(), "fallocate")
        return None
    create(file)
    if name == "permissions":
        os.chmod(file, 0o640)
    elif name == "modification-time":
        os.utime(file, ns=(MODIFIED_NS, MODIFIED_NS))
    elif name in ATTRIBUTES:
        attribute, length = ATTRIBUTES[name]
        os.setxattr(file, attribute, b"x" * length)
    elif name == "access-control-list":
        os.setxattr(file, "system.posix_acl_access", ACL)
    elif name == "hard-link":
        os.link(file, other)
    elif name == "symbolic-link":
        os.symlink("file", other)
    return None


def look_one(name, folder):
    file, other = os.path.join(folder, "file"), os.path.join(folder, "other")
    if name in NAMES or name in PAIRS:
        names = sorted(os.listdir(folder))
        return len(names) == (2 if name in PAIRS else 1), " ".join(ascii(name)[:40] for name in names)
    if name == "long-path":
        deep = os.path.join(folder, *[PART] * DEPTH, "file")
        return os.path.exists(deep), f"{len(deep)} bytes"
    facts = os.lstat(file)
    if name == "permissions":
        return facts.st_mode & 0o7777 == 0o640, oct(facts.st_mode & 0o7777)
    if name == "modification-time":
        return abs(facts.st_mtime_ns - MODIFIED_NS) < 2_000_000_000, str(facts.st_mtime_ns)
    if name in ATTRIBUTES:
        attribute, length = ATTRIBUTES[name]
        found = {key.lower(): len(os.getxattr(file, key)) for key in os.listxattr(file)}
        return found.get(attribute.lower()) == length, f"{found.get(attribute.lower(), 0)} bytes"
    if name == "access-control-list":
        return "system.posix_acl_access" in os.listxattr(file), " ".join(os.listxattr(file))
    if name == "hard-link":
        return facts.st_nlink == 2, f"{facts.st_nlink} names"
    if name == "symbolic-link":
        return os.path.islink(other), "link" if os.path.islink(other) else "none"
    allocated = facts.st_blocks * 512
    text = f"{facts.st_size} bytes, {allocated} allocated"
    if name == "sparse-file":
        return facts.st_size == (16 << 20) + 1 and allocated <= 4 << 20, text
    if name == "large-file":
        return facts.st_size == (4 << 30) + 1, text
    return facts.st_size == 1 << 20 and allocated >= 1 << 20, text


ALL = [
    "permissions", "modification-time", *ATTRIBUTES, "access-control-list", *NAMES, *PAIRS, "long-path", "hard-link",
    "symbolic-link", "sparse-file", "preallocation", "large-file",
]  # fmt: skip


def main():
    mode, root = sys.argv[1:]
    for name in ALL:
        folder = os.path.join(root, name)
        try:
            if mode == "write":
                os.mkdir(folder)
                write_one(name, folder)
            else:
                is_there, found = look_one(name, folder)
                print(name, "there" if is_there else "missing", found)
        except OSError as error:
            print(name, "missing" if mode == "look" else "refused", error.strerror)


main()
