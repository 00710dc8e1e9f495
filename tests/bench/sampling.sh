#!/usr/bin/env bash
# Measures the memory and processor time of sampling ten targets, compared with the same service without sampling during the same
# minutes, including the workers. Also measures the time to read eight weeks out of a year of samples.
#
#   tests/bench/sampling.sh [SECONDS]      SECONDS is the measuring time, 300 by default; builds the release programs first
#
# Both services have ten local folders as targets and run no round. The sampling one sends a request to each every 5 s (touch =
# always) and reads all counters every 10 s, as a default configuration does on ten shares that a user uses.
# Memory is printed as private (Private_Clean and Private_Dirty of /proc/PID/smaps_rollup) and as proportional (Pss), in which
# the program text that all workers share counts once. Processor time is utime and stime of /proc/PID/stat, including ended
# children, in ticks of 10 ms.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seconds=${1:-300}
programs=${CARGO_TARGET_DIR:-target}/release
home=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; wait 2>/dev/null; rm -rf "$home"' EXIT

cargo build --quiet --release --locked --workspace --exclude longhaul-fuzz --bins --examples

start() {   # start NAME LINES: starts a service with these lines in [sampling]
  local name=$1 at=$home/$1
  mkdir -p "$at"
  {
    printf 'scale = "quick"\nworkloads = ["folder-index"]\n[schedule]\nquiet-hours = "00:00-23:59"\n[sampling]\n%s\n' "$2"
    for number in $(seq 10); do mkdir "$at/$number"; printf '[targets.t%s]\npath = "%s"\n' "$number" "$at/$number"; done
  } >"$at/config.toml"
  "$programs/longhauld" --config "$at/config.toml" --database "$at/l.sqlite" --log-directory "$at/log" 2>"$at/error" &
  started=$!
  pids+=("$started")
}

family() { echo "$1"; pgrep -P "$1" || true; }
facts() {   # facts PID: prints processes, private kB, proportional kB, ticks and threads, including child processes
  for pid in $(family "$1"); do
    awk '/^Private/ {private += $2} /^Pss:/ {share = $2} END {printf "%d %d ", private, share}' "/proc/$pid/smaps_rollup"
    sed 's/.*) //' "/proc/$pid/stat" | awk '{print $12 + $13 + $14 + $15, $18}'
  done | awk '{private += $1; share += $2; ticks += $3; threads += $4} END {print NR, private, share, ticks, threads}'
}

start silent $'probe-interval-seconds = 3600\nprobe-when = "never"\ncounter-interval-seconds = 0'
silent=$started
start sampling $'probe-when = "always"'
sampling=$started
sleep 45   # the probe creates its files in the first seconds
declare -A before
for pid in $silent $sampling; do before[$pid]=$(facts "$pid"); done
sleep "$seconds"
printf '%-10s %10s %8s %12s %14s %12s   for %s s, load %s\n' service processes threads private proportional processor "$seconds" "$(cut -d' ' -f1 /proc/loadavg)"
for one in "silent:$silent" "sampling:$sampling"; do
  echo "${one%:*} ${before[${one#*:}]} $(facts "${one#*:}")" | awk -v seconds="$seconds" -v hertz="$(getconf CLK_TCK)" '{
    printf "%-10s %10d %8d %9.2f MB %11.2f MB %10.3f %%\n", $1, $7, $11, $8 / 1000, $9 / 1000, 100 * ($10 - $5) / hertz / seconds
  }'
done
echo "samples so far: $("$programs/longhaul" --config "$home/sampling/config.toml" --database "$home/sampling/l.sqlite" latency --json | wc -l) lines of samples"
echo
"$programs/examples/samples" "$home" 56
