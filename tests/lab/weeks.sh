#!/bin/bash
# weeks.sh DAYS ROUNDS_A_DAY TARGETS - inside the simulated machine (simulated.sh run): runs `longhaul run` for some days on the
# given mounts (such as local+smb3+nfs4), with rounds spread over each day, then prints the weekly report. The machine has no
# battery, no other load and no clock drift, so mounts differ only in the number of round trips over the network delay.
# $LONGHAUL is the program, $DATABASE the path of the database (default: /root/longhaul.sqlite); EXPORT is a folder to copy it to.
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
"${longhaul[@]}" report
[ -z "${EXPORT:-}" ] || cp "${DATABASE:-/root/longhaul.sqlite}"* "$EXPORT"
