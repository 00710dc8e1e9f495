#!/bin/bash
# weeks.sh DAYS ROUNDS_A_DAY TARGETS - inside the simulated machine (simulated.sh run): lives through some days with
# `longhaul run` on the mounts named (local+smb3+nfs4), rounds spread over each day, then prints the week.
# The machine has no battery, no neighbours and no drift: what differs between the mounts is the protocol's own
# round trips over the wire's delay. $LONGHAUL is the program; the database stays at $DATABASE (default: in /lab).
set -eu
days=$1 rounds=$2 targets=${3//+/ }
export HOME=/root; longhaul=(${LONGHAUL:?} --database "${DATABASE:-/root/longhaul.sqlite}")
for target in $targets; do mkdir -p "/m/$target/data-$target"; arguments+=(--target "$target=/m/$target/data-$target"); done
pause=$((86400 / rounds))
for ((round = 0; round < days * rounds; round++)); do
  started=$(date +%s)
  "${longhaul[@]}" run --scale quick "${arguments[@]}" ${WORKLOADS:-} >/tmp/round 2>&1 || { status=$?; tail -3 /tmp/round; [ $status = 3 ] || exit $status; }
  ((round % (7 * rounds))) || date +"simulated: %F %R, round $round" >&2
  elapsed=$(($(date +%s) - started)); [ $elapsed -ge $pause ] || sleep $((pause - elapsed))
done
"${longhaul[@]}" week
[ -z "${EXPORT:-}" ] || cp "${DATABASE:-/root/longhaul.sqlite}"* "$EXPORT"
