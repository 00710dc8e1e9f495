#!/bin/bash
# pages.sh - inside the simulated machine (simulated.sh run): runs the background service for 20 days with three rounds a day on smb3
# and nfs4. The network is slow for four hours and cut for twenty minutes. Then each page is saved with its HTTP headers in
# EXPORT/page. $LONGHAULD is the program.
set -eu
export HOME=/root TZ=CET-1CEST,M3.5.0,M10.5.0/3
. "${BASH_SOURCE[0]%/*}/configuration.sh"
configuration TARGETS='smb3 nfs4' ROUNDS=3 >/root/config.toml
for target in smb3 nfs4; do mkdir -p "/m/$target/data-$target"; done
"${LONGHAULD:?}" --config /root/config.toml --database /root/l.sqlite --log-directory "${EXPORT:?}/log" 2>"$EXPORT/error" &
service=$!
delay() {
  tc qdisc change dev vec0 root netem limit 20000 delay "$1"
  nsenter --net=/run/netns/nas tc qdisc change dev s0 root netem limit 20000 delay "$1"
}
page() {   # page ADDRESS FILE: saves a page in EXPORT/page/FILE
  exec 3<>"/dev/tcp/127.0.0.1/$port"
  printf 'GET %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nConnection: close\r\n\r\n' "$1" "$port" >&3
  mkdir -p "$(dirname "$EXPORT/page/$2")"; cat <&3 >"$EXPORT/page/$2"; exec 3>&-
}

sleep $((5 * 86400)); delay 2ms; sleep 14400; delay 250us
sleep $((4 * 86400)); ip link set vec0 down; sleep 1200; ip link set vec0 up
sleep $((11 * 86400))
port=$(sed -E 's/.*"port":([0-9]+).*/\1/' /root/l.daemon.json)
page / overview; page '/latency?days=14' latency; page "/weeks/$(date -d '7 days ago' +%G-W%V)" week; page /events events
for task in folder-index photo-batch incremental-backup time-machine; do page /tasks/$task task-$task; done
for asset in $(cat "$EXPORT"/page/* 2>/dev/null | grep -ao '/assets/[^"]*' | sort -u); do page "$asset" ".$asset"; done
cp /root/l.sqlite* "$EXPORT"
kill $service; wait $service || true
