#!/usr/bin/env bash
# Measures the cost of telemetry export: spans per second, memory, time to catch up, and the effect on the run times of a round.
#
#   COLLECTOR=FOLDER tests/bench/telemetry.sh      FOLDER is the output of tests/collector/build.sh; needs a release build
#
# Settings and defaults: WEEKS (8), ROUNDS (40 pairs), PROGRAMS (target/release). The script checks no results.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export LC_ALL=C
programs=${PROGRAMS:-${CARGO_TARGET_DIR:-target}/release} weeks=${WEEKS:-8} pairs=${ROUNDS:-40}
collector=${COLLECTOR:?set it to the output folder of tests/collector/build.sh}
home=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; wait 2>/dev/null; rm -rf "$home"' EXIT
port=$((20000 + RANDOM % 20000))

cat >"$home/collector.yaml" <<Y
receivers: {otlp: {protocols: {http: {endpoint: 127.0.0.1:$port}}}}
exporters: {debug: {verbosity: basic, sampling_initial: 1, sampling_thereafter: 1000000}}
service:
  telemetry: {metrics: {level: none}, logs: {level: error}}
  pipelines: {traces: {receivers: [otlp], exporters: [debug]}, metrics: {receivers: [otlp], exporters: [debug]}}
Y
"$collector/otelcol" --config "$home/collector.yaml" >/dev/null 2>&1 &
pids+=($!)
until (echo >"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep 0.05; done

configure() {   # configure LINES: writes the configuration, with these lines in [telemetry]
  {
    printf 'scale = "quick"\nworkloads = ["folder-index"]\n[folder-index]\nfiles = 20000\n[schedule]\nrounds-per-day = 1\nmax-time-percent = 100.0\n'
    for rule in during-backup when-hot in-low-power-mode on-other-link; do printf 'skip-%s = false\n' "$rule"; done
    printf '[telemetry]\nkeep-days = 36500\ninterval-seconds = 1\n%s' "$1"
    mkdir -p "$home/a" "$home/b"
    for name in a b; do printf '[targets.%s]\npath = "%s"\n' "$name" "$home/$name"; done
  } >"$home/config.toml"
}
longhaul() { "$programs/longhaul" --config "$home/config.toml" --database "$home/weeks.sqlite" "$@"; }
facts() { "$programs/longhaul" --config "$home/config.toml" --database "$home/weeks.sqlite" status --json; }
start() {
  "$programs/longhauld" --config "$home/config.toml" --database "$home/weeks.sqlite" --log-directory "$home/log" 2>/dev/null &
  daemon=$!
  pids+=("$daemon")
  until facts >/dev/null 2>&1; do sleep 0.05; done
}
stop() { kill "$daemon"; wait "$daemon" 2>/dev/null || true; }
peak() { awk '/^VmHWM/ {print $2 / 1000}' "/proc/$daemon/status"; }
cpu() { sed 's/.*) //' "/proc/$daemon/stat" | awk -v hertz="$(getconf CLK_TCK)" '{print ($12 + $13) / hertz}'; }
waiting() { facts | grep -o '"pending": [0-9]*' | awk '{sum += $2} END {print sum + 0}'; }

configure ''
"$programs/longhaul-bench" synthetic-history "$home/weeks.sqlite" --weeks "$weeks"
cp "$home/weeks.sqlite" "$home/kept.sqlite"

echo "one process reads, encodes and sends traces, then metrics (longhaul telemetry replay):"
configure "endpoint = \"http://127.0.0.1:$port\""$'\n'
began=$EPOCHREALTIME
longhaul telemetry replay --from 2020-01-01 --to 2026-11-01 | tee "$home/replayed"
awk -v began="$began" -v ended="$EPOCHREALTIME" '
  { for (i = 1; i < NF; i++) if ($(i + 1) ~ /^(spans|points)/) sum += $i; if (/spans/) for (i = 1; i < NF; i++) if ($(i + 1) ~ /^spans/) spans = $i }
  END { printf "  %d spans and %d points in %.2f s\n", spans, sum - spans, ended - began }' "$home/replayed"
began=$EPOCHREALTIME
OTEL_METRICS_EXPORTER=none longhaul telemetry replay --from 2020-01-01 --to 2026-11-01 >"$home/replayed"
awk -v began="$began" -v ended="$EPOCHREALTIME" '
  { for (i = 1; i < NF; i++) if ($(i + 1) ~ /^spans/) printf "  traces alone: %d spans in %.2f s, %.0f a second\n", $i, ended - began, $i / (ended - began) }' "$home/replayed"

echo "the service, $weeks weeks behind:"
configure ''
start; sleep 5; printf '  without a collector: peak %.1f MB\n' "$(peak)"; stop
configure "endpoint = \"http://127.0.0.1:$port\""$'\n'
began=$EPOCHREALTIME
start
until [ "$(waiting)" = 0 ]; do sleep 0.2; done
awk -v began="$began" -v ended="$EPOCHREALTIME" -v peak="$(peak)" -v cpu="$(cpu)" 'BEGIN { printf "  caught up in %.1f s, %.1f s of processor time, peak %.1f MB\n", ended - began, cpu, peak }'
stop

echo "effect on rounds: $pairs pairs of rounds with and without export, in alternating order, with $weeks weeks to catch up on:"
runs_of() { longhaul runs --json --target "$1"; }
round() {   # round with|without: prints the seconds of the two runs of a round, with or without an export in progress
  cp "$home/kept.sqlite" "$home/weeks.sqlite"; rm -f "$home"/weeks.sqlite-*
  if [ "$1" = with ]; then configure "endpoint = \"http://127.0.0.1:$port\""$'\n'; else configure ''; fi
  start
  longhaul round >/dev/null
  until [ "$(runs_of a)" ] && [ "$(runs_of b)" ]; do sleep 0.2; done
  stop
  { runs_of a; runs_of b; } | python3 -c 'import json, sys; print(sum(json.loads(line)["seconds"] for line in sys.stdin))'
}
for ((pair = 0; pair < pairs; pair++)); do
  if ((pair % 2)); then b=$(round without); a=$(round with); else a=$(round with); b=$(round without); fi
  echo "$a $b"
done | awk '{ print $1 / $2 }' | sort -g | awk '{ ratio[NR] = $1 }
  END {
    low = int(NR / 2 - 0.98 * sqrt(NR)); if (low < 1) low = 1   # ranks of the 95 % interval of the median (normal approximation of the binomial distribution)
    printf "  with / without: median %.3f, 95 %% interval %.3f to %.3f, n = %d\n", (ratio[int((NR + 1) / 2)] + ratio[int(NR / 2) + 1]) / 2, ratio[low], ratio[NR + 1 - low], NR
  }'
