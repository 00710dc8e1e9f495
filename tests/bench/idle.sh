#!/usr/bin/env bash
# Measures what the background service uses while it waits for the next round with four targets (memory, processor, wake-ups),
# compared with prometheus-node-exporter and Netdata during the same minutes, each including child processes. Also measures the
# time from start to ready with a year of data.
#
#   tests/bench/idle.sh [SECONDS]      SECONDS is the measuring time, 120 by default; builds the release programs first
#
# Wake-ups are voluntary context switches of all threads (/proc/PID/task/*/status); processor time is utime and stime of
# /proc/PID/stat, in ticks of 10 ms, so that a share below 0.01 % needs several minutes to be measured.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seconds=${1:-120}
programs=${CARGO_TARGET_DIR:-target}/release
home=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; wait 2>/dev/null; rm -rf "$home"' EXIT

cargo build --quiet --release --locked --bins

config=$home/config.toml
{
  printf 'scale = "quick"\nworkloads = ["folder-index"]\n[folder-index]\nfiles = 40\n[schedule]\nquiet-hours = "00:00-23:59"\n'
  for name in smb nfs afp local; do mkdir "$home/$name"; printf '[targets.%s]\npath = "%s"\n' "$name" "$home/$name"; done
} >"$config"

# start DATABASE: starts a service, waits until it is ready, sets $started (process id) and $ready_ms (milliseconds)
start() {
  local began contact=${1%.sqlite}.daemon.json
  began=$(date +%s%N)
  "$programs/longhauld" --config "$config" --database "$1" --log-directory "$home/log" &
  started=$!
  until [ -s "$contact" ] && grep -q "\"pid\":$started," "$contact"; do sleep 0.001; done
  ready_ms=$((($(date +%s%N) - began) / 1000000))
}

facts() {   # facts PID: prints resident kB, ticks of processor time and voluntary context switches, including child processes
  for pid in "$1" $(pgrep -P "$1" || true); do
    awk '/^VmRSS/ {printf "%d ", $2}' "/proc/$pid/status"
    sed 's/.*) //' "/proc/$pid/stat" | awk '{printf "%d ", $12 + $13}'
    cat /proc/"$pid"/task/*/status | awk '/^voluntary_ctxt_switches/ {sum += $2} END {print sum}'
  done | awk '{resident += $1; ticks += $2; switches += $3} END {print resident, ticks, switches}'
}

echo "start to ready:"
start "$home/new.sqlite"
printf '  %-32s %s ms\n' 'with a new database' "$ready_ms"
pids+=("$started")
daemon=$started
"$programs/longhaul-bench" synthetic-history "$home/year.sqlite" >/dev/null
printf '  a year of hourly rounds on four targets: %s\n' "$(du -h "$home/year.sqlite" | cut -f1)"
for time in 1 2 3; do
  start "$home/year.sqlite"
  printf '  %-32s %s ms\n' "with a year of data, time $time" "$ready_ms"
  kill "$started"; wait "$started" 2>/dev/null || true
done

start "$home/year.sqlite"
pids+=("$started")
year=$started
measured=("longhauld (new):$daemon" "longhauld (a year of data):$year")
if command -v prometheus-node-exporter >/dev/null; then
  prometheus-node-exporter --web.listen-address=127.0.0.1:19100 >/dev/null 2>&1 &
  pids+=($!); measured+=("prometheus-node-exporter:$!")
else
  echo 'skipped: prometheus-node-exporter is not installed (apt-get install prometheus-node-exporter)'
fi

if command -v netdata >/dev/null; then
  mkdir -p "$home"/netdata/{cache,lib,log}
  printf '[global]\n run as user = %s\n[db]\n mode = ram\n[directories]\n cache = %s/cache\n lib = %s/lib\n log = %s/log\n[web]\n bind to = 127.0.0.1:19101\n' \
    "$(id -un)" "$home/netdata" "$home/netdata" "$home/netdata" >"$home/netdata.conf"
  netdata -D -c "$home/netdata.conf" >/dev/null 2>&1 &
  pids+=($!); measured+=("netdata:$!")
else
  echo 'skipped: netdata is not installed (apt-get install netdata)'
fi

sleep 15   # exclude the work at the start
declare -A before
for one in "${measured[@]}"; do before[$one]=$(facts "${one##*:}"); done
sleep "$seconds"
hertz=$(getconf CLK_TCK)
echo
printf '%-32s %12s %12s %14s   idle for %s s, without requests\n' program resident processor wake-ups/s "$seconds"
for one in "${measured[@]}"; do
  echo "${one%:*}|${before[$one]}|$(facts "${one##*:}")" | awk -F'|' -v seconds="$seconds" -v hertz="$hertz" '{
    split($2, a, " "); split($3, b, " ")
    printf "%-32s %9.1f MB %10.4f %% %14.2f\n", $1, b[1] / 1000, 100 * (b[2] - a[2]) / hertz / seconds, (b[3] - a[3]) / seconds
  }'
done
printf 'workers while idle: %s\n' "$(pgrep -P "$daemon" -c || true)"
