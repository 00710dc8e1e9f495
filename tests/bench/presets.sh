#!/usr/bin/env bash
# Compares longhaul's presets with the original tools in the same folder and mode, and prints a Markdown table.
#
#   LONGHAUL=target/release/longhaul tests/bench/presets.sh [folder on a local disk]
#
# Without a folder, and as root, it uses a new ext4 in memory, so that other use of the disk has no effect.
# Each part of a tool runs by itself, for a second or less, in pairs of alternating order. A ratio is computed within a pair, so that
# a temporary slowdown of the machine affects both sides. All this is repeated in several runs, each with new files. longhaul's side
# uses its own presets, with smaller sizes and shorter times, and writes zeros, as the originals do.
# Caches stay as the originals leave them. Existing files (those of fio and ioping, most of sysbench's, the one whose small blocks dd
# reads) are shared by both sides, because the way a file got into the cache affects how fast it is read. The originals are made
# comparable with as_ours.c: a second thread, clock reads around their calls, zeros generated before each write, all read data
# verified, and no call for writes to /dev/null; that needs a C compiler. As root the script changes a kernel setting while it runs
# (free_in_order). Missing tools are skipped by name.
# Settings: RUNS, TIME (seconds per part and run in which new pairs start; four times as many for bonnie++ and dd's large files), PAIRS
# (minimum number of pairs), FILES and MEBIBYTES (bonnie++), LARGE and BLOCKS (dd's large and small files), REQUESTS (sysbench), TOOLS
# (tools to compare), PARTS (pattern of the parts to compare), PLACES (folders, instead of one on the disk and one in memory), DATA (file
# that stores the figures of each pair; existing figures are included).
# CONTROL=theirs compares the originals with themselves, which shows the noise of the machine.
#
#   LONGHAUL=target/release/longhaul tests/bench/presets.sh lab
#
# Runs the same comparison on SMB 3 and NFS 4.2 mounts in simulated time (tests/lab/simulated.sh), where only round trips take time, so
# that differences come from different calls. COLD=1: caches are emptied before each part on both sides (except for bonnie++, which
# empties none), because their content would dominate there. The benchmarks run with chrt --idle, so that the client's and the server's
# kernel threads precede them on the only processor; otherwise the scheduler's time slices would decide how much is read ahead.
set -Eeuo pipefail
trap 'echo "stopped at line $LINENO: $BASH_COMMAND" >&2' ERR
export LC_ALL=C

longhaul=${LONGHAUL:-target/release/longhaul}
examples=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../examples/profiles" && pwd)
local_disk=${1:-}
runs=${RUNS:-6}
seconds=${TIME:-15}
pairs=${PAIRS:-2}
files=${FILES:-16384}
mebibytes=${MEBIBYTES:-256}
blocks=${BLOCKS:-200000}
large=${LARGE:-256}
tools=${TOOLS:-dd ioping sysbench-fileio bonnie amorphous}
[[ -x $longhaul ]] || { echo "$longhaul is missing: run cargo build --release, or set LONGHAUL" >&2; exit 1; }
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
        PLACES='/m/smb3/presets /m/nfs4/presets' LONGHAUL="$longhaul" RUNS="${RUNS:-1}" TIME="${TIME:-0}" PAIRS="$pairs" \
        MEBIBYTES="${MEBIBYTES:-64}" FILES="${FILES:-1024}" BLOCKS="${BLOCKS:-20000}" LARGE="$large" REQUESTS="${REQUESTS:-4096}" \
        TOOLS="${TOOLS:-dd ioping sysbench-fileio bonnie}" PARTS="${PARTS:-}" bash "/host$scripts/presets.sh"
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
# Unmounts and removes the block device that make_anew created.
tidy() {
    ! mountpoint -q "$work/disk" || umount "$work/disk"
    [[ -z $block_device ]] || echo "${block_device#/dev/zram}" > /sys/class/zram-control/hot_remove
    block_device=''
}
# Mounts a new ext4 in memory (zram) on $work/disk. Fails if that is not permitted.
make_anew() {
    tidy
    block_device=/dev/zram$(cat /sys/class/zram-control/hot_add 2>/dev/null) || { block_device=''; return 1; }
    echo 6G > "/sys/block/${block_device#/dev/}/disksize" || return
    mke2fs -q -t ext4 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 "$block_device" && mount -o noatime "$block_device" "$work/disk"
}
# Each processor keeps lists of freed pages, up to an eighth of all memory (percpu_pagelist_high_fraction in
# Documentation/admin-guide/sysctl/vm.rst of the kernel), and reuses the last freed page first. The pages of a file then lie backwards in
# memory, and it is read at 0.8 of the speed until another process frees pages. With short lists the pages lie forwards.
page_list_setting=/proc/sys/vm/percpu_pagelist_high_fraction
fraction_before=''
free_in_order() {
    fraction_before=$(cat "$page_list_setting" 2>/dev/null) && { echo 100000 > "$page_list_setting"; } 2>/dev/null && return
    fraction_before=''
    echo "the pages of files may lie backwards in memory: $page_list_setting cannot be set"
}
free_as_before() { [[ -z $fraction_before ]] || echo "$fraction_before" > "$page_list_setting"; }
work=$(mktemp -d "${local_disk:-${TMPDIR:-/tmp}}/longhaul-presets.XXXXXX")
memory=$(mktemp -d /dev/shm/longhaul-presets.XXXXXX)
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
        echo "cannot create an ext4 in memory: $work/disk is on the disk"
    fi
fi
export HOME=$work/home XDG_DATA_HOME=$work/home/data XDG_CONFIG_HOME=$work/home/config

# only PART: filters a profile to the phases whose full names match, with their files and figures.
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
# smaller TOOL PART: prints the sed program that reduces sizes and times of a preset.
smaller() {
    case $1 in
        # More small blocks than the original's 10,000, which take only 12 ms in memory.
        dd) echo 's/"1 GiB"/"'"$large"' MiB"/; s/times = 1024/times = '"$large"'/; s/10240000*$/'$((blocks * 1024))'/; s/times = 10000*$/times = '"$blocks"'/' ;;
        ioping) echo 's/seconds = 3.0/seconds = 1.0/' ;;
        # bonnie++ uses one file if the size is at most 1 GiB.
        bonnie) echo 's/"1 GiB"/"'"$mebibytes"' MiB"/; s/^count = 8$/count = 1/; s/1048576/'$((mebibytes * 128))'/; s/count = 16384/count = '"$files"'/' ;;
        amorphous) echo 's/"16 MiB"/"2 MiB"/; s/seconds = 5.0/seconds = 0.3/; /^after = /d' ;;
        sysbench-fileio) echo 's/"16 MiB"/"2 MiB"/; /^after = /d; s/seconds = 10.0/times = '"$(repetitions "$2")"'/' ;;
    esac
}
# profile NAME PART: writes that part of a preset, reduced, as the profile bench-NAME; with COLD its phases start with a cold cache.
profile() {
    local caches='/^cache = /d'
    [[ $1 != ioping || -n ${COLD:-} ]] || caches=''   # ioping drops every page before it reads it
    { cat "$examples/$1.toml" 2>/dev/null || "$longhaul" preset print "$1"; } | only "$2" | sed "$caches" | sed "$(smaller "$1" "$2")" |
        awk -v cold="${COLD:-}" -v tool="$1" '{ print } /^name = / && begins { if (cold && tool != "bonnie") print "cache = \"cold\"" } { begins = /^\[\[phase\]\]$/ }' \
            > "$work/bench-$1.toml"
}
# requests_in MODE: prints the number of sysbench requests: about a second of writing, which the syncs dominate, and four times as many
# in modes that only read. Sequential writes end with the files.
requests_in() {
    local requests=${REQUESTS:-$([[ $where == tmpfs ]] && echo 131072 || echo 16384)}
    case $1 in
        seqwr) echo $((requests < 16384 ? requests : 16384)) ;;
        ???rd) echo $((requests * 4)) ;;
        rndrw) echo $((requests / 5 * 5)) ;;
        *) echo "$requests" ;;
    esac
}
# repetitions MODE: prints the number of repetitions of our steps; a repetition of the mixed mode has five requests.
repetitions() { echo $(($(requests_in "$1") / ($([[ $1 == rndrw ]] && echo 5 || echo 1)))); }
# Drops the files of the originals from the cache, as longhaul does with its own.
cold() {
    local file
    [[ -n ${COLD:-} ]] || return 0
    sync
    for file in "$place"/* "$work"/shared/*; do
        [[ ! -f $file ]] || dd if="$file" iflag=nocache count=0 status=none
    done
}
# For a minute ext4 does not reuse deleted inodes, and checks each of them whenever a file is created (recently_deleted in
# fs/ext4/ialloc.c), which would make the second side ten times slower. A new file system has no deleted inodes; on another one ext4
# skips inodes whose block is no longer cached.
forget_deleted() {
    [[ -z $has_its_own || $place != "$work/disk" ]] || { make_anew; return; }
    sync
    { echo 3 > /proc/sys/vm/drop_caches; } 2>/dev/null || sleep 61
}
# ours NAME PART: runs longhaul's preset once, and prints every figure as "figure<TAB>number".
ours() {
    "$longhaul" preset "$work/bench-$1.toml" --as-original --runs 1 --json --target "bench=$place" 2>/dev/null |
        grep -o '"name":"[^"]*","published":\[\],"range":\[[^]]*\],"unit":"[^"]*","values":\[[^]]*\]' |
        sed 's/^"name":"\([^"]*\)".*"values":\[\([^]]*\)\]$/\1\t\2/'
}

# our_files TOOL SET PREFIX: links the files of a set that longhaul created as PREFIX0, PREFIX1 and so on in $work/shared.
our_files() {
    local file number=0
    rm -rf "$work/shared"
    mkdir "$work/shared"
    for file in "$place"/.longhaul-*-bench/presets/"bench-$1-"*/"$2"/*/*; do
        ln -s "$file" "$work/shared/$3$number"
        number=$((number + 1))
    done
}

# watched COMMAND...: runs an original with as_ours.c preloaded, which adds a second thread and clock reads around its calls.
watched() {
    rm -f "$work/calls"
    CALLS=$work/calls LD_PRELOAD=$as_ours "$@"
}
# in_calls KIND...: prints the seconds that the original spent in calls of these kinds.
in_calls() { awk -v kinds=" $* " 'index(kinds, " " $1 " ") { s += $2 } END { printf "%.9f", s }' "$work/calls"; }

# Runs dd. Rates are computed from the time in calls on the file, as longhaul does, without calls on /dev/zero and /dev/null. Writes
# include the close, because a network client may send data only then. Small blocks are read from an existing file, as in our profile.
# longhaul also reads the clock once between calls; in simulated time that takes time, in which more is read ahead.
theirs_dd() {
    local file=$place/theirs small_blocks=(bs=1024 count="$blocks") large_blocks=(bs=1048576 count="$large")
    # rate NAME BYTES KINDS OPERANDS...: runs dd once and prints its rate
    rate() {
        READINGS=${COLD:-0} watched dd status=none "${@:4}"
        awk -v name="$1" -v bytes="$2" -v s="$(in_calls $3)" 'BEGIN { printf "%s\t%f\n", name, bytes / s / 1e6 }'
    }
    # twice NAME BYTES OPERANDS...: reads a file twice and prints both rates
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
# Runs ioping. The latency is the time in its calls divided by the number of requests, the first value of its raw statistics.
theirs_ioping() {
    our_files ioping rapid rapid.
    watched ioping -q -B -w 1 -i 0 -S 64m "$work/shared/rapid.0" > "$work/said"
    awk -v s="$(in_calls read)" '{ printf "-R avg\t%f\n", s * 1e6 / $1 }' "$work/said"
}
# Runs sysbench. Rates are its counts divided by the time in its calls, because its own rates and latencies include its work between
# requests. The sync at the end is disabled, because sysbench does not time it separately.
theirs_sysbench-fileio() {
    local options=(--file-num=128 --file-total-size=256M --file-fsync-end=off --threads=1 --time=0) events folder=$work/shared
    events=$(requests_in "$1")
    # After each hundred requests sysbench syncs all files, and counts the syncs as events too.
    [[ $1 == ???rd ]] || events=$((events + events / 100 * 128))
    if [[ $1 == seqwr ]]; then   # sysbench creates the files itself
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
# Runs bonnie++. Figures use the time in its calls, because its own times include its work between calls, and it prints no figure for
# times that are too short. It syncs its file at the end of each block phase (SPLIT), then closes it. It syncs after it has created all
# small files and again after it has deleted them, in order and then at random. It finds the files to delete in order by listing the
# folder, as longhaul does, and both count that time. In simulated time its block reads have no figure, because the cache answers them
# in zero time.
theirs_bonnie() {
    local amount=(-s "${mebibytes}M:8k" -n 0) split=1
    [[ $1 == *block* ]] || { amount=(-s 0 -n $((files / 1024))); split=0; }
    SPLIT=$split watched bonnie++ -d "$place" -r "$((mebibytes / 2))M" "${amount[@]}" -f -q -u "$(id -un)" > /dev/null 2>&1
    if [[ $1 == *block* ]]; then
        # The first part is its preparation, the last ones are its seeks.
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
# Runs fio. Rates are KiB read and written (terse output, version 3 in fio(1)) divided by the time in its calls, which are made on one
# thread, without a sync. iomem_align starts its buffers at a page, as ours do, because the kernel copies up to twice as fast into
# them. gtod_reduce disables fio's own clock reads, which are not used here: work between calls makes the next call slower.
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

# A virtual machine returns free memory to its host after a while, and waits when the memory is written again; but it only returns
# pieces of 2 MiB (page_reporting_order in mm/page_reporting.c). So 2 GiB, or half of the available memory, are allocated and freed,
# except for one page in each piece. The freed parts stay in the machine, and are allocated first because they are smaller pieces.
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

# run SIDE NAME PART: runs one side after a sync, because pending write-back would slow only one side.
run() {
    sync --file-system "$place"
    [[ $2 != bonnie ]] || forget_deleted
    "$1" "$2" "$3"
}

# compare NAME TOOL PART: runs pairs of ours and theirs, and adds a line to the data for each of our figures, with "-" if the original
# has none: "tool: figure<TAB>file system<TAB>start of the run<TAB>ours<TAB>theirs".
compare() {
    command -v "$2" >/dev/null || return 0
    local pair end weight=1
    # These parts vary most between pairs, so they get more time.
    [[ $1 != bonnie && $3 != large-* ]] || weight=4
    profile "$1" "$3"
    run ours "$1" "$3" >/dev/null   # creates the files
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
    # Removes the sandbox, so that every part starts in the same state.
    "$longhaul" targets clean "bench=$place" --yes >/dev/null
}

# Prints the data as a table: the median over runs of the median over the pairs of each run. Runs vary more than pairs within a run, so
# the interval is computed over the runs. A figure that the original does not print, or not always, has no row.
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
        # Rank, from both ends of the sorted runs, of the distribution-free 95 % confidence interval of the median: the
        # probability of fewer heads in n coin tosses is at most 2.5 %. For fewer than six runs the interval is their range.
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

# parts TOOL: prints the name of its program, then the patterns of the parts that are compared separately.
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
