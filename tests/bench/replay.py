#!/usr/bin/env python3
"""Compares the rate of the replay of a recording with that of a bare C loop which makes the same calls, in memory.

  LONGHAUL=target/release/longhaul tests/bench/replay.py      needs strace, a C compiler and /dev/shm

The loop (tests/bench/replay.c) is recorded once with strace. Its times are set to a microsecond a call without pauses, because a
replay waits as long as the program did. Then replay and loop run in alternating order, each on a tree of its own that was used
before. Settings: PAIRS (15), FOLDERS (200) and FILES (250) in each. Printed are both medians, in operations a second, and the median
of the ratios replay/loop within pairs, with its range.
"""
import json, os, pathlib, re, shutil, statistics, subprocess, tempfile

PAIRS, FOLDERS, FILES = (int(os.environ.get(name, value)) for name, value in {"PAIRS": 15, "FOLDERS": 200, "FILES": 250}.items())
LONGHAUL = str(pathlib.Path(os.environ.get("LONGHAUL", "target/release/longhaul")).resolve())
READ, SAVED = 5, 4  # operations of a read file, and of one that is saved, too
OPERATIONS = FOLDERS * (FILES * READ + -(-FILES // 8) * SAVED)


def tree(root):
    for folder in range(FOLDERS):
        (root / f"d{folder}").mkdir(parents=True)
        for file in range(FILES):
            (root / f"d{folder}/f{file}").write_bytes(os.urandom(16384))


def without_pauses(trace):
    """Gives the calls of a trace times of a microsecond each, one after another."""
    lines = []
    for number, line in enumerate(trace.splitlines()):
        at = f"{1_795_684_245 + number // 1_000_000}.{number % 1_000_000:06d}"
        line = re.sub(r"^(\d+ +)[\d.]+", rf"\g<1>{at}", line)
        lines.append(re.sub(r"<[\d.]+>$", "<0.000001>", line))
    return "\n".join(lines) + "\n"


def longhaul(home, *words):
    options = ["--database", home / "longhaul.sqlite", "--config", home / "config.toml"]
    return subprocess.run([LONGHAUL, *words, *options], check=True, capture_output=True, text=True, cwd=home).stdout


def replay(home):
    lines = [json.loads(line) for line in longhaul(home, "run", "--workload", "your-day", "--json").splitlines()]
    run = next(line for line in lines if line["type"] == "run")
    assert run["outcome"] == "ok" and run["facts"]["replay"] == f"{OPERATIONS + 2} operations, 1 threads", run
    return next(figure for phase in run["phases"] for figure in phase["figures"] if figure["name"] == "total")["value"]


def pair(by_loop, home, number):
    """Returns the seconds of a loop and of a replay; which one is first alternates."""
    if number % 2:
        replayed = replay(home)
        return run_loop(by_loop), replayed
    return run_loop(by_loop), replay(home)


def run_loop(by_loop):
    return int(subprocess.run(by_loop, check=True, capture_output=True).stdout) / 1e9


def main():
    home = pathlib.Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        loop = home / "loop"
        subprocess.run(["cc", "-O2", "-o", loop, pathlib.Path(__file__).with_name("replay.c")], check=True)
        by_loop = [loop, home / "tree", str(FOLDERS), str(FILES)]
        tree(home / "tree")
        subprocess.run(["strace", "-f", "-q", "-ttt", "-T", "-y", "-s", "0", "-o", home / "trace", *by_loop], check=True, capture_output=True)
        (home / "trace").write_text(without_pauses((home / "trace").read_text()))
        (home / "target").mkdir()
        (home / "config.toml").write_text(f'[targets.memory]\npath = "{home / "target"}"\n')
        longhaul(home, "record", "--import", home / "trace", "--on", home / "tree", "--name", "loop")
        longhaul(home, "record", "use", "loop")
        pairs = [pair(by_loop, home, number) for number in range(PAIRS + 1)][1:]
    finally:
        shutil.rmtree(home)
    for name, seconds in zip(("loop", "replay"), zip(*pairs)):
        print(f"{name:7} {OPERATIONS / statistics.median(seconds):12,.0f} operations a second")
    ratios = sorted(loop / replayed for loop, replayed in pairs)
    print(f"replay/loop {statistics.median(ratios):.2f} (range {ratios[0]:.2f} to {ratios[-1]:.2f}), {PAIRS} pairs")


main()
