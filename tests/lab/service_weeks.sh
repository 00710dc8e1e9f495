#!/bin/bash
# service_weeks.sh DAYS [ROUNDS_A_DAY] - inside the simulated machine (simulated.sh run): runs the background service for DAYS
# (eight or more) on local, smb3, nfs3 and nfs4, with these changes:
#   after 2/8 of the days   the network delay rises from 0.25 to 2 ms each way, for a day
#   after 4/8               the network is cut for eight hours
#   after 6/8               nfs4 is remounted with another rsize
# With SIMULATED_START in March, daylight saving time begins too. After each eighth the script prints the resources of the
# service: resident kB (without and with its workers), descriptors, threads, and kB of the database. At the end it prints the
# output of `status`, `events`, `stalls` and `report`, each below a line "== NAME". $LONGHAUL and $LONGHAULD are the programs;
# EXPORT is a folder for the log, and for a copy of the database after each eighth.
set -eu
days=$1 rounds=${2:-6} night=28800
export HOME=/root TZ=${TZ:-CET-1CEST,M3.5.0,M10.5.0/3}
where=(--config /root/config.toml --database /root/l.sqlite)
. "${BASH_SOURCE[0]%/*}/configuration.sh"
configuration ROUNDS=$rounds >/root/config.toml
for target in local smb3 nfs3 nfs4; do mkdir -p "/m/$target/data-$target"; done
began=$(date +%s)
"${LONGHAULD:?}" "${where[@]}" --log-directory "${EXPORT:-/root}/log" 2>/root/error &
service=$!
resident() { awk '/^VmRSS/ {kilobytes += $2} END {print kilobytes}' $(printf '/proc/%s/status ' "$@") 2>/dev/null; }
facts() {
  local all; all=$(resident $service $(awk -v parent=$service '$4 == parent {print $1}' /proc/[0-9]*/stat 2>/dev/null))
  echo "$(resident $service) $all $(ls /proc/$service/fd | wc -l) $(ls /proc/$service/task | wc -l) $(du -k /root/l.sqlite | cut -f1)"
}
keep() { [ -z "${EXPORT:-}" ] || cp /root/l.sqlite* /root/config.toml "$EXPORT"; }
until_eighth() {
  sleep $((began + $1 * days * 10800 - $(date +%s)))
  date +"simulated: %F %R, $2; resident, with workers, descriptors, threads, database: $(facts)" >&2
  keep
}

until_eighth 1 'no change'
until_eighth 2 'delay rises'; wire delay 2ms; sleep 86400; wire delay 250us
until_eighth 3 'no change'
until_eighth 4 'wire is cut'; ip link set vec0 down; sleep $night; ip link set vec0 up
until_eighth 5 'no change'
until_eighth 6 'other rsize'
umount /m/nfs4 && mount -t nfs 10.77.0.2:/ /m/nfs4 -o vers=4.2,rsize=65536
until_eighth 7 'no change'
until_eighth 8 'end'
for what in 'status --json' 'events --json --since 9999d' 'stalls --json --since 9999d' 'report'; do
  echo "== ${what%% *}"; $LONGHAUL "${where[@]}" $what || echo "exit $?"
done
kill $service; wait $service || true
echo "== end"; cat /root/error
keep
