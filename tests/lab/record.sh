#!/bin/bash
# record.sh DELAYS PROGRAMS - inside the simulated machine (simulated.sh run): at each one-way delay (such as 500us+2ms+10ms) runs each
# program (such as walk+copy) on /m/smb3, /m/nfs3 and /m/nfs4 plainly and recorded, each time on the same files with cold caches, and replays
# the recordings: each on its own share, and those of nfs4 and smb3 on the other. Prints lines `plain DELAY PROGRAM SHARE SECONDS REQUESTS`.
# To $EXPORT go DELAY-PROGRAM-SHARE.recording and .again (what is kept of two recordings), and DELAY-PROGRAM-FROM-SHARE.replay and .operations
# (JSON). $LONGHAUL is the program. Exit status 77 means that it does not start here.
set -eu
export HOME=/root
"${LONGHAUL:?}" --version || exit 77
declare -A programs=(
  [walk]='find tree -printf "%s %p\n"; ls -lR tree'
  [search]='grep -rc needle tree || true'
  [copy]='cp -r tree copy'
  [unpack]='mkdir unpacked; tar -C unpacked --no-same-owner -xf /m/local/tree.tar'
  [edit]='for file in tree/*/*1.jpg; do cp "$file" "$file.tmp"; mv "$file.tmp" "$file"; rm -f "$file~"; done'
)
. "${BASH_SOURCE[0]%/*}/configuration.sh"
for folder in $(seq 6); do
  mkdir -p "/m/local/tree/folder $folder"
  for file in $(seq 20); do head -c $((1000 << (file % 7))) /dev/urandom >"/m/local/tree/folder $folder/file $file.jpg"; done
done
tar -C /m/local -cf /m/local/tree.tar tree
# As far below the mount as a replayed tree: the SMB client asks for each folder on the way again after a second.
depth=recorded/b/c/d
files() {   # files SHARE: the files, with cold caches
  cd /; rm -rf "/m/$1/recorded"; mkdir -p "/m/$1/$depth"; cp -r /m/local/tree "/m/$1/$depth"
  sync; sleep 90; echo 3 >/proc/sys/vm/drop_caches; cd "/m/$1/$depth"
}
longhaul() { "$LONGHAUL" --config "/root/$name.toml" --database "/root/$name.sqlite" "$@"; }
requests() {   # requests SHARE: those that the client has sent so far, as the kernel counts them; without those of its own accord, as longhaul counts
  case $1 in
    smb3) awk '/^SMBs: / {sent += $2} END {print sent + 0}' /proc/fs/cifs/Stats;;
    *) awk -v at="/m/$1" '/^device/ {here = $5 == at} here && /^\t *[A-Z_0-9]+: / && !/DELEGRETURN|SEQUENCE|RENEW|TEST_STATEID/ {sent += $2} END {print sent + 0}' /proc/self/mountstats;;
  esac
}
measure() {   # measure DELAY PROGRAM SHARE
  name=$1-$2-$3
  touch "/root/$name.toml"
  for _ in 1 2; do
    files "$3"
    before=$(requests "$3"); began=$(date +%s.%N); bash -c "${programs[$2]}" >/dev/null; ended=$(date +%s.%N); after=$(requests "$3")
    echo "plain $1 $2 $3 $(awk "BEGIN {print $ended - $began}") $((after - before))"
  done
  # Twice: how much the program differs from itself.
  record "$2" "$3" "$name" recording
  record "$2" "$3" "$name-again" again
}
record() {   # record PROGRAM SHARE RECORDING EXTENSION
  files "$2"
  longhaul record --on "$PWD" --name "$3" -- bash -c "${programs[$1]}" >/dev/null 2>"/root/$name.said" || cat "/root/$name.said" >&2
  cd /
  longhaul record show "$3" --json >"${EXPORT:?}/$name.$4"
}
replay() {   # replay DELAY PROGRAM FROM SHARE: two rounds on SHARE of what was recorded on FROM, each on files that rested and with cold caches
  name=$1-$2-$3-$4
  mkdir -p "/m/$4/replay"; printf '[recording]\nreplay = "%s"\n' "$1-$2-$3" >"/root/$name.toml"
  run() { longhaul run --json --rounds "$1" --scale quick --workload your-day --target "$share=/m/$share/replay" 2>/dev/null; }
  share=$4
  # The first rounds make the four trees that take turns.
  run 4 >/dev/null || true
  for _ in 1 2; do
    sync; sleep 90; echo 3 >/proc/sys/vm/drop_caches
    run 1 || echo "the replay $name failed" >&2
  done >"$EXPORT/$name.replay"
  longhaul export ops --format json >"$EXPORT/$name.operations"
}
for delay in ${1//+/ }; do
  wire delay "$delay"
  for program in ${2//+/ }; do
    for share in smb3 nfs3 nfs4; do measure "$delay" "$program" "$share"; done
    for share in smb3 nfs3 nfs4; do replay "$delay" "$program" "$share" "$share"; done
    replay "$delay" "$program" nfs4 smb3
    replay "$delay" "$program" smb3 nfs4
    echo "done $delay $program $(date +%T)" >&2
  done
done
