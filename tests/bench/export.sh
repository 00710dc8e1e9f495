#!/usr/bin/env bash
# Compares the export of a year of results with DuckDB and sqlite3 on the same data, and prints a Markdown table.
#
#   LONGHAUL=target/release/longhaul tests/bench/export.sh [folder on a local disk]
#
# A year has 4 targets x 17 rounds a day x 4 workloads. Each line has five pairs of runs in alternating order; a ratio is computed
# within a pair. The script installs nothing and checks no times. LONGHAUL_PYTHON is a Python with duckdb; WEEKS and PAIRS set the
# amount of work.
set -euo pipefail
export LC_ALL=C

longhaul=${LONGHAUL:-target/release/longhaul}
bench=$(dirname "$longhaul")/longhaul-bench
python=${LONGHAUL_PYTHON:-python3}
pairs=${PAIRS:-5}
weeks=${WEEKS:-52}

[[ -x $longhaul ]] || { echo "$longhaul is missing: run cargo build --release, or set LONGHAUL" >&2; exit 1; }
here=$(mktemp -d "${1:-${TMPDIR:-/tmp}}/longhaul-export.XXXXXX")
trap 'rm -rf "$here"' EXIT

# seconds COMMAND...: prints how many seconds a command takes.
seconds() {
    local began=$EPOCHREALTIME
    "$@" >/dev/null 2>&1
    awk -v began="$began" -v ended="$EPOCHREALTIME" 'BEGIN { printf "%.6f\n", ended - began }'
}
ours() { seconds "$longhaul" --database "$here/year.sqlite" export "$1" --format "$2" --output "$here/$1.$2"; }

# line WHAT ROWS OURS [PEER]: prints a table row; OURS and PEER are functions that print seconds.
line() {
    local what=$1 rows=$2 our_turn=$3 peer_turn=${4:-} figures='' pair a b=0
    for ((pair = 0; pair < pairs; pair++)); do
        if ((pair % 2 == 0)); then
            a=$("$our_turn")
            if [[ $peer_turn ]]; then b=$("$peer_turn"); fi
        else
            if [[ $peer_turn ]]; then b=$("$peer_turn"); fi
            a=$("$our_turn")
        fi
        figures+="$a $b"$'\n'
    done
    printf '%s' "$figures" | sort -g | awk -v what="$what" -v rows="$rows" '
        { n++; a[n] = rows / $1; if ($2 > 0) { b[n] = rows / $2; ratio[n] = $2 / $1 } }
        function middle(list, count,   i, j, held) {
            for (i = 2; i <= count; i++) {
                held = list[i]
                for (j = i - 1; j > 0 && list[j] > held; j--) list[j + 1] = list[j]
                list[j + 1] = held
            }
            return count % 2 ? list[(count + 1) / 2] : (list[count / 2] + list[count / 2 + 1]) / 2
        }
        END {
            printf "| %s | %d | %.0f (%.0f to %.0f) |", what, rows, middle(a, n), a[1], a[n]
            if (1 in ratio) printf " %.0f | %.2f (%.2f to %.2f) |", middle(b, n), middle(ratio, n), ratio[1], ratio[n]
            else printf " - | - |"
            printf " %d |\n", n
        }'
}

"$bench" synthetic-history "$here/year.sqlite" --weeks "$weeks"
for format in csv parquet; do ours runs "$format" >/dev/null; done
rows=$(($(wc -l <"$here/runs.csv") - 1))

our_parquet() { ours runs parquet; }
our_csv() { ours runs csv; }
our_json() { ours runs json; }
our_ops() { ours ops parquet; }
# Only DuckDB's writing is timed: it has started and has the table in memory before the clock starts.
duckdb_parquet() {
    "$python" - "$here" <<'PYTHON'
import duckdb, sys, time
duckdb.sql("SET threads = 1")
duckdb.sql(f"CREATE TABLE runs AS SELECT * FROM read_parquet('{sys.argv[1]}/runs.parquet')")
began = time.perf_counter()
duckdb.sql(f"COPY runs TO '{sys.argv[1]}/theirs.parquet' (FORMAT parquet, COMPRESSION zstd)")
print(f"{time.perf_counter() - began:.6f}")
PYTHON
}
# sqlite3 exports only the stored rows of runs: numbers instead of names, no local time, no columns for metrics.
sqlite_csv() {
    seconds sqlite3 -readonly -csv -header "$here/year.sqlite" ".output $here/theirs.csv" \
        "SELECT number, round, epoch, target, workload, scale, outcome, started_us, seconds, endpoints FROM run"
}

echo
echo "| what; peer | rows | ours, rows/s (range) | peer, rows/s | times as fast, median of pairs (range) | n |"
echo "|---|---:|---:|---:|---:|---:|"
if "$python" -c 'import duckdb' 2>/dev/null; then
    line "runs to Parquet; DuckDB, one thread" "$rows" our_parquet duckdb_parquet
else
    echo "skipped: DuckDB is not installed for $python" >&2
    line "runs to Parquet" "$rows" our_parquet
fi
if command -v sqlite3 >/dev/null; then
    line "runs to CSV; sqlite3 -csv" "$rows" our_csv sqlite_csv
else
    echo "skipped: sqlite3 is not installed" >&2
    line "runs to CSV" "$rows" our_csv
fi
line "runs to JSON Lines" "$rows" our_json
line "ops to Parquet, with histograms" "$("$longhaul" --database "$here/year.sqlite" export ops --format json 2>/dev/null | wc -l)" our_ops
echo
echo "Ours: the whole process, including reading SQLite. DuckDB: only writing, with the table in memory. sqlite3: the whole"
echo "process, with fewer columns. Sizes: $(du -h "$here/runs.csv" | cut -f1) CSV, $(du -h "$here/runs.parquet" | cut -f1) Parquet, $(du -h "$here/ops.parquet" | cut -f1) ops as Parquet."
