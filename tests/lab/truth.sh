#!/bin/bash
# truth.sh SHARE DELAYS - inside the simulated machine (simulated.sh run): at each one-way delay (such as 500us+2ms+10ms) runs the
# service's probe, then the profile truth.toml in this folder, on /m/SHARE. Meanwhile tcpdump records the packets on the wire, and
# strace the start and duration of each call. Results for each delay go to $EXPORT/SHARE-DELAY: `samples` and `show` (JSON),
# `capture`, `calls.*`. $LONGHAUL and $LONGHAULD are the programs. Exit status 77 means that they do not start here.
set -eu
share=$1 profile=${BASH_SOURCE[0]%.sh}.toml
export HOME=/root
"${LONGHAUL:?}" --version || exit 77
. "${BASH_SOURCE[0]%/*}/configuration.sh"
traced() {   # traced COMMAND...: runs a command under strace, with a file for each thread, so that no line is split
  strace -ff -y -ttt -T -s 0 -o "$out/calls" -e trace=statx,openat,close,pread64,pwrite64,fsync,getdents64,renameat,unlinkat "$@"
}

for one_way in ${2//+/ }; do
  at=/m/$share/at-$one_way here=/root/$one_way out=$EXPORT/$share-$one_way
  mkdir -p "$at" "$here" "$out"
  wire delay "$one_way"
  where=(--config "$here/config.toml" --database "$here/l.sqlite")
  # Quiet hours prevent rounds, so that only the probe works.
  {
    printf 'scale = "quick"\n[schedule]\nquiet-hours = "00:30-23:30"\n[sampling]\nprobe-when = "always"\nprobe-writes = true\n'
    printf 'counter-interval-seconds = 0\n[targets.%s]\npath = "%s"\n' "$share" "$at"
  } >"$here/config.toml"
  tcpdump -Z root -i vec0 --immediate-mode -s 128 -w "$here/packets" tcp 2>/dev/null & tcpdump=$!
  traced "${LONGHAULD:?}" "${where[@]}" >"$out/log" 2>&1 & strace=$!
  sleep 150
  pkill -o -x longhauld; wait $strace || true
  "$LONGHAUL" "${where[@]}" latency --json >"$out/samples"
  traced "$LONGHAUL" "${where[@]}" preset --json --runs 1 --target "$share=$at" "$profile" >"$out/said" 2>&1
  "$LONGHAUL" "${where[@]}" runs 1 --json >"$out/show"
  sleep 5; kill $tcpdump; wait $tcpdump || true
  tcpdump -Z root -q -n -tt -r "$here/packets" >"$out/capture" 2>/dev/null
done
