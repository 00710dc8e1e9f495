"""Holds a lock on four bytes of a file, and tries it through other paths to the same file, each in a process of its own.

Arguments: the path through which the lock is held, and the others. Prints `held` (the lock keeps the other process out),
`taken` (both have it) or the error for each of them.
"""
import errno
import fcntl
import os
import sys


def attempt(path):
    with open(path, "r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 4)
        except OSError as error:
            return "held" if error.errno in (errno.EAGAIN, errno.EACCES) else error.strerror
    return "taken"


holder, *others = sys.argv[1:]
with open(holder, "w+b") as file:
    file.write(b"locked")
    file.flush()
    os.fsync(file.fileno())
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 4)
    for other in others:
        sys.stdout.flush()
        if os.fork() == 0:
            print(attempt(other), flush=True)
            os._exit(0)
        os.wait()
os.remove(holder)
