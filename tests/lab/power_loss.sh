#!/usr/bin/env bash
# power_loss.sh CUTS SEED [SYNCHRONOUS] - inside the simulated machine (simulated.sh run): cuts the power of the disk below the database
# CUTS times while a process stores runs, and checks after each that every run that was acknowledged before is there.
# SYNCHRONOUS (OFF, NORMAL) replaces the store's own setting, to show that the check can fail. STORE_TESTS is the test program of
# longhaul-store, whose tests write and check (daemon/store/src/tests). Prints one line for each cut and the totals.
# With OFF or NORMAL, runs must be lost: ext4 keeps data that no sync asked for in memory for up to 30 s.
#
# The disk is a loop device below dm-flakey, which loses every write from the cut on but confirms it, below dm-delay, which makes
# a write take 20 ms, so that a cut falls between the writes of one transaction. ext4 is mounted on top.
set -euo pipefail
cuts=${1:-200}
RANDOM=${2:-1}
[ -z "${3:-}" ] || export LONGHAUL_STORE_SYNCHRONOUS=$3
# Without syncs, a run takes no simulated time, and the writer would store all its runs before the cut.
export LONGHAUL_STORE_PAUSE_MS=10
w=/tmp/power_loss disk=/m/disk
mkdir -p $w $disk
mkfifo $w/never
exec 9<>$w/never # pause reads from it, because a sleep would start a process
truncate -s 256M $w/image
mke2fs -q -t ext4 $w/image
loop=$(losetup -f --show $w/image)
sectors=$(blockdev --getsz "$loop")
works="0 $sectors linear $loop 0" drops="0 $sectors flakey $loop 0 0 180 1 drop_writes"
dm() { dmsetup "$1" --noudevsync "${@:2}"; }
dm create power --table "$works"
dmsetup mknodes
dm create slow --table "0 $sectors delay /dev/mapper/power 0 0 /dev/mapper/power 0 20"
dmsetup mknodes
attach() { mount -t ext4 -o noatime /dev/mapper/slow $disk; }
attach

pause() { read -rt "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))" -u 9 || true; }   # pause MILLISECONDS
below() { echo $(((RANDOM * 32768 + RANDOM) % $1)); }
options=(--exact --ignored --nocapture)
die() { echo "power_loss.sh: $*"; exit 1; }
# until_true COMMAND...: waits until the command succeeds; fails if the writer ends before, or after 60 s
until_true() {
  local left=6000
  until "$@"; do
    kill -0 "$writer" 2>/dev/null && [ $((left -= 1)) -gt 0 ] || return 1
    pause 10
  done
}
has_stored() { mapfile -t printed <$w/printed; [[ "${printed[*]}" == *"acknowledged "* ]]; }
# A checkpoint writes to the database before the run that caused it is acknowledged; everything else writes to the log.
in_checkpoint() { [ "$db" -nt $w/printed ]; }

# await KIND: waits for the moment of the cut
await() {
  case $1 in
    create | restart) ;;
    checkpoint) until_true has_stored && until_true in_checkpoint || return 1 ;;
    write) until_true has_stored || return 1 ;;
  esac
  local window; case $1 in create) window=1500;; restart) window=600;; checkpoint) window=120;; write) window=3000;; esac
  pause "$(below $window)"
  kill -0 "$writer" 2>/dev/null
}

# cut KIND: starts a writer, cuts the power, kills the writer, and mounts the disk again
cut() {
  : >$w/printed
  "$STORE_TESTS" tests::kill::child_that_writes "${options[@]}" >$w/printed 2>$w/errors &
  writer=$!
  dm load power --table "$drops"
  await "$1" || ended=1
  dm suspend --noflush --nolockfs power
  # The disk stands still: each run in this copy was acknowledged before the cut, and the writer is in the middle of the next.
  cp $w/printed $w/before
  if has_stored && in_checkpoint; then checkpoint=1; fi
  dm resume power
  pause "$(below 500)"
  kill -9 $writer 2>/dev/null || true
  local status=0
  wait $writer 2>/dev/null || status=$?
  # A line that was not complete at the cut counts as printed later.
  awk -v lines="$(wc -l <$w/before)" '{ print (NR <= lines ? "before " : "later ") $0 }' $w/printed >$w/runs
  cat $w/runs >>$w/acknowledged
  umount $disk || die 'the disk is still in use'
  dm load power --table "$works"
  dm suspend power
  dm resume power
  attach || die 'the file system cannot be mounted after the cut'
  # A writer that has stored all its runs is accepted; one that cannot open the database, or never writes to it, is not.
  [ $ended = 0 ] || [ $status = 0 ] || { echo "the writer ended before the cut:"; tail -n 3 $w/printed; cat $w/errors; return 1; }
}

# check: opens the database as the service does after a crash, and prints what of the runs is there
check() {
  "$STORE_TESTS" tests::power_loss::child_that_checks "${options[@]}" <$w/acknowledged >$w/checked 2>&1 || { cat $w/checked; return 1; }
  grep -q '^lost=0 ' $w/checked || [ -n "${LONGHAUL_STORE_SYNCHRONOUS:-}" ] || cat $w/acknowledged $w/checked >&2
  grep -o '\blost=.*' $w/checked
}
new_database() {
  rm -rf "${disk:?}"/*
  database=$((database + 1))
  db=$disk/data/$database.sqlite
  export LONGHAUL_STORE_CHILD=$db
  : >$w/acknowledged
}

kinds=(create write checkpoint restart write)
declare -A total=([damaged]=0 [lost]=0 [later]=0 [later_lost]=0)
database=0 result=
for n in $(seq "$cuts"); do
  kind=${kinds[(n - 1) % ${#kinds[@]}]} following=${kinds[n % ${#kinds[@]}]}
  # A database that lost runs is not used again, so that each loss is counted once.
  case $kind,$result in create,* | *,damaged | *,lost=[1-9]*) new_database ;; esac
  checkpoint=0 ended=0 result=
  if ! cut "$kind"; then result=damaged
  # The restart that follows is the second cut right after the recovery of the file system, so nothing opens the database between.
  elif [ "$following" != restart ] || [ "$n" = "$cuts" ]; then result=$(check) || { echo "$result"; result=damaged; }
  fi
  runs=$(grep -c '^before.*acknowledged' $w/runs || true)
  echo "cut $n $kind checkpoint=$checkpoint acknowledged=$runs ended=$ended $result"
  for pair in "checkpoint=$checkpoint" "ended=$ended" "acknowledged=$runs" ${result/#damaged/damaged=1}; do
    total[${pair%=*}]=$((${total[${pair%=*}]:-0} + ${pair#*=}))
  done
  case $result in lost=0*) sed -i '/^later/d' $w/acknowledged ;; esac
done
dmesg | grep -c 'EXT4-fs error' >$w/kernel || true
printf 'total cuts=%d databases=%d kernel_errors=%d' "$cuts" "$database" "$(cat $w/kernel)"
for key in "${!total[@]}"; do printf ' %s=%d' "$key" "${total[$key]}"; done
echo
