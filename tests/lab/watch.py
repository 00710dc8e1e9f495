"""Reads the first 4 KiB of a file five times a second, past all caches, and prints start and end of each read in seconds.

Each line is one system call, so that the end of a line is the moment at which the server answered again.
Arguments: the file, and for how many seconds to read.
"""
import mmap
import os
import sys
import time

path, seconds = sys.argv[1], float(sys.argv[2])
page = mmap.mmap(-1, 4096)
file = os.open(path, os.O_RDONLY | os.O_DIRECT)
end = time.time() + seconds
while time.time() < end:
    began = time.time()
    try:
        os.preadv(file, [page], 0)
    except OSError as error:
        print(error, file=sys.stderr)
    print(f"{began:.6f} {time.time():.6f}", flush=True)
    time.sleep(0.2)
