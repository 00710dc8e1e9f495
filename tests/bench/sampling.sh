#!/usr/bin/env bash
# What passive sampling of ten targets takes, beside the same service that samples nothing, in the same minutes: memory and
# processor time of the service with its workers. And how long a window of eight weeks takes to be read, of a year of samples.
#
#   tests/bench/sampling.sh [SECONDS]      measures for so long, 300 by default; needs a release build
#
# Both services have ten local folders as targets and make no round. The one that samples asks each every 5 s (touch =
# always) and looks at all counters every 10 s, as a default configuration does on ten shares that somebody uses.
# Memory is what belongs to a process alone (Private_Clean and Private_Dirty of /proc/PID/smaps_rollup) plus its share of what
# it has in common with others (Pss): text of the program is there once, however many workers run it. Processor time is
# utime and stime of /proc/PID/stat with those of children that have ended, in ticks of 10 ms.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seconds=${1:-300}
programs=${CARGO_TARGET_DIR:-target}/release
home=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; wait 2>/dev/null; rm -rf "$home"' EXIT

cargo build --quiet --release --locked --workspace --bins --examples

start() {   # start NAME LINES: a service with these lines below [sampling]
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
facts() {   # facts PID: processes, private kB, proportional kB, ticks, threads
  for pid in $(family "$1"); do
    awk '/^Private/ {private += $2} /^Pss:/ {share = $2} END {printf "%d %d ", private, share}' "/proc/$pid/smaps_rollup"
    sed 's/.*) //' "/proc/$pid/stat" | awk '{print $12 + $13 + $14 + $15, $18}'
  done | awk '{private += $1; share += $2; ticks += $3; threads += $4} END {print NR, private, share, ticks, threads}'
}

start silent $'probe-seconds = 3600\ntouch = "never"\ncounters-seconds = 0'
silent=$started
start sampling $'touch = "always"'
sampling=$started
sleep 45   # files for the probe are made in the first seconds
declare -A before
for pid in $silent $sampling; do before[$pid]=$(facts "$pid"); done
sleep "$seconds"
printf '%-10s %10s %8s %12s %14s %12s   for %s s, load %s\n' service processes threads private proportional processor "$seconds" "$(cut -d' ' -f1 /proc/loadavg)"
for one in "silent:$silent" "sampling:$sampling"; do
  echo "${one%:*} ${before[${one#*:}]} $(facts "${one#*:}")" | awk -v seconds="$seconds" -v hertz="$(getconf CLK_TCK)" '{
    printf "%-10s %10d %8d %9.2f MB %11.2f MB %10.3f %%\n", $1, $7, $11, $8 / 1000, $9 / 1000, 100 * ($10 - $5) / hertz / seconds
  }'
done
echo "asked so far: $("$programs/longhaul" --config "$home/sampling/config.toml" --database "$home/sampling/l.sqlite" samples --json | wc -l) lines of samples"
echo
"$programs/examples/samples" "$home" 56
