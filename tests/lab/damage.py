#!/usr/bin/env python3
"""Damages the files of a sandbox on the NAS, and prints what longhaul must find: one JSON array a line with file,
offset, length and pattern.

  damage.py direct SANDBOX SEED COUNT   changes the bytes of COUNT files through the file system
  damage.py disk SANDBOX SEED COUNT     changes a byte of COUNT blocks on the disk below the file system
  damage.py writes SANDBOX SEED COUNT   writes COUNT blocks again through a device mapper that changes a byte of each

The last two need the sandbox on the device mapper /dev/mapper/flaky over /dev/loop0 over DISK. Linux 6.1 cannot change
what is read: dm-flakey accepts it and does nothing (mended by Linux commit 13e79076c89f).
"""
import json, os, random, subprocess, sys

TASKS = ("folder-index", "photo-batch", "incremental-backup", "time-machine")
MIN_BYTES = 40000
MASK = 0x55          # four bits of a byte
BLOCK = 4096
DISK = "/srv/share/.disk"


def kept_files(sandbox):
    found = []
    for task in TASKS:
        for folder, _, names in os.walk(os.path.join(sandbox, task)):
            found += [os.path.join(folder, name) for name in names if not name.endswith(".plist")]
    return sorted(path for path in found if os.path.getsize(path) >= MIN_BYTES)


def damaged(kind, draw, data):
    at = draw.randrange(len(data) - 9000)
    if kind == 0:
        return data[:at] + bytes(4096) + data[at + 4096:], "zeros"
    if kind == 1:
        return data[:at] + bytes([data[at] ^ 4]) + data[at + 1:], {"bit-flips": {"bits": 1}}
    if kind == 2:
        return data[:at], "truncated"
    if kind == 3:
        return data[:at + 4200] + data[at:at + 4096] + data[at + 8296:], {"shifted": {"bytes": -4200}}
    if kind == 4:
        return data + bytes(i % 251 for i in range(500)), "too-long"
    return data[:at] + draw.randbytes(2000) + data[at + 2000:], "unknown"


def bounds(before, after):
    shorter = min(len(before), len(after))
    first = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    if len(before) != len(after):
        return first, max(len(before), len(after)) - first
    last = next(i for i in reversed(range(shorter)) if before[i] != after[i])
    return first, last + 1 - first


def report(sandbox, path, place, pattern):
    name = os.fsencode(os.path.relpath(path, sandbox)).decode()
    try:    # the SMB client here takes names for Latin-1: what it calls one character, the NAS stores as two
        name = name.encode("latin-1").decode()
    except UnicodeError:
        pass
    print(json.dumps([name, place[0], place[1], pattern]))


def direct(sandbox, draw, files):
    for number, path in enumerate(files):
        before = open(path, "rb").read()
        after, pattern = damaged(number % 6, draw, before)
        with open(path, "r+b") as file:
            file.truncate(0)
            file.write(after)
        report(sandbox, path, bounds(before, after), pattern)


def first_sector(path, block):
    """Returns the sector of the device at which a block of a file begins."""
    for line in subprocess.check_output(["filefrag", "-v", path], text=True).splitlines():
        parts = [part.strip(" .") for part in line.replace(":", " ").replace("..", " ").split()]
        if len(parts) >= 6 and parts[0].isdigit() and int(parts[1]) <= block <= int(parts[2]):
            return (int(parts[3]) + block - int(parts[1])) * (BLOCK // 512)
    raise SystemExit(f"{path}: block {block} has no place")


def drawn_bytes(draw, files):
    """Returns a byte of each file: sector of its block, offset in the block, wrong value, path, number of the block."""
    segments = []
    for path in files:
        block = draw.randrange(os.path.getsize(path) // BLOCK)
        inside = draw.randrange(BLOCK)
        with open(path, "rb") as file:
            file.seek(block * BLOCK + inside)
            value = file.read(1)[0] ^ MASK
        segments.append((first_sector(path, block), inside, value, path, block))
    return sorted(segments)


def report_bytes(sandbox, segments):
    for _, inside, _, path, block in segments:
        report(sandbox, path, (block * BLOCK + inside, 1), {"bit-flips": {"bits": 4}})


def disk(sandbox, draw, files):
    os.sync()
    segments = drawn_bytes(draw, files)
    with open(DISK, "r+b") as medium:
        for sector, inside, value, _, _ in segments:
            medium.seek(sector * 512 + inside)
            medium.write(bytes([value]))
    report_bytes(sandbox, segments)


def writes(sandbox, draw, files):
    """Puts a block of each file onto a target of its own, so that exactly one byte of it changes."""
    segments = drawn_bytes(draw, files)
    size = int(subprocess.check_output(["blockdev", "--getsz", "/dev/loop0"]))
    table, begin = [], 0
    for sector, inside, value, _, _ in segments:
        if sector > begin:
            table.append(f"{begin} {sector - begin} linear /dev/loop0 {begin}")
        table.append(f"{sector} 8 flakey /dev/loop0 {sector} 0 60 5 corrupt_bio_byte {inside + 1} w {value} 0")
        begin = sector + 8
    table.append(f"{begin} {size - begin} linear /dev/loop0 {begin}")
    load(table)
    for _, _, _, path, block in segments:
        with open(path, "r+b") as file:
            file.seek(block * BLOCK)
            data = file.read(BLOCK)
            file.seek(block * BLOCK)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    load([f"0 {size} linear /dev/loop0 0"])
    report_bytes(sandbox, segments)


def load(table):
    os.sync()
    subprocess.run(["dmsetup", "--noudevsync", "suspend", "flaky"], check=True)
    subprocess.run(["dmsetup", "load", "flaky"], input="\n".join(table) + "\n", text=True, check=True)
    subprocess.run(["dmsetup", "--noudevsync", "resume", "flaky"], check=True)


def main():
    how, sandbox, seed, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    draw = random.Random(seed)
    files = draw.sample(kept_files(sandbox), count)
    {"direct": direct, "disk": disk, "writes": writes}[how](sandbox, draw, files)
    os.sync()


main()
