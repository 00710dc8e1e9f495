#!/usr/bin/env python3
"""Compares two builds of longhaul in one run: report, pages, telemetry export and idle cost, each with its own synthetic history.

  tests/bench/versions.py BEFORE AFTER [PART ...]   BEFORE and AFTER are folders with release programs (target/release);
                                                    parts: report pages telemetry catchup idle; all of them by default

Needs `cargo build --release --workspace --exclude longhaul-fuzz --bins --examples` of both versions. Settings: PAIRS (20), in alternating order; WEEKS (52)
of history; SAMPLE_DAYS (60) of samples; IDLE (120), the seconds of an idle window, after SETTLE (330) quiet seconds; FOLDER, in
which databases are made once and kept. Printed are both medians and the median of the ratios after/before within pairs, with its
95 % interval (ranks). Processor time is that of the measured process alone (rusage, /proc/PID/task/*/schedstat), so that other work on
the machine counts little. Telemetry goes to a receiver in this script that accepts everything.
"""
import datetime, glob, http.client, http.server, json, math, os, pathlib, re, shutil, statistics, subprocess, sys, tempfile, threading, time

SETTINGS = {"PAIRS": 20, "WEEKS": 52, "SAMPLE_DAYS": 60, "IDLE": 120, "SETTLE": 330}
PAIRS, WEEKS, SAMPLE_DAYS, IDLE, SETTLE = (int(os.environ.get(name, value)) for name, value in SETTINGS.items())
START_US, DAY_US = 1_767_225_600_000_000, 86_400_000_000  # begin of the samples of daemon/store/examples/samples.rs
WEEK = f"/weeks/{datetime.date(2025, 11, 3) + datetime.timedelta(weeks=WEEKS - 1):%G-W%V}"  # the last one of the history
LATENCY = f"/latency?days=28&until={START_US + SAMPLE_DAYS * DAY_US}"
home = pathlib.Path(os.environ.get("FOLDER") or tempfile.mkdtemp(prefix="longhaul-versions-"))


class Version:
    def __init__(self, name, programs):
        self.name, self.programs, self.home = name, pathlib.Path(programs).resolve(), home / name
        # Apart from the database, whose writes would wake up the watch of the folders that lead to the configuration.
        self.config = home.with_name(f"{home.name}-config-{name}") / "config.toml"
        for target in ("smb", "nfs", "afp", "local"):
            (self.home / target).mkdir(parents=True, exist_ok=True)
        self.configure()

    def configure(self, telemetry=""):
        lines = ['scale = "quick"', 'workloads = ["folder-index"]', "[schedule]", 'quiet-hours = "00:00-23:59"', "[sampling]", 'probe-when = "never"']
        lines += ["[telemetry]", "keep-days = 36500", "interval-seconds = 1", telemetry]
        lines += [f'[targets.{name}]\npath = "{self.home / name}"' for name in ("smb", "nfs", "afp", "local")]
        self.config.parent.mkdir(exist_ok=True)
        self.config.write_text("\n".join(lines) + "\n")

    def history(self, name, weeks):
        path = self.home / name
        if not path.exists():
            make = [self.program("longhaul-bench"), "synthetic-history", path, "--weeks", str(weeks)]
            subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
        return path

    def samples(self):
        path = self.home / "samples.sqlite"
        if not path.exists():
            subprocess.run([self.program("examples/samples"), self.home, str(SAMPLE_DAYS)], check=True, stdout=subprocess.DEVNULL)
        return path

    def program(self, name):
        return str(self.programs / name)

    def call(self, database, *words):
        """Runs longhaul and returns its wall time and processor time in seconds."""
        began = time.perf_counter()
        child = subprocess.Popen([self.program("longhaul"), "--config", self.config, "--database", database, *words],
                                 stdout=subprocess.DEVNULL, env={**os.environ, "TZ": "UTC"})
        _, status, used = os.wait4(child.pid, 0)
        assert os.waitstatus_to_exitcode(status) in (0, 5), (self.name, words, status)
        return {"wall, s": time.perf_counter() - began, "processor, s": used.ru_utime + used.ru_stime}


class Service:
    def __init__(self, version, database):
        began = time.perf_counter()
        self.child = subprocess.Popen([version.program("longhauld"), "--config", version.config, "--database", database,
                                       "--log-directory", version.home / "log"], stderr=subprocess.DEVNULL)
        contact = database.with_suffix(".daemon.json")
        while True:
            try:
                address = json.loads(contact.read_text())
                if address["pid"] == self.child.pid:
                    break
            except (OSError, ValueError):
                pass
            assert self.child.poll() is None, "longhauld has ended"
            time.sleep(0.001)
        self.ready = time.perf_counter() - began
        self.port = address["port"]

    def get(self, path, encoding="gzip"):
        """Returns the seconds to the first byte, and the body as sent."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.connect()
        began = time.perf_counter()
        connection.request("GET", path, headers={"Accept-Encoding": encoding})
        answer = connection.getresponse()
        seconds = time.perf_counter() - began
        body = answer.read()
        connection.close()
        assert answer.status == 200, (path, answer.status, body[:200])
        return seconds, body

    def files(self, pattern):
        return [pathlib.Path(name).read_text() for name in glob.glob(f"/proc/{self.child.pid}/{pattern}")]

    def processor(self):
        return sum(int(text.split()[0]) for text in self.files("task/*/schedstat")) / 1e9

    def wakeups(self):
        return sum(int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", text, re.M)[1]) for text in self.files("task/*/status"))

    def memory(self, key="VmRSS"):
        return int(re.search(rf"^{key}:\s+(\d+)", self.files("status")[0], re.M)[1]) / 1000

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.terminate()
        self.child.wait()


class Receiver(http.server.BaseHTTPRequestHandler):
    """Accepts every OTLP message."""
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def compare(title, pairs, measure):
    """Measures pairs in alternating order and prints a row per figure."""
    rows = {"before": [], "after": []}
    for pair in range(pairs):
        for version in versions if pair % 2 == 0 else versions[::-1]:
            rows[version.name].append(measure(version))
    for figure in rows["before"][0]:
        before, after = ([row[figure] for row in rows[name]] for name in ("before", "after"))
        ratios = sorted(b / a if a else math.nan for a, b in zip(before, after))
        low = max(0, int(pairs / 2 - 0.98 * math.sqrt(pairs)) - 1)
        print(f"| {title}: {figure} | {statistics.median(before):.4g} | {statistics.median(after):.4g} | "
              f"{statistics.median(ratios):.3f} ({ratios[low]:.3f} to {ratios[pairs - 1 - low]:.3f}) | {pairs} |", flush=True)


def report():
    def measure(version):
        return version.call(version.history("history.sqlite", WEEKS), "report", WEEK[-8:])
    compare(f"report of a week, {WEEKS} weeks of data", PAIRS, measure)


def pages():
    def measure(database, path):
        def measured(version):
            with Service(version, database(version)) as service:
                first, _ = service.get(path)
                began = service.processor()
                warm = [service.get(path)[0] for _ in range(20)]
                used = (service.processor() - began) / 20
                small, large = len(service.get(path)[1]), len(service.get(path, "identity")[1])
                return {"start to ready, ms": service.ready * 1e3, "first byte after the start, ms": first * 1e3,
                        "first byte later, ms": statistics.median(warm) * 1e3, "processor per page, ms": used * 1e3,
                        "page compressed, kB": small / 1e3, "page, kB": large / 1e3, "resident after it, MB": service.memory()}
        return measured
    compare(f"week page, {WEEKS} weeks of data", PAIRS, measure(lambda version: version.history("history.sqlite", WEEKS), WEEK))
    compare(f"overview, {WEEKS} weeks of data", PAIRS, measure(lambda version: version.history("history.sqlite", WEEKS), "/"))
    compare("latency page, 28 days", PAIRS, measure(Version.samples, LATENCY))


def receiver():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for version in versions:
        version.configure(f'endpoint = "http://127.0.0.1:{server.server_port}"')


def telemetry():
    receiver()
    compare("replay of two weeks of telemetry", PAIRS, lambda version: version.call(
        version.history("weeks.sqlite", 2), "telemetry", "replay", "--from", "2020-01-01", "--to", "2026-11-01"))


def catchup():
    receiver()

    def measure(version):
        database = version.home / "late.sqlite"
        for old in version.home.glob("late.*"):
            old.unlink()
        shutil.copy(version.history("weeks.sqlite", 2), database)
        began = time.perf_counter()
        with Service(version, database) as service:
            waiting = 1
            while waiting:
                time.sleep(0.25)
                signals = json.loads(service.get("/api/v1/status", "identity")[1])["telemetry"]["signals"]
                waiting = sum(signal["pending"] for signal in signals)
            return {"wall, s": time.perf_counter() - began, "processor, s": service.processor(), "peak, MB": service.memory("VmHWM")}
    compare("service catches up on two weeks", max(4, PAIRS // 2), measure)


def idle():
    def facts(service):
        return service.wakeups(), service.processor(), service.memory()
    services = [(version.name, data, Service(version, database)) for version in versions for data, database in
                (("new", version.home / "new.sqlite"), (f"{WEEKS} weeks of data", version.history("history.sqlite", WEEKS)))]
    time.sleep(SETTLE)
    for window in range(3):
        before = [facts(service) for *_, service in services]
        time.sleep(IDLE)
        for (name, data, service), then in zip(services, before):
            now = facts(service)
            print(f"| idle {IDLE} s, window {window + 1}, {data}: {name} | {(now[0] - then[0]) / IDLE:.3f} wake-ups/s | "
                  f"{100 * (now[1] - then[1]) / IDLE:.4f} % processor | {now[2]:.1f} MB |", flush=True)
    for *_, service in services:
        service.__exit__()


versions = [Version("before", sys.argv[1]), Version("after", sys.argv[2])]
parts = {part.__name__: part for part in (report, pages, telemetry, catchup, idle)}
try:
    print("| what | before | after | after / before: median of pairs (95 % interval) | pairs |\n|---|---:|---:|---:|---:|")
    for part in sys.argv[3:] or parts:
        parts[part]()
finally:
    if "FOLDER" not in os.environ:
        for folder in (home, *(version.config.parent for version in versions)):
            shutil.rmtree(folder)
