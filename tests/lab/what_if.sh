#!/bin/bash
# what_if.sh SHARE FITTED TRIED - inside the simulated machine (simulated.sh run): one round of all tasks on /m/SHARE under each network
# condition. FITTED and TRIED are conditions joined by +, each a one-way delay and a rate such as 500us,1gbit. The rounds of each list go to
# $EXPORT/SHARE-fitted.sqlite and $EXPORT/SHARE-tried.sqlite, in the order of the conditions. $LONGHAUL is the program. Exit status 77
# means that it does not start here.
set -eu
share=$1
export HOME=/root
"${LONGHAUL:?}" --version || exit 77
. "${BASH_SOURCE[0]%/*}/configuration.sh"
target=/m/$share/what-if database=/root/$share.sqlite; mkdir -p "$target"
rounds() {   # rounds CONDITIONS NAME: one database for both lists, because the sandbox belongs to it
  for condition in ${1//+/ }; do
    wire delay "${condition%,*}" rate "${condition#*,}"
    "$LONGHAUL" --database "$database" run --scale quick --target "$share=$target" >/tmp/round 2>&1 || { tail -5 /tmp/round >&2; exit 1; }
    echo "$share $condition: $(date +%T)" >&2
    sleep 600
  done
  for file in "$database"*; do cp "$file" "${EXPORT:?}/$share-$2${file#/root/$share}"; done
}
rounds "$2" fitted
rounds "$3" tried
