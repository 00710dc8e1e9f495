"""Asks every engine the weekly questions of a collection and compares the answers with those of longhaul.

usage: compare.py FOLDER ENGINE...
FOLDER has a collection and `expected.json`, as `simulated_fleet` writes them. Engines: duckdb, chdb, spark, sail.
Prints one line per engine and question, with the processor time of this process, which is that of DuckDB and chDB; ends with 1 if an answer differs."""

import json
import math
import os
import sys
import time
from collections import defaultdict
from pathlib import Path

SQL = Path(__file__).resolve().parents[2] / "docs" / "fleet"
QUESTIONS = ["latency", "ratio", "days", "outcomes", "freshness", "integrity", "refused"]


def text_of(engine, name, folder, week):
    text = (SQL / engine / f"{name}.sql").read_text()
    return text.replace("FLEET", str(folder)).replace("WEEK", week)


def statements(text):
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
    return [part.strip() for part in "\n".join(lines).split(";") if part.strip()]


class DuckDb:
    folder = "duckdb"

    def __init__(self):
        import duckdb

        self.connection = duckdb.connect()
        self.connection.execute("SET threads = 2")

    def ask(self, statement):
        answer = self.connection.execute(statement)
        if answer.description is None:
            return []
        names = [column[0] for column in answer.description]
        return [dict(zip(names, row)) for row in answer.fetchall()]


class ChDb:
    folder = "clickhouse"

    def __init__(self):
        from chdb.session import Session

        self.session = Session()
        self.session.query("SET max_threads = 2")

    def ask(self, statement):
        answer = str(self.session.query(statement, "JSONEachRow"))
        return [json.loads(line) for line in answer.splitlines() if line.strip()]


class Spark:
    folder = "spark"

    def __init__(self):
        from pyspark.sql import SparkSession

        # Two executor processes on this machine, as on a cluster, unless less is asked for.
        master = os.environ.get("LONGHAUL_SPARK_MASTER", "local-cluster[2,1,1536]")
        builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
        builder = builder.config("spark.sql.shuffle.partitions", "4").config("spark.driver.memory", "2g")
        self.session = builder.config("spark.executor.memory", "1536m").getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")

    def ask(self, statement):
        return [row.asDict() for row in self.session.sql(statement).collect()]


class Sail(Spark):
    def __init__(self):
        from pysail.spark import SparkConnectServer
        from pyspark.sql import SparkSession

        self.server = SparkConnectServer()
        self.server.start(background=True)
        port = self.server.listening_address[1]
        self.session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()


ENGINES = {"duckdb": DuckDb, "chdb": ChDb, "spark": Spark, "sail": Sail}


def close(found, expected):
    if found is None or expected is None:
        return found is expected
    return math.isclose(float(found), float(expected), rel_tol=1e-9, abs_tol=1e-12)


def differences_of_latency(found, expected):
    keys = ["site", "protocol", "workload", "cache", "operation"]
    found = {tuple(row[key] for key in keys): row for row in found}
    wanted = {tuple(row[key] for key in keys): row for row in expected["latency"]}
    yield from (f"group {key} is only on one side" for key in found.keys() ^ wanted.keys())
    for key in found.keys() & wanted.keys():
        row, other = found[key], wanted[key]
        for name in ["calls", "errors"]:
            if int(row[name]) != other[name]:
                yield f"{key}: {name} {row[name]}, longhaul {other[name]}"
        # Buckets are 1.09 % wide: equal values within a millionth are the same bucket.
        for name in ["p50_ns", "p95_ns", "p99_ns"]:
            if not close(row[name], other[name]):
                yield f"{key}: {name} {row[name]}, longhaul {other[name]}"


def day_number(date):
    import datetime

    return (datetime.date.fromisoformat(date) - datetime.date(1970, 1, 1)).days


def differences_of_days(found, expected):
    by_pair = defaultdict(dict)
    for row in found:
        by_pair[row["source"], row["metric"], row["a"], row["b"]][int(row["day"])] = float(row["ratio"])
    for pair in expected["comparisons"]:
        key = pair["source"], pair["metric"], pair["a"], pair["b"]
        days, known = by_pair.get(key, {}), {day_number(date): ratio for date, ratio in pair["days"]}
        if pair["is_whole"] and days.keys() != known.keys():
            yield f"{key}: {len(days)} valid days, longhaul {len(known)}"
        for day, ratio in known.items():
            if not close(days.get(day), ratio):
                yield f"{key}, day {day}: ratio {days.get(day)}, longhaul {ratio}"


def differences_of_ratio(found, expected):
    """Recomputes the pooled ratio from the days of longhaul. Pairs whose ratio changed are not recomputed: longhaul uses only
    their newest days, so groups with one of them are compared by their number of machines."""
    protocols = {}
    for row in expected["comparisons"]:
        protocols[row["source"]] = sorted([row["a"], row["b"]])
    groups = defaultdict(list)
    for pair in expected["comparisons"]:
        low, high = protocols[pair["source"]]
        groups[pair["site"], low, high, pair["metric"]].append((pair, 1 if pair["a"] == low else -1))
    found = {(row["site"], row["protocol_a"], row["protocol_b"], row["metric"]): row for row in found}
    for key, pairs in groups.items():
        row = found.get(key)
        if row is None:
            yield f"{key} is missing"
            continue
        if int(row["machines"]) != len(pairs):
            yield f"{key}: {row['machines']} machines, longhaul {len(pairs)}"
        if all(pair["is_whole"] and pair["days"] for pair, _ in pairs):
            means = [sign * sum(math.log(ratio) for _, ratio in pair["days"]) / len(pair["days"]) for pair, sign in pairs]
            if not close(row["mean_log_ratio"], sum(means) / len(means)):
                yield f"{key}: mean {row['mean_log_ratio']}, longhaul {sum(means) / len(means)}"


def differences_of_counts(name, columns):
    def differences(found, expected):
        found = {(row["site"], row["protocol"]): row for row in found}
        for group in expected[name]:
            key = group["site"], group["protocol"]
            for column, count in columns.items():
                value, wanted = int(found.get(key, {}).get(column, -1)), group["counts"].get(count, 0)
                if value != wanted:
                    yield f"{key}: {column} {value}, longhaul {wanted}"
    return differences


DIFFERENCES = {
    "latency": differences_of_latency,
    "days": differences_of_days,
    "ratio": differences_of_ratio,
    "outcomes": differences_of_counts(
        "outcomes", {"ok": "ok", "failed": "error", "hung": "hung", "unavailable": "unavailable"}
    ),
    "freshness": differences_of_counts("freshness", {"seen": "seen", "not_seen": "not_seen"}),
    "integrity": differences_of_counts("integrity", {"bytes": "bytes", "mismatches": "mismatches"}),
    "refused": lambda found, expected: (f"refused: {row}" for row in found),
}


def compare(name, folder, expected):
    engine, wrong, total, total_processor = ENGINES[name](), 0, 0.0, 0.0
    began = time.monotonic()
    for statement in statements(text_of(engine.folder, "sources", folder, expected["week"])):
        engine.ask(statement)
    print(f"{name:8} views      {time.monotonic() - began:6.2f} s", flush=True)
    for table, rows in expected["rows"].items():
        counted = int(engine.ask(f"SELECT count(*) AS n FROM {table}")[0]["n"])
        if counted != rows:
            wrong += 1
            print(f"{name:8} {table}: {counted} rows, longhaul {rows}")
    for question in QUESTIONS:
        (statement,) = statements(text_of(engine.folder, question, folder, expected["week"]))
        began, used = time.monotonic(), time.process_time()
        rows = engine.ask(statement)
        seconds, processor = time.monotonic() - began, time.process_time() - used
        if question not in ("days", "refused"):
            total, total_processor = total + seconds, total_processor + processor
        differences = list(DIFFERENCES[question](rows, expected))
        wrong += len(differences)
        print(f"{name:8} {question:10} {seconds:6.2f} s (processor {processor:6.2f} s) {len(rows):7} rows  {len(differences)} differences", flush=True)
        for difference in differences[:5]:
            print(f"    {difference}")
    for statement in statements(text_of(engine.folder, "grafana", folder, expected["week"])):
        engine.ask(statement)
    machines = engine.ask("SELECT sum(machines) AS n FROM weekly_machines WHERE week = '" + expected["week"] + "'")
    print(f"{name:8} the weekly answer took {total:.2f} s, {total_processor:.2f} s of processor time; {int(machines[0]['n'])} machines", flush=True)
    return wrong


def main():
    folder, names = Path(sys.argv[1]).resolve(), sys.argv[2:]
    expected = json.loads((folder / "expected.json").read_text())
    wrong = sum(compare(name, folder, expected) for name in names)
    print(f"{len(names)} engines, {wrong} differences")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
