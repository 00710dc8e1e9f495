#!/usr/bin/env bash
# Runs our classics and their originals in turn in the same folder and the same mode, and prints a Markdown table.
#
#   LONGHAUL=target/release/longhaul tests/bench/classics.sh [folder on a local disk]
#
# In each pair the order alternates; a ratio is that of one pair, so what slows the machine for a while slows both. Our
# profiles are those that longhaul has, with smaller sizes and shorter times, and zeros as content, as the originals write.
# Caches are as the originals leave them, and fio's empty, as it has them. Originals that are not installed are skipped by name. PAIRS and FILES (bonnie's)
# change how much is done, TOOLS names those that are compared, PLACES other folders than one on the disk and one in memory.
set -euo pipefail
export LC_ALL=C

longhaul=${LONGHAUL:-target/release/longhaul}
local_disk=${1:-${TMPDIR:-/tmp}}
pairs=${PAIRS:-5}
files=${FILES:-65536}
tools=${TOOLS:-dd ioping sysbench-fileio bonnie amorphous}
[[ -x $longhaul ]] || { echo "$longhaul is not there: cargo build --release, or set LONGHAUL" >&2; exit 1; }
for tool in dd ioping sysbench bonnie++ fio; do
    command -v "$tool" >/dev/null || echo "skipped: $tool is not installed"
done

work=$(mktemp -d "$local_disk/longhaul-classics.XXXXXX")
memory=$(mktemp -d /dev/shm/longhaul-classics.XXXXXX)
trap 'rm -rf "$work" "$memory"' EXIT
mkdir "$work/home"
export HOME=$work/home XDG_DATA_HOME=$work/home/data XDG_CONFIG_HOME=$work/home/config

# profile NAME SED: a classic under the name bench-NAME, smaller.
profile() { "$longhaul" profile print "$1" | sed "$2" > "$work/bench-$1.toml"; }
profile dd 's/"1 GiB"/"256 MiB"/; s/times = 1024/times = 256/; s/cache = "cold"/cache = "none"/'
profile ioping 's/times = 20/times = 1/'
profile sysbench-fileio 's/seconds = 10.0/seconds = 1.0/; s/"16 MiB"/"2 MiB"/'
profile bonnie 's/"1 GiB"/"64 MiB"/; s/1048576/65536/; s/count = 16384/count = '"$files"'/; s/cache = "cold"/cache = "none"/'
profile amorphous 's/"16 MiB"/"2 MiB"/; s/seconds = 5.0/seconds = 1.0/'

# ours NAME: one run, every figure of it as "figure<TAB>number".
ours() {
    "$longhaul" classic "$work/bench-$1.toml" --as-original --runs 1 --json --target "bench=$place" 2>/dev/null |
        grep -o '"name":"[^"]*","published":\[\],"range":\[[^]]*\],"unit":"[^"]*","values":\[[^]]*\]' |
        sed 's/^"name":"\([^"]*\)".*"values":\[\([^]]*\)\]$/\1\t\2/'
}

dd_seconds() { dd "$@" 2>&1 | awk '/copied/ { sub(/.*copied, /, ""); print $1 }'; }
# What dd spends on /dev/zero and /dev/null is taken off, as it tells itself; ours has neither. Of small blocks the reading
# of /dev/zero alone is measured by writing many of them at once; of large ones it is nearly all, and /dev/null is nothing.
theirs_dd() {
    local file=$place/theirs both zeros small=(bs=1024 count=100000) large=(bs=1048576 count=256)
    rate() { awk -v name="$1" -v bytes="$2" -v s="$3" -v off="$4" 'BEGIN { printf "%s\t%f\n", name, bytes / (s - off) / 1e6 }'; }
    both=$(dd_seconds "${large[@]}" if=/dev/zero of=/dev/null)
    rate "large write" 268435456 "$(dd_seconds "${large[@]}" if=/dev/zero of="$file")" "$both"
    rate "large read, repeated" 268435456 "$(dd_seconds "${large[@]}" if="$file" of=/dev/null)" 0
    rm -f "$file"
    both=$(dd_seconds "${small[@]}" if=/dev/zero of=/dev/null)
    zeros=$(dd_seconds ibs=1024 obs=1048576 count=100000 if=/dev/zero of=/dev/null)
    rate "small write" 10240000 "$(dd_seconds bs=1024 count=10000 if=/dev/zero of="$file")" "$(awk -v s="$zeros" 'BEGIN { print s / 10 }')"
    dd "${small[@]}" if=/dev/zero of="$file" 2>/dev/null
    rate "small read, repeated" 102400000 "$(dd_seconds "${small[@]}" if="$file" of=/dev/null)" "$(awk -v a="$both" -v b="$zeros" 'BEGIN { print a - b }')"
    rm -f "$file"
}
# Raw statistics: requests, time in them, IOPS, bytes a second, then shortest, mean and longest in nanoseconds.
theirs_ioping() {
    ioping -q -B -w 3 -i 0 -S 64m "$place" | awk '{ printf "-R avg\t%f\n", $6 / 1000 }'
}
# What it counts, over the sum of its latencies: its figure a second has its own time between requests in it.
theirs_sysbench-fileio() {
    local mode
    (
        cd "$place"
        options=(--file-num=128 --file-total-size=256M --threads=1 --time=1 --events=0)
        sysbench fileio "${options[@]}" prepare >/dev/null
        # seqwr last: it begins files anew, and what its time cuts off is too short for the others.
        for mode in seqrewr seqrd rndrd rndwr rndrw seqwr; do
            sysbench fileio "${options[@]}" --file-test-mode=$mode run |
                awk -v mode=$mode '
                    /(reads|writes|fsyncs)\/s:/ && $2 > 0 { sub(/\/s:/, "", $1); rate[$1] = $2 }
                    /total time:/ { total = $3 + 0 }
                    $1 == "sum:" { for (what in rate) printf "%s %s\t%f\n", mode, what, rate[what] * total / ($2 / 1000) }'
        done
        sysbench fileio "${options[@]}" cleanup >/dev/null
    )
}
# CSV (bonnie++(8), format 1.98): K/sec of block write, rewrite, block read; then files created and deleted in a second.
# What it finds too short to say is +++++.
theirs_bonnie() {
    bonnie++ -d "$place" -s 512M:8k -r 256M -n $((files / 1024)) -f -q -u "$(id -un)" 2>/dev/null | tail -1 |
        awk -F, '{
            printf "Sequential Output, Block\t%s\nRewrite\t%s\nSequential Input, Block\t%s\n", $12, $14, $18
            printf "Sequential Create, Create\t%s\nSequential Create, Delete\t%s\n", $27, $31
            printf "Random Create, Create\t%s\nRandom Create, Delete\t%s\n", $33, $37
        }' | sed '/+++/d'
}
# Terse fields (fio(1), version 3): KiB/s, IOPS, mean completion latency in microseconds; of reads 7, 8, 16, of writes 48, 49, 57.
theirs_amorphous() {
    fio_lines() {
        fio --name=bench --directory="$place" --filename_format='theirs.$filenum' --nrfiles=64 --size=128M --ioengine=psync --invalidate=1 \
            --file_service_type="$4" --time_based --runtime=1 --end_fsync=1 --rw="$2" --bs="$3" --output-format=terse 2>/dev/null |
            awk -F';' -v name="$1" -v first="$5" -v clat="$6" '{
                printf "%s\t%f\n%s, IOPS\t%f\n%s, latency\t%f\n", name, $first * 1.024 / 1000, name, $(first + 1), name, $clat
            }'
    }
    fio_lines "SEQ1M QD1 read" read 1M sequential 7 16
    fio_lines "RND4K QD1 read" randread 4k random 7 16
    fio_lines "SEQ1M QD1 write" write 1M sequential 48 57
    fio_lines "RND4K QD1 write" randwrite 4k random 48 57
    rm -f "$place"/theirs.*
}

# compare NAME TOOL: pairs of ours and theirs; a line for each figure that both print.
compare() {
    command -v "$2" >/dev/null || return 0
    local pair all=$work/all
    : > "$all"
    ours "$1" >/dev/null   # makes the files once
    for ((pair = 0; pair < pairs; pair++)); do
        if ((pair % 2 == 0)); then
            ours "$1" > "$work/ours"; "theirs_$1" > "$work/theirs"
        else
            "theirs_$1" > "$work/theirs"; ours "$1" > "$work/ours"
        fi
        join -t $'\t' <(sort "$work/ours") <(sort "$work/theirs") >> "$all"
    done
    sort -t $'\t' -k1,1 -s "$all" | awk -F'\t' -v tool="$2" -v where="$where" '
        function median(list, count,   i, j, held) {
            for (i = 2; i <= count; i++) {
                held = list[i]
                for (j = i - 1; j > 0 && list[j] > held; j--) list[j + 1] = list[j]
                list[j + 1] = held
            }
            return count % 2 ? list[(count + 1) / 2] : (list[count / 2] + list[count / 2 + 1]) / 2
        }
        function put() {
            if (!n) return
            middle = median(ratio, n)
            printf "| %s: %s | %s | %.4g | %.4g | %.2f (%.2f to %.2f) | %d |\n", tool, name, where, median(a, n), median(b, n), middle, ratio[1], ratio[n], n
        }
        $1 != name { put(); n = 0; name = $1 }
        $3 > 0 { n++; a[n] = $2; b[n] = $3; ratio[n] = $2 / $3 }
        END { put() }'
    # The arena goes, so that the next begins alike.
    "$longhaul" clean "bench=$place" --yes >/dev/null
}

echo '| figure | on | ours | original | ours/original by pair, median (range) | pairs |'
echo '|---|---|---:|---:|---:|---:|'
for place in ${PLACES:-"$work/disk" "$memory"}; do
    mkdir -p "$place"
    where=$(df --output=fstype "$place" | tail -1)
    for tool in $tools; do
        case $tool in
            sysbench-fileio) compare $tool sysbench ;;
            bonnie) compare $tool bonnie++ ;;
            amorphous) compare $tool fio ;;
            *) compare "$tool" "$tool" ;;
        esac
    done
done
