#!/usr/bin/env bash
# Compares longhaul's file code with find, rsync and fio on the same data, and prints a Markdown table.
#
#   LONGHAUL=target/release/longhaul tests/bench/peers.sh [folder on a local disk]
#
# Each line has five pairs of runs in alternating order. A ratio is computed within a pair, so that a temporary slowdown of the
# machine affects both sides. The script installs nothing and checks no times. PAIRS, ENTRIES, CHANGED and MANY set the amount of
# work.
#
#   LONGHAUL=target/release/longhaul tests/bench/peers.sh lab
#
# Runs the same comparison on SMB 3 and NFS 4.2 mounts in the lab (tests/lab/lab.sh). PLACES is the list of folders to measure.
set -euo pipefail
export LC_ALL=C

longhaul=${LONGHAUL:-target/release/longhaul}
bench=$(dirname "$longhaul")/longhaul-bench
local_disk=${1:-${TMPDIR:-/tmp}}
pairs=${PAIRS:-5}
entries=${ENTRIES:-100000}
many=${MANY:-1000000}
changed=${CHANGED:-5000}
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

[[ -x $longhaul ]] || { echo "$longhaul is missing: run cargo build --release, or set LONGHAUL" >&2; exit 1; }

# Runs this script inside the lab's client, with less work, because the client has one processor and little memory.
in_lab() {
    local lab=$scripts/../lab/lab.sh share programs
    longhaul=$(realpath "$longhaul")
    bench=$(dirname "$longhaul")/longhaul-bench
    LAB_DIR=${LAB_DIR:-$(realpath "$scripts/../..")/target/lab}
    export LAB_DIR LAB_SHARE=${longhaul%/*} LAB_MOUNTS='smb3 nfs4' LAB_TIMEOUT=3000
    "$lab" programs rsync bonnie++ ioping sysbench
    "$lab" up >&2
    # Expanded now, because the local variables no longer exist when the trap runs.
    trap "'$lab' down" EXIT
    programs=/host$LAB_DIR/programs/usr
    for share in smb3 nfs4; do
        "$lab" run mkdir -p "/m/$share/peers"
        "$lab" run env PATH="/usr/sbin:/usr/bin:$programs/sbin:$programs/bin" LD_LIBRARY_PATH="$programs/lib/x86_64-linux-gnu" \
            PLACES="/m/$share/peers" LONGHAUL="$longhaul" PAIRS="$pairs" ENTRIES="${ENTRIES:-2000}" CHANGED="${CHANGED:-20}" \
            MEBIBYTES="${MEBIBYTES:-128}" bash "/host$scripts/peers.sh"
    done
}
if [[ $local_disk == lab ]]; then
    in_lab
    exit
fi

has() {
    case $1 in
        find) find --version 2>/dev/null | grep -q GNU ;;
        *) command -v "$1" >/dev/null ;;
    esac
}
has find || echo "skipped: GNU find is not installed"
has rsync || echo "skipped: rsync is not installed"
has fio || echo "skipped: fio is not installed"

memory=/dev/shm
[[ -d $memory && -w $memory ]] || { memory=$local_disk; echo "no /dev/shm: the memory lines are measured in $memory"; }
in_memory=$(mktemp -d "$memory/longhaul-peers.XXXXXX")
trap 'rm -rf "$in_memory"' EXIT
on_disk=$(mktemp -d "$local_disk/longhaul-peers.XXXXXX")
trap 'rm -rf "$in_memory" "$on_disk"' EXIT

ours() { "$bench" "$@"; }

# number KEY: prints the value of a numeric key in a line of JSON.
number() { sed -n "s/.*\"$1\":\([-0-9.e+]*\).*/\1/p"; }

# seconds COMMAND...: prints how many seconds a command takes.
seconds() {
    local began=$EPOCHREALTIME
    "$@" >/dev/null
    awk -v began="$began" -v ended="$EPOCHREALTIME" 'BEGIN { printf "%.6f\n", ended - began }'
}

# line WHAT UNIT PREPARE OURS PEER: prints a table row; the last three are functions. If UNIT is s, less is better, else more.
line() {
    local what=$1 unit=$2 prepare=$3 our_turn=$4 peer_turn=$5 figures='' pair a b
    for ((pair = 0; pair < pairs; pair++)); do
        if ((pair % 2 == 0)); then
            "$prepare"; a=$("$our_turn")
            "$prepare"; b=$("$peer_turn")
        else
            "$prepare"; b=$("$peer_turn")
            "$prepare"; a=$("$our_turn")
        fi
        figures+="$a $b"$'\n'
    done
    printf '%s' "$figures" | awk -v what="$what" -v unit="$unit" '
        function sort(list, count,   i, j, held) {
            for (i = 2; i <= count; i++) {
                held = list[i]
                for (j = i - 1; j > 0 && list[j] > held; j--) list[j + 1] = list[j]
                list[j + 1] = held
            }
        }
        function median(list, count) {
            sort(list, count)
            return count % 2 ? list[(count + 1) / 2] : (list[count / 2] + list[count / 2 + 1]) / 2
        }
        { n++; a[n] = $1 + 0; b[n] = $2 + 0; ratio[n] = unit == "s" ? $2 / $1 : $1 / $2 }
        END {
            middle = median(ratio, n)
            form = unit == "s" ? "%.3f %s" : "%.0f %s"
            printf "| %s | " form " | " form " | %.2f (%.2f to %.2f) | %d |\n", what,
                median(a, n), unit, median(b, n), unit, middle, ratio[1], ratio[n], n
        }'
}

nothing() { :; }
# Empties the page cache. Both sides also drop the file's pages, but a network client may keep pages that it has just written.
cold() { sync; { echo 3 >/proc/sys/vm/drop_caches; } 2>/dev/null || :; }

# --- walk compared with find

our_walk() { seconds "$bench" walk "$here/tree"; }
find_walk() { seconds find "$here/tree" -mindepth 1 -printf '%s %T@ %p\n'; }

walk_lines() {
    ours tree "$here/tree" --files "$entries" >/dev/null
    sleep 3   # an SMB client closes files a second late, and only then the server sets their modification time
    ours walk "$here/tree" --listing "$in_memory/ours" >/dev/null
    find "$here/tree" -mindepth 1 -printf '%s %T@ %p\n' >"$in_memory/theirs"
    cmp <(sort "$in_memory/ours") <(sort "$in_memory/theirs") || { echo "the two walks differ" >&2; exit 1; }
    line "walk $(wc -l <"$in_memory/ours") entries, warm, $1; find" s nothing our_walk find_walk
    rm -rf "$here/tree" "$in_memory/ours" "$in_memory/theirs"
}

# --- copy compared with rsync

older_copy() {
    rm -rf "$here/copy"
    cp -a "$here/older" "$here/copy"
    sync -f "$here"
}
our_copy() { seconds "$bench" copy "$here/new" "$here/copy"; }
rsync_copy() { seconds rsync -a --fsync "$here/new/" "$here/copy/"; }

copy_lines() {
    ours source "$here/older" --files "$changed" --seed 1 >/dev/null
    ours source "$here/new" --files "$changed" --seed 2 >/dev/null
    # The second seed changes the size of nearly all files; an older modification time makes rsync treat every file as changed.
    find "$here/older" -type f -exec touch -d '2020-01-01' {} +
    older_copy
    ours copy "$here/new" "$here/copy" >/dev/null
    diff -rq "$here/new" "$here/copy" >&2 || { echo "the copy differs" >&2; exit 1; }
    line "copy $changed changed files with fsync, $1; rsync -a --fsync" s older_copy our_copy rsync_copy
    rm -rf "$here/older" "$here/new" "$here/copy"
}

# --- reads and writes compared with fio

# fio keeps its clock reads, as longhaul does. Its random map, hints and preallocation are disabled, because longhaul has none.
fio_field() {
    local field=$1
    shift
    fio --name=peer --filename="$here/file" --ioengine=psync --thread --output-format=terse --terse-version=3 \
        --fallocate=none --fadvise_hint=0 --norandommap "$@" | tail -n 1 | cut -d ';' -f "$field"
}
megabytes() { awk '{ printf "%.1f\n", $1 / 1e6 }'; }
from_kib() { awk '{ printf "%.1f\n", $1 * 1024 / 1e6 }'; }

our_random() { ours random-read "$here/file" --seconds 2 | number per_second; }
fio_random() { fio_field 8 --rw=randread --bs=4k --size="$file_bytes" --time_based --runtime=2; }
our_write() { ours sequential-write "$here/file" --block $((1 << 20)) --bytes "$file_bytes" | number bytes_per_second | megabytes; }
fio_write() { fio_field 48 --rw=write --bs=1m --size="$file_bytes" --end_fsync=1 | from_kib; }
our_read() { ours sequential-read "$here/file" --block $((1 << 20)) | number bytes_per_second | megabytes; }
fio_read() { fio_field 7 --rw=read --bs=1m --size="$file_bytes" | from_kib; }
no_file() {
    rm -f "$here/file"
    sync -f "$here"
}

fio_lines() {
    line "write $((file_bytes >> 20)) MiB in 1 MiB blocks with fsync, $1; fio psync" MB/s no_file our_write fio_write
    ours sequential-read "$here/file" >/dev/null
    line "read $((file_bytes >> 20)) MiB in 1 MiB blocks, $1; fio psync" MB/s cold our_read fio_read
}

random_line() {
    line "read 4 KiB at random, $1; fio psync" IOPS cold our_random fio_random
}

# --- all of it

measured() {
    local place=$1
    if has find; then walk_lines "$place"; fi
    if has rsync; then copy_lines "$place"; fi
    if has fio; then
        fio_lines "$place"
        if [[ $place != "local disk" ]]; then random_line "$place"; fi
        rm -f "$here/file"
    fi
}

echo
echo "| what; peer | ours (median) | peer (median) | times as good, median of pairs (range) | n |"
echo "|---|---:|---:|---:|---:|"
if [[ -n ${PLACES:-} ]]; then
    for place in $PLACES; do
        here=$(mktemp -d "$place/longhaul-peers.XXXXXX") file_bytes=$((${MEBIBYTES:-1024} << 20))
        measured "$(stat -f -c %T "$place")"
        rm -rf "$here"
    done
    exit
fi
for place in tmpfs "local disk"; do
    # 1 GiB on a disk: more would reach the kernel's limit of dirty pages, which slows one side or the other at random.
    if [[ $place == tmpfs ]]; then
        here=$in_memory file_bytes=$((2 << 30))
    else
        here=$on_disk file_bytes=$((1 << 30))
    fi
    measured "$place"
done

echo
echo "Walk and copy: time of the whole process. Reads and writes: as each side measures itself, including its clock reads."
echo "Reads start with empty caches on both sides where that is permitted; a tmpfs is always in memory."
echo
echo "Without a peer:"
here=$in_memory
cost=$(ours timing-overhead)
printf -- '- an operation costs %.0f ns more than its call; two clock reads alone take %.0f ns (medians of 25 x 20,000)\n' \
    "$(number operation_ns <<<"$cost")" "$(number clock_pair_ns <<<"$cost")"
figures=''
for ((turn = 0; turn < pairs; turn++)); do
    figures+=$(ours corpus "$here/corpus" --bytes $((1 << 30)))$'\n'
    rm -rf "$here/corpus"
done
for kind in tree photos; do
    grep "corpus-$kind" <<<"$figures" | number bytes_per_second | sort -g | awk -v kind="$kind" '
        { rate[NR] = $1 / 1e6 }
        END { printf "- corpus of %s on tmpfs: %.0f MB/s (%.0f to %.0f), median of %d times 1 GiB\n",
            kind, rate[int((NR + 1) / 2)], rate[1], rate[NR], NR }'
done
ours tree "$here/tree" --files "$many" >/dev/null
walked=$(ours walk "$here/tree")
printf -- '- a walk of %d entries took %.2f s and at most %.1f MiB of memory (n = 1)\n' "$(number count <<<"$walked")" \
    "$(number seconds <<<"$walked")" "$(number peak_memory_bytes <<<"$walked" | awk '{ print $1 / 1048576 }')"
