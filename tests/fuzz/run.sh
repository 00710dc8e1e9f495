#!/usr/bin/env bash
# Runs fuzz targets and prints a table. No input may allocate more than 64 MB in one piece, or take more than 10 seconds: a second,
# and time in which other programs have the processor. The column `slowest` is in whole seconds.
#   tests/fuzz/run.sh [--runs N] [--seconds N] [TARGET...]     each target ends at the first limit (default: 60 seconds); default: all
# Starts from real outputs (the fixtures of the tests) and from the inputs in corpus/; found inputs are kept in target/corpus/.
# Needs the nightly compiler and cargo-fuzz: cargo install cargo-fuzz. Ends with 1 if a target fails.
set -euo pipefail
# SQLite defines two tables of one name in one file.
export ASAN_OPTIONS=detect_odr_violation=0
cd "$(dirname "${BASH_SOURCE[0]}")"
limits=()
while [[ ${1:-} == --* ]]; do
  case $1 in
    --runs) limits+=("-runs=$2") ;;
    --seconds) limits+=("-max_total_time=$2") ;;
    *) echo "unknown option $1: see the first lines of this script" >&2; exit 2 ;;
  esac
  shift 2
done
[ ${#limits[@]} -gt 0 ] || limits=(-max_total_time=60)
[ $# -gt 0 ] || mapfile -t targets < <(cargo +nightly fuzz list --fuzz-dir .)
[ $# = 0 ] || targets=("$@")
fixtures=(../../daemon/*/tests/fixtures ../../daemon/measure/tests/fixtures/macos)
programs=target/$(rustc +nightly -vV | sed -n 's/^host: //p')/release
cargo +nightly fuzz build --fuzz-dir . >&2
mkdir -p target/logs
# Targets with files of their own put them into memory; a fuzzing program ends without removing them.
TMPDIR=$(mktemp -d -p /dev/shm)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
failed=0
printf '%-18s %12s %10s %12s %8s  %s\n' target executions 'per second' 'memory (MB)' slowest result
for target in "${targets[@]}"; do
  found=target/corpus/$target log=target/logs/$target.txt
  mkdir -p "$found" "target/crashes/$target"
  seeds=("${fixtures[@]}")
  [ ! -d "corpus/$target" ] || seeds+=("corpus/$target")
  result=passed
  "$programs/$target" "${limits[@]}" -timeout=10 -malloc_limit_mb=64 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 \
    -artifact_prefix="target/crashes/$target/" "$found" "${seeds[@]}" >"$log" 2>&1 </dev/null || { result="FAILED, see $log"; failed=1; }
  stat() { sed -n "s/^stat::$1: *//p" "$log" | tail -1; }
  printf '%-18s %12s %10s %12s %8s  %s\n' "$target" "$(stat number_of_executed_units)" "$(stat average_exec_per_sec)" \
    "$(stat peak_rss_mb)" "$(stat slowest_unit_time_sec)" "$result"
done
exit $failed
