#!/usr/bin/env bash
# Runs fuzz targets and prints a table. No input may allocate more than 64 MB in one piece, or take more than 10 seconds: a second,
# and time in which other programs have the processor. The column `slowest` is in whole seconds.
#   tests/fuzz/run.sh [--runs N] [--seconds N] [--timeout N] [--at-once N] [--without-sanitizer | --quick] [TARGET...]
#     each target ends at the first limit (default: 60 seconds); --timeout: seconds for an input (default: 10); --at-once: how many
#     targets run at the same time (default: 1); --without-sanitizer: for millions of inputs, but memory errors of unsafe code go
#     unseen (`cifs` tried 2.7 and 2.9 times as many in 15 s); --quick: also without optimization and with the
#     crates of others as `cargo test` has built them, which saves most of the build; default of TARGET: all
# Starts from real outputs (the fixtures of the tests); found inputs are kept in target/corpus/.
# Needs no other compiler than the tests do: RUSTC_BOOTSTRAP opens the sanitizer of a stable compiler. Ends with 1 if a target fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# SQLite defines two tables of one name in one file.
export ASAN_OPTIONS=detect_odr_violation=0
# With level 1 and fewer traced comparisons (below) the build took a quarter less processor time than with level 3 (once, beside other
# builds). In 12 s with three targets at once `config` and `cifs` tried 1.5 and 2 times as many inputs, `http` 0.6 times. The sanitizer
# names functions by their symbols.
export CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_STRIP=none \
  CARGO_PROFILE_RELEASE_LTO=false
limits='' timeout=10 at_once=1 sanitizer=-Zsanitizer=address folder=target limit='-malloc_limit_mb=64' quick=''
while [[ ${1:-} == --* ]]; do
  case $1 in
    --runs) limits+=" -runs=$2" ;;
    --seconds) limits+=" -max_total_time=$2" ;;
    --timeout) timeout=$2 ;;
    --at-once) at_once=$2 ;;
    --without-sanitizer | --quick)
      sanitizer='' folder=target/without-sanitizer limit=''
      [ "$1" != --quick ] || quick=1
      mkdir -p "$folder"
      cc -O2 -shared -fPIC -o "$folder/limit_allocations.so" limit_allocations.c
      export LONGHAUL_PRELOAD=$PWD/$folder/limit_allocations.so CARGO_PROFILE_RELEASE_OPT_LEVEL=2
      # Freed memory stays with the program: with large pieces from the kernel for each input, `trace_strace` tried half as many.
      export MALLOC_MMAP_THRESHOLD_=268435456 MALLOC_TRIM_THRESHOLD_=268435456
      shift
      continue
      ;;
    *) echo "unknown option $1: see the first lines of this script" >&2; exit 2 ;;
  esac
  shift 2
done
[ $# -gt 0 ] || mapfile -t targets < <(cd fuzz_targets && ls ./*.rs | sed 's|^\./\(.*\)\.rs$|\1|')
[ $# = 0 ] || targets=("$@")
platform=$(rustc -vV | sed -n 's/^host: //p')
# The options of cargo-fuzz: which branches an input takes, and an allocator that checks each access. Not its tracing of compared
# numbers, which took 43 % of the time of `cifs`; compared texts, which the parsers here look for, are traced by libFuzzer itself.
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
  -Cllvm-args=-simplifycfg-branch-fold-threshold=0
  -Cdebug-assertions --cfg fuzzing"
export coverage
programs=$folder/$platform/release
if [ -n "$quick" ]; then
  # --workspace selects the same features as the tests.
  programs=${CARGO_TARGET_DIR:-../../target}/debug
  RUSTC_WORKSPACE_WRAPPER=$PWD/instrument cargo build --quiet --workspace --locked "${targets[@]/#/--bin=}" >&2
else
  RUSTC_BOOTSTRAP=1 CARGO_INCREMENTAL=0 RUSTFLAGS="$coverage $sanitizer" \
    cargo build --quiet --release --locked --target "$platform" --target-dir "$folder" "${targets[@]/#/--bin=}" >&2
fi
mkdir -p target/logs
# Targets with files of their own put them into memory; a fuzzing program ends without removing them.
TMPDIR=$(mktemp -d -p /dev/shm)
export TMPDIR limits limit timeout programs
trap 'rm -rf "$TMPDIR"' EXIT

fuzz() {   # runs one target and prints its row; of one that fails also the end of its output, which has the input in Base64
  local found=target/corpus/$1 log=target/logs/$1.txt result=passed leaks=''
  # The search for leaks after each input took a third of the time of this one.
  [ "$1" != http ] || leaks=-detect_leaks=0
  mkdir -p "$found" "target/crashes/$1"
  # shellcheck disable=SC2086  # several options
  LD_PRELOAD=${LONGHAUL_PRELOAD:-} "$programs/$1" $limits $limit -timeout="$timeout" -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 $leaks \
    -artifact_prefix="target/crashes/$1/" "$found" ../../daemon/*/tests/fixtures ../../daemon/measure/tests/fixtures/macos >"$log" 2>&1 </dev/null || result="FAILED, see $log"
  stat() { sed -n "s/^stat::$1: *//p" "$log" | tail -1; }
  printf '%-18s %12s %10s %12s %8s  %s\n' "$1" "$(stat number_of_executed_units)" "$(stat average_exec_per_sec)" \
    "$(stat peak_rss_mb)" "$(stat slowest_unit_time_sec)" "$result"
  [ "$result" = passed ] || { tail -n 30 "$log"; return 1; }
}
export -f fuzz

[ -n "$limits" ] || limits='-max_total_time=60'
printf '%-18s %12s %10s %12s %8s  %s\n' target executions 'per second' 'memory (MB)' slowest result
# shellcheck disable=SC2016  # expanded by the inner shell
printf '%s\n' "${targets[@]}" | xargs -P "$at_once" -n 1 bash -c 'fuzz "$0"' || exit 1
