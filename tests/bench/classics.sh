#!/usr/bin/env bash
# Runs our classics and their originals in turn in the same folder and the same mode, and prints a Markdown table.
#
#   LONGHAUL=target/release/longhaul tests/bench/classics.sh [folder on a local disk]
#
# Without a folder, and as root, on an ext4 of its own in memory, so that what others do with the disk does not decide.
# Each part of a tool is run by itself, for a second or less, in pairs whose order alternates; a ratio is that of one pair, so what
# slows the machine for a while slows both. All of that is done in several runs, each with files of its own. Our profiles are those
# that longhaul has, with smaller sizes and shorter times, and zeros as content, as the originals write.
# Caches are as the originals leave them. Files that are there before (fio's, ioping's, most of sysbench's, the one whose small blocks dd
# reads) are the very same for both: how a cache came to hold a file decides how fast it is read. The originals get a second thread, the
# clock around their calls, zeros made before each write and all that they read compared, as ours have, and no call for what goes to
# /dev/null (as_ours.c); a C compiler is needed. As root it changes a setting of the kernel while it runs (free_in_order). Those that are
# not installed are skipped by name. RUNS, TIME (seconds in which pairs of a part begin, in a run; four times as many for bonnie++ and
# dd's large files) and PAIRS (that there are at least), FILES and MEBIBYTES (bonnie's), LARGE and BLOCKS (dd's large and small ones) and
# REQUESTS (sysbench's) change how much is done; TOOLS names those that are compared, PARTS is a pattern of their parts, PLACES names
# other folders than one on the disk and one in memory. DATA is a file that keeps the figures of each pair; what is in it already counts
# too.
# CONTROL=theirs holds the originals against themselves: what the table says then is what the machine adds.
#
#   LONGHAUL=target/release/longhaul tests/bench/classics.sh lab
#
# The same on SMB 3 and NFS 4.2 mounts in simulated time (tests/lab/simulated.sh), where nothing but round trips takes time, so that
# what differs is what is done. COLD: caches are emptied before each part on both sides (but bonnie++'s, which empties none), as
# what they hold would decide there. Whoever measures shares the one processor there with the client's and the server's own work,
# and gives way to it (chrt --idle): otherwise the scheduler's time slices would decide how far is read ahead.
set -Eeuo pipefail
trap 'echo "stopped at line $LINENO: $BASH_COMMAND" >&2' ERR
export LC_ALL=C

longhaul=${LONGHAUL:-target/release/longhaul}
local_disk=${1:-}
runs=${RUNS:-6}
seconds=${TIME:-15}
pairs=${PAIRS:-2}
files=${FILES:-16384}
mebibytes=${MEBIBYTES:-256}
blocks=${BLOCKS:-200000}
large=${LARGE:-256}
tools=${TOOLS:-dd ioping sysbench-fileio bonnie amorphous}
[[ -x $longhaul ]] || { echo "$longhaul is not there: cargo build --release, or set LONGHAUL" >&2; exit 1; }
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
in_lab() {
    local lab=$scripts/../lab programs
    longhaul=$(realpath "$longhaul")
    export LAB_DIR=${LAB_DIR:-$(realpath "$scripts/../..")/target/lab} LAB_SHARE=${longhaul%/*}
    export SIMULATED_MOUNTS='smb3 nfs4' SIMULATED_MEM=${SIMULATED_MEM:-4096M} SIMULATED_TIMEOUT=${SIMULATED_TIMEOUT:-3000}
    "$lab/lab.sh" programs rsync bonnie++ ioping sysbench
    watch_with "$LAB_DIR/as_ours.so"
    programs=/host$LAB_DIR/programs/usr
    "$lab/simulated.sh" run chrt --idle 0 env PATH="/usr/sbin:/usr/bin:$programs/sbin:$programs/bin" \
        LD_LIBRARY_PATH="$programs/lib/x86_64-linux-gnu" AS_OURS="/host$LAB_DIR/as_ours.so" COLD=1 \
        PLACES='/m/smb3/classics /m/nfs4/classics' LONGHAUL="$longhaul" RUNS="${RUNS:-1}" TIME="${TIME:-0}" PAIRS="$pairs" \
        MEBIBYTES="${MEBIBYTES:-64}" FILES="${FILES:-1024}" BLOCKS="${BLOCKS:-20000}" LARGE="$large" REQUESTS="${REQUESTS:-4096}" \
        TOOLS="${TOOLS:-dd ioping sysbench-fileio bonnie}" PARTS="${PARTS:-}" bash "/host$scripts/classics.sh"
}
watch_with() { cc -O2 -shared -fPIC -o "$1" "$scripts/as_ours.c"; }
if [[ $local_disk == lab ]]; then
    in_lab
    exit
fi
for tool in dd ioping sysbench bonnie++ fio; do
    command -v "$tool" >/dev/null || echo "skipped: $tool is not installed"
done

block_device=''
# Gives back what make_anew took.
tidy() {
    ! mountpoint -q "$work/disk" || umount "$work/disk"
    [[ -z $block_device ]] || echo "${block_device#/dev/zram}" > /sys/class/zram-control/hot_remove
    block_device=''
}
# An ext4 on $work/disk that has never been used before, in memory; fails where it may not be had.
make_anew() {
    tidy
    block_device=/dev/zram$(cat /sys/class/zram-control/hot_add 2>/dev/null) || { block_device=''; return 1; }
    echo 6G > "/sys/block/${block_device#/dev/}/disksize" || return
    mke2fs -q -t ext4 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 "$block_device" && mount -o noatime "$block_device" "$work/disk"
}
# What is freed is kept aside by each processor, as much as an eighth of all memory (percpu_pagelist_high_fraction in
# Documentation/admin-guide/sysctl/vm.rst of the kernel), and given again last first: a file then lies backwards in memory, and is read
# at 0.8 of the speed, until somebody else has freed something. Kept aside in small numbers it lies forwards.
kept_aside=/proc/sys/vm/percpu_pagelist_high_fraction
fraction_before=''
free_in_order() {
    fraction_before=$(cat "$kept_aside" 2>/dev/null) && { echo 100000 > "$kept_aside"; } 2>/dev/null && return
    fraction_before=''
    echo "files may lie backwards in memory here: $kept_aside cannot be set"
}
free_as_before() { [[ -z $fraction_before ]] || echo "$fraction_before" > "$kept_aside"; }
work=$(mktemp -d "${local_disk:-${TMPDIR:-/tmp}}/longhaul-classics.XXXXXX")
memory=$(mktemp -d /dev/shm/longhaul-classics.XXXXXX)
trap 'tidy; free_as_before; rm -rf "$work" "$memory"' EXIT
mkdir "$work/home" "$work/disk" "$work/shared"
as_ours=${AS_OURS:-$work/as_ours.so}
[[ -n ${AS_OURS:-} ]] || watch_with "$as_ours"
data=${DATA:-$work/data}
has_its_own=''
if [[ -z $local_disk${PLACES:-} ]]; then
    if make_anew 2>/dev/null; then
        has_its_own=1
    else
        tidy
        echo "an ext4 in memory cannot be had here: $work/disk is on the disk"
    fi
fi
export HOME=$work/home XDG_DATA_HOME=$work/home/data XDG_CONFIG_HOME=$work/home/config

# only PART: a profile with those phases whose whole names match, and their files and figures.
only() {
    awk -F'"' -v part="^($1)$" '
        /^\[files\.|^\[\[(phase|figure)\]\]$/ { block++ }
        /^\[files\./ { set[block] = substr($0, 8, length($0) - 8) }
        /^\[\[phase\]\]$/ { is_phase[block] = 1 }
        /^phase = / || (block in is_phase && /^name = /) { phase[block] = $2 }
        /^files = / && phase[block] ~ part { used[$2] = 1 }
        { text[block + 0] = text[block + 0] $0 "\n" }
        END { for (i = 0; i <= block; i++) if (i == 0 || (i in set ? set[i] in used : phase[i] ~ part)) printf "%s", text[i] }'
}
# How sed makes a classic smaller.
smaller() {
    case $1 in
        # Its small blocks many times over: 10,000 of them are 12 ms in memory.
        dd) echo 's/"1 GiB"/"'"$large"' MiB"/; s/times = 1024/times = '"$large"'/; s/10240000*$/'$((blocks * 1024))'/; s/times = 10000*$/times = '"$blocks"'/' ;;
        ioping) echo 's/seconds = 3.0/seconds = 1.0/' ;;
        # It has one file as long as it is no larger than 1 GiB.
        bonnie) echo 's/"1 GiB"/"'"$mebibytes"' MiB"/; s/^count = 8$/count = 1/; s/1048576/'$((mebibytes * 128))'/; s/count = 16384/count = '"$files"'/' ;;
        amorphous) echo 's/"16 MiB"/"2 MiB"/; s/seconds = 5.0/seconds = 0.3/; /^after = /d' ;;
        sysbench-fileio) echo 's/"16 MiB"/"2 MiB"/; /^after = /d; s/seconds = 10.0/times = '"$(repetitions "$2")"'/' ;;
    esac
}
# profile NAME PART: that part of a classic under the name bench-NAME, smaller; it begins with the cache that COLD says.
profile() {
    local caches='/^cache = /d'
    [[ $1 != ioping || -n ${COLD:-} ]] || caches=''   # it drops every page before it reads it
    "$longhaul" profile print "$1" | only "$2" | sed "$caches" | sed "$(smaller "$1" "$2")" |
        awk -v cold="${COLD:-}" -v tool="$1" '{ print } /^name = / && begins { if (cold && tool != "bonnie") print "cache = \"cold\"" } { begins = /^\[\[phase\]\]$/ }' \
            > "$work/bench-$1.toml"
}
# sysbench's requests in a mode: as many as take about a second where it writes, which a sync decides, and four times as many
# where it only reads. Its sequential writes end with the files.
requests_in() {
    local requests=${REQUESTS:-$([[ $where == tmpfs ]] && echo 131072 || echo 16384)}
    case $1 in
        seqwr) echo $((requests < 16384 ? requests : 16384)) ;;
        ???rd) echo $((requests * 4)) ;;
        rndrw) echo $((requests / 5 * 5)) ;;
        *) echo "$requests" ;;
    esac
}
# The mixed mode has five requests in each of ours.
repetitions() { echo $(($(requests_in "$1") / ($([[ $1 == rndrw ]] && echo 5 || echo 1)))); }
# The files of the originals leave the cache as ours do.
cold() {
    local file
    [[ -n ${COLD:-} ]] || return 0
    sync
    for file in "$place"/* "$work"/shared/*; do
        [[ ! -f $file ]] || dd if="$file" iflag=nocache count=0 status=none
    done
}
# For a minute ext4 gives nobody an inode that was deleted, and looks at each of them for every file that is made (recently_deleted in
# fs/ext4/ialloc.c): who comes second would pay, tenfold. A file system made anew knows of none; another forgets those of which it
# holds no block.
forget_deleted() {
    [[ -z $has_its_own || $place != "$work/disk" ]] || { make_anew; return; }
    sync
    { echo 3 > /proc/sys/vm/drop_caches; } 2>/dev/null || sleep 61
}
# ours NAME PART: one run, every figure of it as "figure<TAB>number".
ours() {
    "$longhaul" classic "$work/bench-$1.toml" --as-original --runs 1 --json --target "bench=$place" 2>/dev/null |
        grep -o '"name":"[^"]*","published":\[\],"range":\[[^]]*\],"unit":"[^"]*","values":\[[^]]*\]' |
        sed 's/^"name":"\([^"]*\)".*"values":\[\([^]]*\)\]$/\1\t\2/'
}

# our_files TOOL SET PREFIX: the files of a set that ours made, as PREFIX0, PREFIX1 and so on in $work/shared.
our_files() {
    local file number=0
    rm -rf "$work/shared"
    mkdir "$work/shared"
    for file in "$place"/.longhaul-*-bench/classics/"bench-$1-"*/"$2"/*/*; do
        ln -s "$file" "$work/shared/$3$number"
        number=$((number + 1))
    done
}

# watched COMMAND...: an original, with a second thread and the clock around its calls, as ours (as_ours.c).
watched() {
    rm -f "$work/calls"
    CALLS=$work/calls LD_PRELOAD=$as_ours "$@"
}
# The seconds in its calls of these kinds.
in_calls() { awk -v kinds=" $* " 'index(kinds, " " $1 " ") { s += $2 } END { printf "%.9f", s }' "$work/calls"; }

# Over the time in its calls on the file, as ours: what it spends on /dev/zero and /dev/null is left out. What is written is closed in
# that time too, as a network client may only then send it. Its small blocks are read out of a file that was there, as
# in our profile. Ours reads the clock once between calls, too; in simulated time that takes a while, in which more is read ahead.
theirs_dd() {
    local file=$place/theirs small_blocks=(bs=1024 count="$blocks") large_blocks=(bs=1048576 count="$large")
    # rate NAME BYTES KINDS OPERANDS...
    rate() {
        READINGS=${COLD:-0} watched dd status=none "${@:4}"
        awk -v name="$1" -v bytes="$2" -v s="$(in_calls $3)" 'BEGIN { printf "%s\t%f\n", name, bytes / s / 1e6 }'
    }
    # twice NAME BYTES OPERANDS...
    twice() {
        local bytes=$2 again
        for again in '' ', repeated'; do
            cold
            rate "$1 read$again" "$bytes" read "${@:3}" of=/dev/null
        done
    }
    case $1 in
        large*)
            rate "large write" $((large * 1048576)) "write close" "${large_blocks[@]}" if=/dev/zero of="$file"
            twice large $((large * 1048576)) "${large_blocks[@]}" if="$file"
            rm "$file"
            ;;
        small-write)
            rate "small write" $((blocks * 1024)) "write close" "${small_blocks[@]}" if=/dev/zero of="$file"
            rm "$file"
            ;;
        small-read*)
            our_files dd hundred hundred.
            twice small $((blocks * 1024)) "${small_blocks[@]}" if="$work/shared/hundred.0"
            ;;
    esac
}
# Raw statistics, of which requests are the first, over the time in its calls.
theirs_ioping() {
    our_files ioping rapid rapid.
    watched ioping -q -B -w 1 -i 0 -S 64m "$work/shared/rapid.0" > "$work/said"
    awk -v s="$(in_calls read)" '{ printf "-R avg\t%f\n", s * 1e6 / $1 }' "$work/said"
}
# What it counts, over the time in its calls: its figure a second has its own time between requests in it, and its latencies have some
# of that too. Without the sync at the end, which it does not time by itself.
theirs_sysbench-fileio() {
    local options=(--file-num=128 --file-total-size=256M --file-fsync-end=off --threads=1 --time=0) events folder=$work/shared
    events=$(requests_in "$1")
    # After each hundred it syncs all files, and counts these as events too.
    [[ $1 == ???rd ]] || events=$((events + events / 100 * 128))
    if [[ $1 == seqwr ]]; then   # it makes the files itself
        folder=$place/new
        mkdir "$folder"
    else
        our_files sysbench-fileio test test_file.
    fi
    cold
    (cd "$folder" && watched sysbench fileio "${options[@]}" --file-test-mode="$1" --events="$events" run > "$work/said")
    rm -rf "$place/new"
    awk -v mode="$1" -v s="$(in_calls read write sync)" '
        /(reads|writes|fsyncs)\/s:/ && $2 > 0 { sub(/\/s:/, "", $1); rate[$1] = $2 }
        /total time:/ { total = $3 + 0 }
        END { for (what in rate) printf "%s %s\t%f\n", mode, what, rate[what] * total / s }' "$work/said"
}
# Over the time in its calls: by its own clock what it does between them counts too, and what memory answers is too short to say. It
# syncs its file at the end of each block phase (SPLIT), then closes it. Files: it syncs after it has created them and again after it
# has deleted them, in order and then at random. Those deleted in order it finds by listing the folder, as we do, and both count that.
# In simulated time its block reads have no figure: the cache answers them, in no time at all.
theirs_bonnie() {
    local amount=(-s "${mebibytes}M:8k" -n 0) split=1
    [[ $1 == *block* ]] || { amount=(-s 0 -n $((files / 1024))); split=0; }
    SPLIT=$split watched bonnie++ -d "$place" -r "$((mebibytes / 2))M" "${amount[@]}" -f -q -u "$(id -un)" > /dev/null 2>&1
    if [[ $1 == *block* ]]; then
        # The first part is what it does before, the last ones are its seeks.
        awk -v kibibytes=$((mebibytes * 1024)) -v last="$([[ -n ${COLD:-} ]] && echo 3 || echo 4)" '
            $1 == "read" { part++ }
            $1 == "close" { seconds[part - 1] += $2 }
            $1 ~ /read|write|sync/ { seconds[part] += $2 }
            END {
                split("|Sequential Output, Block|Rewrite|Sequential Input, Block", names, "|")
                for (part = 2; part <= last; part++) printf "%s\t%f\n", names[part], kibibytes / seconds[part]
            }' "$work/calls"
    else
        awk -v files="$files" '
            $1 == "read" { part++ }
            $1 ~ /create|close|delete|list|sync/ { seconds[part] += $2 }
            END {
                split("Sequential Create, Create|Sequential Create, Delete|Random Create, Create|Random Create, Delete", names, "|")
                for (part = 1; part <= 4; part++) printf "%s\t%f\n", names[part], files / seconds[part]
            }' "$work/calls"
    fi
}
# KiB read and written (terse output, version 3 in fio(1)), over the time in its calls, which are made on one thread. No sync. Its
# buffers are as ours: iomem_align has them begin at a page, into which the kernel copies up to twice as fast. gtod_reduce: it
# reads no clock of its own, of which nothing is used here; what is done between calls makes the next one slower.
theirs_amorphous() {
    local block=4096 order=rand pick=random kind=${1##*-}
    [[ $1 == rnd4k-* ]] || { block=1048576; order=''; pick=sequential; }
    our_files amorphous file theirs.
    cold
    watched fio --name=theirs --thread --directory="$work/shared" --filename_format='theirs.$filenum' --nrfiles=64 --size=128M \
        --ioengine=psync --invalidate=0 --iomem_align=4k --zero_buffers --fadvise_hint=0 --norandommap --overwrite=1 --gtod_reduce=1 \
        --time_based --runtime=300ms --rw="$order$kind" --bs="$block" --file_service_type="$pick" --output-format=terse 2>/dev/null |
        awk -F';' '{ print $6 + $47 }' > "$work/said"
    awk -v part="$1" -v kind="$kind" -v block="$block" -v s="$(in_calls "$kind")" '{
        bytes = $1 * 1024
        sub(/-[a-z]*$/, "", part); sub(/-/, " ", part)
        name = toupper(part) " " kind
        if (block > 4096) printf "%s\t%f\n", name, bytes / s / 1e6
        else printf "%s, latency\t%f\n", name, s * 1e6 / (bytes / block)
    }' "$work/said"
}

theirs() { "theirs_$1" "$2"; }

# A virtual machine gives memory that was free for a while back to its host, and waits when it is written again; but only in pieces of
# 2 MiB (page_reporting_order in mm/page_reporting.c). So 2 GiB, or half of what there is, are taken and freed again, but for a page in
# each piece: they stay, and come first when memory is asked for, as they are the smaller ones.
have_memory() {
    local kept=$memory/kept piece=$((2 << 20)) page=4096 pieces at
    pieces=$(($(df --output=avail --block-size="$piece" "$memory" | tail -1) / 2))
    pieces=$((pieces < 1024 ? pieces : 1024))
    dd if=/dev/zero of="$kept" bs="$piece" count="$pieces" status=none
    for ((at = 0; at < pieces * piece; at += piece)); do
        fallocate --punch-hole --offset $((at + page)) --length $((piece - page)) "$kept"
    done
}
if [[ -z ${COLD:-} ]]; then
    free_in_order
    have_memory
fi

# run SIDE NAME PART: it begins with nothing left to be written back, which would be in the way of one side only.
run() {
    sync --file-system "$place"
    [[ $2 != bonnie ]] || forget_deleted
    "$1" "$2" "$3"
}

# compare NAME TOOL PART: pairs of ours and theirs; a line in the data for each of our figures, "-" where the original has none:
# "tool: figure<TAB>file system<TAB>when the run began<TAB>ours<TAB>theirs".
compare() {
    command -v "$2" >/dev/null || return 0
    local pair end weight=1
    # These differ most from one pair to the next.
    [[ $1 != bonnie && $3 != large-* ]] || weight=4
    profile "$1" "$3"
    run ours "$1" "$3" >/dev/null   # makes the files once
    run theirs "$1" "$3" >/dev/null
    for ((end = SECONDS + seconds * weight, pair = 0; pair < pairs || pair % 2 || SECONDS < end; pair++)); do
        if ((pair % 2 == 0)); then
            run "${CONTROL:-ours}" "$1" "$3" > "$work/ours"; run theirs "$1" "$3" > "$work/theirs"
        else
            run theirs "$1" "$3" > "$work/theirs"; run "${CONTROL:-ours}" "$1" "$3" > "$work/ours"
        fi
        join -t $'\t' -a 1 -e - -o 0,1.2,2.2 <(sort "$work/ours") <(sort "$work/theirs") |
            awk -F'\t' -v OFS='\t' -v tool="$2" -v where="$where" -v began="$began" '{ print tool ": " $1, where, began, $2, $3 }' \
                >> "$data"
    done
    # The arena goes, so that the next begins alike.
    "$longhaul" clean "bench=$place" --yes >/dev/null
}

# The data as a table: of each run the median of its pairs, and of these the median. One run differs from another by more than its
# pairs do, so the interval is that of the runs. A figure that the original does not have, or sometimes finds too short to
# say, has no row.
table() {
    echo '| figure | on | ours | original | ours/original, median of runs (95 % interval) | runs | pairs |'
    echo '|---|---|---:|---:|---:|---:|---:|'
    sort -t $'\t' -k1,3 -s "$data" | awk -F'\t' '
        function median(list, count,   i, j, held) {
            for (i = 2; i <= count; i++) {
                held = list[i]
                for (j = i - 1; j > 0 && list[j] > held; j--) list[j + 1] = list[j]
                list[j + 1] = held
            }
            return count % 2 ? list[(count + 1) / 2] : (list[count / 2] + list[count / 2 + 1]) / 2
        }
        # The place from below and from above between which the median of all runs there could be lies with 95 %, whatever
        # they are like: fewer than so many of n tosses of a coin come in 2.5 %. Of fewer than six runs it is their range.
        function place(n,   i, tosses, sum) {
            tosses = 0.5 ^ n
            for (i = 0; i < n / 2 && (sum += tosses) <= 0.025; i++) tosses *= (n - i) / (i + 1)
            return i > 0 ? i : 1
        }
        function end_run() {
            if (!n) return
            all += n; runs++; ours[runs] = median(a, n); theirs[runs] = median(b, n); ratios[runs] = median(ratio, n)
            n = 0
        }
        function end_figure(   middle, at) {
            end_run()
            if (runs && !is_missing) {
                middle = median(ratios, runs); at = place(runs)
                printf "| %s | %s | %.4g | %.4g | %.2f (%.2f to %.2f) | %d | %d |\n", \
                    figure, where, median(ours, runs), median(theirs, runs), middle, ratios[at], ratios[runs + 1 - at], runs, all
            }
            runs = all = is_missing = 0
        }
        $1 != figure || $2 != where { end_figure(); figure = $1; where = $2 }
        $3 != began { end_run(); began = $3 }
        $5 == "-" { is_missing = 1; next }
        { n++; a[n] = $4; b[n] = $5; ratio[n] = $4 / $5 }
        END { end_figure() }'
}

# parts TOOL: what is compared of it, each by itself; its program first.
parts() {
    case $1 in
        dd) echo dd 'large-.*' small-write 'small-read.*' ;;
        ioping) echo ioping rapid ;;
        sysbench-fileio) echo sysbench seqwr seqrewr seqrd rndrd rndwr rndrw ;;
        bonnie) echo bonnie++ 'block-.*|rewrite' '(sequential|random)-.*' ;;
        amorphous) echo fio {seq1m,rnd4k}-qd1-{read,write} ;;
    esac
}
for ((remaining = runs; remaining > 0; remaining--)); do
    began=$(date +%s)
    for place in ${PLACES:-"$work/disk" "$memory"}; do
        [[ -z $has_its_own || $place != "$work/disk" ]] || make_anew
        mkdir -p "$place"
        where=$(df --output=fstype "$place" | tail -1)
        for tool in $tools; do
            read -ra program_and_parts <<< "$(parts "$tool")"
            for part in "${program_and_parts[@]:1}"; do
                [[ ! $part =~ ${PARTS:-.} ]] || compare "$tool" "${program_and_parts[0]}" "$part"
            done
        done
    done
done
table
