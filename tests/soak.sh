#!/usr/bin/env bash
# soak.sh [HOURS] [SEED|FILE] - runs the background service for HOURS (default 48) of simulated time on local, smb3, nfs3 and nfs4,
# with a round every four hours and random faults drawn from SEED (default 1); a seed always gives the same faults. FILE has a list of
# faults instead, such as tests/soak/day.faults. The script prints each fault as it starts, then a summary of rounds and runs, with the
# resources of the service at the end of each week. It exits with 1 and prints the reasons if a check of the results fails. $PROBE is the
# interval of the latency probe in seconds (default 60); with 600, four weeks take a third of the time. $LONGHAUL and $LONGHAULD are the
# programs (default: those in target/release). LAB_DIR and SIMULATED_* are settings of tests/lab/simulated.sh, which this script needs.
set -eu
targets='local smb3 nfs3 nfs4' interval=14400
nas() { nsenter --net=/run/netns/nas chroot /nas "$@"; }
log() { date +"soak: %F %R, $*" >&2; }

# --- the faults: one line "start-second kind duration amount" each, one after the other

faults() {   # faults HOURS SEED|FILE: prints the list of faults
  if [ -e "$2" ]; then grep -v '^#' "$2"; return; fi
  awk -v seconds=$(($1 * 3600)) -v seed="$2" '
    function below(n) { state = (state * 16807) % 2147483647; return state % n }   # Park-Miller generator: gives the same numbers in every awk
    BEGIN {
      state = seed * 7919 % 2147483646 + 1; for (i = 0; i < 8; i++) below(2)
      kinds = split("delay loss cut samba-stops nfs-stops forbidden remount service-killed worker-killed", kind)
      for (at = 1800 + below(3600); ; at += lasts + 1200 + below(4800)) {
        what = kind[below(kinds) + 1]; amount = 0; lasts = 300 + below(5400)
        if (what == "delay") amount = 2 + below(60)
        if (what == "loss") amount = 1 + below(8)
        if (what == "cut" && below(3) == 0) lasts += below(5 * 3600)
        if (what == "remount") { amount = 2 ^ (14 + below(5)); lasts = 60 }
        if (what == "worker-killed") { amount = 1 + below(4); lasts = 60 }
        if (at + lasts > seconds - 7200) exit
        print at, what, lasts, amount
      }
    }'
}

begin() {   # begin KIND AMOUNT: starts a fault
  case $1 in
    delay) wire delay "$2ms" ;;
    loss) wire delay 250us loss "$2%" ;;
    cut) ip link set vec0 down ;;
    samba-stops) pkill -KILL -x smbd || true ;;
    nfs-stops) nas rpc.nfsd 0 ;;
    forbidden) chmod 000 /nas/srv/share/data-* ;;
    remount)
      for attempt in 1 2 3 4 5 6 7 8 9; do ! umount /m/nfs4 2>/dev/null || break; sleep 60; done
      mountpoint -q /m/nfs4 && umount -l /m/nfs4
      mount -t nfs 10.77.0.2:/ /m/nfs4 -o "vers=4.2,rsize=$2" ;;
    # Programs that write to the local disk wait in the kernel, and cannot be killed.
    disk-frozen) fsfreeze -f /m/local ;;
    service-killed) kill -KILL $service; wait $service || true ;;
    worker-killed) pgrep -P $service | sed -n "$2p" | xargs -r kill -KILL ;;
  esac
}

mend() {   # mend KIND: ends a fault
  case $1 in
    delay | loss) wire delay 250us loss 0% ;;
    cut) ip link set vec0 up ;;
    samba-stops) nas smbd -D ;;
    nfs-stops) nas rpc.nfsd -V 3 -V 4.2 8 ;;
    forbidden) chmod 777 /nas/srv/share/data-* ;;
    disk-frozen) fsfreeze -u /m/local ;;
    service-killed) start ;;
  esac
}

# --- the service

start() {
  "$LONGHAULD" "${where[@]}" 2>>/root/error &
  service=$!
}

facts() {   # prints kB of memory, descriptors, threads and kB of the database
  awk '/^VmRSS/ {print $2}' /proc/$service/status; ls /proc/$service/fd | wc -l; ls /proc/$service/task | wc -l; du -k /root/l.sqlite | cut -f1
}

inside() {   # inside HOURS SEED
  export HOME=/root
  where=(--config /root/config.toml --database /root/l.sqlite)
  . "${BASH_SOURCE[0]%/*}/lab/configuration.sh"
  configuration TARGETS="$targets" WORKLOADS='"folder-index", "incremental-backup"' FILES=200 ROUNDS=$((86400 / interval)) \
    PROBE=$PROBE COUNTERS=300 >/root/config.toml
  for target in $targets; do mkdir -p /m/$target/data-$target; chmod 777 /m/$target/data-$target; done
  local began second kind lasts amount week=604800; began=$(date +%s); touch /root/weeks
  faults "$@" >/root/faults
  start
  while read -r second kind lasts amount <&3; do
    wait_until $((began + second))
    # Just before a fault, when the last one has been over for 20 minutes at least.
    [ $second -lt $week ] || { facts | xargs >>/root/weeks; week=$((week + 604800)); }
    log "$kind $amount for $((lasts / 60)) min"
    begin $kind $amount; wait_until $((began + second + lasts)); mend $kind
  done 3</root/faults
  wait_until $((began + $1 * 3600)); log 'end of the faults'
  "$LONGHAUL" "${where[@]}" round || true
  sleep 3600
  "$LONGHAUL" "${where[@]}" status --json >/root/status.json || true
  facts >/root/facts
  "$LONGHAUL" "${where[@]}" doctor >&2 || true
  kill $service; wait $service || true
  cp /root/l.sqlite* /root/status.json /root/facts /root/weeks /root/error /root/faults "$EXPORT"
  give_back >"$EXPORT/foreign"
}

wait_until() { local left=$(($1 - $(date +%s))); [ $left -le 0 ] || sleep $left; }

# Checksums of all files below a folder, without names, because this kernel's cifs client has no UTF-8.
sums() { find "$1" -type f -exec sha256sum {} + | cut -c1-64 | sort; }

# Prints differences between the NAS and its mounts, files outside of the sandboxes, and files left after cleaning. No output means
# that all is well.
give_back() {
  for target in smb3 nfs3 nfs4; do diff <(sums /nas/srv/share/data-$target) <(sums /m/$target/data-$target) || true; done
  find /nas/srv/share /m/local -mindepth 2 ! -path '*/.longhaul-*' ! -path '*/lost+found*'
  for target in $targets; do
    "$LONGHAUL" --database /root/l.sqlite targets clean --yes $target=/m/$target/data-$target >/root/cleaned 2>&1 || cat /root/cleaned
  done
  find /nas/srv/share /m/local -mindepth 2 ! -path '*/lost+found*'
}

# --- the checks of the results, on the host

account() {   # account FOLDER HOURS: prints the summary and the failed checks
  python3 - "$1" "$2" $interval <<'E'
import collections, json, sqlite3, sys
folder, hours, interval = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
database, wrong = sqlite3.connect(f"{folder}/l.sqlite"), []
def check(holds, what): holds or wrong.append(what)
sound = database.execute("PRAGMA integrity_check").fetchall()
check(sound == [("ok",)], f"the database is damaged: {sound}")
check(not database.execute("PRAGMA foreign_key_check").fetchall(), "a foreign key refers to a missing row")

rounds = database.execute("SELECT number, status, reason, planned, scheduled_us FROM round ORDER BY number").fetchall()
runs = collections.defaultdict(list)
for number, *run in database.execute("SELECT run.round, target.name, run.workload, run.outcome, run.seconds FROM run JOIN target ON target.number = run.target"):
    runs[number].append(run)
kinds, outcomes = collections.Counter(), collections.Counter()
for number, status, reason, planned, _ in rounds:
    kinds[f"{status} ({reason.split(':')[0]})" if reason else str(status)] += 1
    outcomes.update(run[2] for run in runs[number])
    meant = sorted((cell["target"], cell["workload"]) for cell in json.loads(planned))
    had = sorted((target, workload) for target, workload, *_ in runs[number])
    check(status in ("ok", "void", "cut-short", "skipped"), f"round {number} is {status}")
    check(len(set(had)) == len(had) and set(had) <= set(meant), f"round {number} has unplanned runs: {had}")
    check(status == "ok" or reason, f"round {number} is {status} without a reason")
    check(status != "skipped" or not had, f"round {number} was skipped and has runs")
    check(status not in ("ok", "void") or had == meant, f"round {number} is {status} with {len(had)} of {len(meant)} runs")
slots = sorted(at // 1000000 for *_, at in rounds if at is not None)
for before, after in zip(slots, slots[1:]):
    check(abs(after - before - interval) <= 60, f"two slots are {after - before} s apart, not {interval} s")

reported = json.load(open(f"{folder}/status.json"))["rounds"]
for name, count in reported.items():
    stored = sum(1 for _, status, _, _, at in rounds if at is not None and status == name.replace("_", "-"))
    check(count == stored, f"the service reports {count} rounds {name}, the database has {stored}")
check(abs(len(slots) - hours * 3600 / interval) <= 1.5, f"{len(slots)} slots in {hours} hours")
memory, descriptors, threads, kilobytes = map(int, open(f"{folder}/facts").read().split())
weeks = [list(map(int, line.split())) for line in open(f"{folder}/weeks")]
check(memory < 100_000, f"the service uses {memory} kB of memory")
check(descriptors < 100, f"{descriptors} descriptors are open")
check(threads < 50, f"{threads} threads exist")
for number, week in enumerate(weeks[1:], 2):
    check(week[0] <= weeks[0][0] + 2000, f"the service has {week[0]} kB after week {number}, {weeks[0][0]} after the first")
    check(week[1] <= weeks[0][1] + 2, f"the service has {week[1]} descriptors after week {number}, {weeks[0][1]} after the first")
    check(week[2] <= weeks[0][2] + 2, f"the service has {week[2]} threads after week {number}, {weeks[0][2]} after the first")
last = runs[max(runs)] if runs else []
check(last and all(run[2] == "ok" for run in last), f"the last round, without any fault, is not ok: {last}")
foreign = open(f"{folder}/foreign").read().split("\n")[:-1]
check(not foreign, f"files outside of the sandboxes, left behind, or different on the NAS: {foreign[:9]}")

text = lambda counts: ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
print(f"faults: {sum(1 for _ in open(f'{folder}/faults'))}")
print(f"rounds: {len(rounds)} = {text(kinds)}; {len(slots)} of them are slots of the schedule")
print(f"runs: {sum(outcomes.values())} = {text(outcomes)}")
for number, week in enumerate(weeks, 1):
    print(f"after week {number}: {week[0] / 1000:.1f} MB, {week[1]} descriptors, {week[2]} threads, database {week[3] / 1000:.1f} MB")
print(f"at the end: {memory / 1000:.1f} MB, {descriptors} descriptors, {threads} threads, database {kilobytes / 1000:.1f} MB")
for what in wrong: print(f"wrong: {what}")
sys.exit(bool(wrong))
E
}

case ${1:-} in
  inside | account) "$@"; exit ;;
  faults) faults "${2:-48}" "${3:-1}"; exit ;;
esac
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
LONGHAUL=${LONGHAUL:-$root/target/release/longhaul} LONGHAULD=${LONGHAULD:-$root/target/release/longhauld}
for program in "$LONGHAUL" "$LONGHAULD"; do [ -x "$program" ] || { echo "$program is missing: run cargo build --release" >&2; exit 1; }; done
drawn=${2:-1}
[ ! -e "$drawn" ] || drawn=/host$(realpath "$drawn")
EXPORT=$(mktemp -d "${TMPDIR:-/tmp}/longhaul-soak.XXXXXX")
export LAB_SHARE=$(dirname "$LONGHAUL"):$EXPORT SIMULATED_MOUNTS=$targets PROBE=${PROBE:-60} SIMULATED_TIMEOUT=${SIMULATED_TIMEOUT:-14400} SIMULATED_MEM=${SIMULATED_MEM:-2560M}
"$root/tests/lab/simulated.sh" run env "PROBE=$PROBE" "EXPORT=$EXPORT" "LONGHAUL=$LONGHAUL" "LONGHAULD=$LONGHAULD" bash "/host$root/tests/soak.sh" inside "${1:-48}" "$drawn" ||
  { echo "wrong: the machine exited with $?; its files are in $EXPORT" >&2; exit 1; }
account "$EXPORT" "${1:-48}" || { echo "kept: $EXPORT" >&2; exit 1; }
rm -rf "$EXPORT"
