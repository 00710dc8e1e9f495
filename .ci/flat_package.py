#!/usr/bin/env python3
"""Writes an installer for macOS from a folder, on any system: a flat package with one component and no scripts.

    .ci/flat_package.py --root FOLDER --identifier ID --version VERSION --time SECONDS FILE

On a Mac, pkgbuild does the same. A flat package is a xar archive of three files: PackageInfo (XML), Payload (a gzip-compressed cpio
archive of type odc) and Bom (the list of the files that will be installed). Every file belongs to root:wheel. The same files and the
same time give the same package.
"""

import argparse
import gzip
import hashlib
import os
import stat
import struct
import time
import zlib
from xml.sax.saxutils import quoteattr

# One leaf of the tree in a Bom has this many entries; a tree with more leaves is not written here.
LEAF = 256


class Entry:
    """A file or folder of the package."""

    def __init__(self, root, path):
        self.path = path
        source = os.path.join(root, path)
        facts = os.lstat(source)
        self.is_folder = stat.S_ISDIR(facts.st_mode)
        if not self.is_folder and not stat.S_ISREG(facts.st_mode):
            raise SystemExit(f"{source}: only files and folders can be packed")
        self.mode = facts.st_mode
        self.content = b"" if self.is_folder else open(source, "rb").read()


def entries(root):
    """Returns everything below a folder, and the folder itself as `.`; a folder precedes what is in it."""
    found = [Entry(root, ".")]
    for folder, folders, files in os.walk(root):
        folders.sort()
        names = sorted(folders + files)
        found += [Entry(root, "./" + os.path.relpath(os.path.join(folder, name), root)) for name in names]
    return found


def payload(found, seconds):
    """Returns the compressed cpio archive, in the portable ASCII format (odc)."""

    def record(number, name, mode, links, content):
        fields = (0, number, mode, 0, 0, links, 0)
        head = "070707" + "".join(f"{field:06o}" for field in fields)
        name = name.encode() + b"\0"
        return f"{head}{seconds:011o}{len(name):06o}{len(content):011o}".encode() + name + content

    records = [
        record(number, entry.path, entry.mode, 2 if entry.is_folder else 1, entry.content)
        for number, entry in enumerate(found, 1)
    ]
    archive = b"".join(records) + record(0, "TRAILER!!!", 0, 1, b"")
    return gzip.compress(archive, 9, mtime=0)


def checksum(content):
    """Returns the checksum of a file as cksum(1) of POSIX computes it."""
    length, tail = len(content), b""
    while length:
        tail += bytes([length & 0xFF])
        length >>= 8
    # The same polynomial as that of zlib, with the bits of each byte in reverse order and no initial value.
    reverse = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
    value = zlib.crc32((content + tail).translate(reverse), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int(f"{value:032b}"[::-1], 2) ^ 0xFFFFFFFF


class Store:
    """The blocks and variables of a Bom."""

    def __init__(self):
        self.blocks, self.variables = [b""], []

    def add(self, block):
        """Adds a block and returns its number."""
        self.blocks.append(block)
        return len(self.blocks) - 1

    def tree(self, pairs, block_size=4096):
        """Adds a tree with one leaf and returns its number."""
        leaf = struct.pack(">HHII", 1, len(pairs), 0, 0) + b"".join(struct.pack(">II", *pair) for pair in pairs)
        return self.add(struct.pack(">4sIIIIB", b"tree", 1, self.add(leaf), block_size, len(pairs), 0))

    def render(self):
        """Returns the file: a header of 512 bytes, the blocks, the variables, and the index of the blocks."""
        at, pointers, body = 512, [], b""
        for block in self.blocks:
            pointers.append((at + len(body), len(block)) if block else (0, 0))
            body += block
        named = b"".join(struct.pack(">IB", number, len(name)) + name for name, number in self.variables)
        named = struct.pack(">I", len(self.variables)) + named
        index = struct.pack(">I", len(pointers)) + b"".join(struct.pack(">II", *pointer) for pointer in pointers)
        index += struct.pack(">IIIII", 0, 0, 0, 0, 0)
        variables_at = at + len(body)
        head = struct.pack(
            ">8sIIIIII", b"BOMStore", 1, len(self.blocks) - 1,
            variables_at + len(named), len(index), variables_at, len(named),
        )  # fmt: skip
        return head.ljust(512, b"\0") + body + named + index


def bom(found, seconds):
    """Returns the Bom of these files, in which each has the number of its folder."""
    if len(found) > LEAF:
        raise SystemExit(f"more than {LEAF} files and folders cannot be listed")
    store, numbers, pairs = Store(), {}, []
    info = struct.pack(">III", 1, len(found) + 1, 1) + struct.pack(">IIII", 0, 0, 0, 0)
    store.variables.append((b"BomInfo", store.add(info)))
    for number, entry in enumerate(found, 1):
        numbers[entry.path] = number
        folder, _, name = entry.path.rpartition("/")
        facts = struct.pack(
            ">BBHHIIIIBII", 2 if entry.is_folder else 1, 1, 3, entry.mode, 0, 0, seconds,
            len(entry.content), 1, 0 if entry.is_folder else checksum(entry.content), 0,
        )  # fmt: skip
        key = store.add(struct.pack(">I", numbers.get(folder, 0)) + name.encode() + b"\0")
        pairs.append((store.add(struct.pack(">II", number, store.add(facts))), key))
    store.variables.append((b"Paths", store.tree(pairs)))
    store.variables.append((b"HLIndex", store.tree([])))
    index = struct.pack(">IIIB", 1, store.tree([], 128), 0, 0)
    store.variables += [(b"VIndex", store.add(index)), (b"Size64", store.tree([]))]
    return store.render()


def package_info(found, identifier, version):
    """Returns the description of the component."""
    kilobytes = sum(-(-len(entry.content) // 1024) for entry in found)
    return f"""<?xml version="1.0" encoding="utf-8"?>
<pkg-info overwrite-permissions="false" relocatable="false" identifier={quoteattr(identifier)} postinstall-action="none" \
version={quoteattr(version)} format-version="2" auth="root">
    <payload numberOfFiles="{len(found)}" installKBytes="{kilobytes}"/>
</pkg-info>
""".encode()


def xar(files, seconds):
    """Returns a xar archive of these files: a header, a compressed table in XML, its checksum, and the files."""
    created = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    # The first 20 bytes after the table are its checksum.
    at, body, rows = 20, b"", ""
    for number, (name, content) in enumerate(files, 1):
        sum_of = hashlib.sha1(content).hexdigest()
        rows += f"""<file id="{number}"><name>{name}</name><type>file</type><mode>0644</mode><uid>0</uid><gid>0</gid>\
<data><length>{len(content)}</length><offset>{at}</offset><size>{len(content)}</size>\
<encoding style="application/octet-stream"/><extracted-checksum style="sha1">{sum_of}</extracted-checksum>\
<archived-checksum style="sha1">{sum_of}</archived-checksum></data></file>
"""
        at, body = at + len(content), body + content
    table = f"""<?xml version="1.0" encoding="UTF-8"?>
<xar><toc><creation-time>{created}</creation-time>\
<checksum style="sha1"><offset>0</offset><size>20</size></checksum>
{rows}</toc></xar>
""".encode()
    packed = zlib.compress(table, 9)
    head = struct.pack(">4sHHQQI", b"xar!", 28, 1, len(packed), len(table), 1)
    return head + packed + hashlib.sha1(packed).digest() + body


def main():
    """Reads the arguments and writes the package."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--root", "--identifier", "--version"):
        parser.add_argument(name, required=True)
    parser.add_argument("--time", required=True, type=int, help="modification time of everything, since 1970")
    parser.add_argument("file")
    arguments = parser.parse_args()
    found = entries(arguments.root)
    files = [
        ("Bom", bom(found, arguments.time)),
        ("Payload", payload(found, arguments.time)),
        ("PackageInfo", package_info(found, arguments.identifier, arguments.version)),
    ]
    with open(arguments.file, "wb") as out:
        out.write(xar(files, arguments.time))
    print(f"{arguments.file}: {len(found)} files and folders")


main()
