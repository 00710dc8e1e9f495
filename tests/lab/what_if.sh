#!/bin/bash
# what_if.sh SHARE CONDITIONS - inside the simulated machine (simulated.sh run): one round of all tasks on /m/SHARE under each network
# condition. CONDITIONS are joined by +, each a one-way delay and a rate such as 500us,1gbit. All rounds go to one database, in the order
# of the conditions; it is copied to $EXPORT/SHARE.sqlite. $LONGHAUL is the program.
set -eu
share=$1
export HOME=/root
"${LONGHAUL:?}" --version || exit 77
network() {   # network ONE_WAY_DELAY RATE
  tc qdisc change dev vec0 root netem limit 20000 delay "$1" rate "$2"
  nsenter --net=/run/netns/nas tc qdisc change dev s0 root netem limit 20000 delay "$1" rate "$2"
}
target=/m/$share/what-if; mkdir -p "$target"
for condition in ${2//+/ }; do
  network ${condition//,/ }
  "$LONGHAUL" --database "/root/$share.sqlite" run --scale quick --target "$share=$target" >/tmp/round 2>&1 || { tail -5 /tmp/round >&2; exit 1; }
  echo "$share $condition: $(date +%T)" >&2
  cp "/root/$share.sqlite"* "${EXPORT:?}"
  sleep 600
done
