#!/usr/bin/env bash
# simulated.sh - the same real file servers and client mounts as lab.sh, but in simulated time:
# one User-Mode Linux machine whose clock skips all idle time (time-travel=inf-cpu).
# A daemon can run for weeks of machine time in minutes; network delay is exact and results
# are repeatable. CPU work takes no simulated time, so latencies consist only of network delay
# (netem) and protocol round trips: this tests behaviour, not speed.
#
#   simulated.sh check      print what is missing to build the kernel and exit with 1, or print nothing
#   simulated.sh build      build the kernel from Debian's linux-source-6.1 (5 min on 2 cores, once and when OPTIONS change;
#                           needs gcc make flex bison bc libelf-dev; ~1.6 GB while building, 9 MB after)
#   simulated.sh run CMD... boot, mount /m/{local,smb3,nfs3,nfs4,afp}, run CMD, power off; exits with CMD's status
#
# Settings: LAB_DIR, LAB_SHARE as in lab.sh (whose `setup` makes the root trees used here),
# SIMULATED_NET (netem arguments for each direction, default "delay 250us"), SIMULATED_MOUNTS,
# SIMULATED_DISK (milliseconds by which each request to the disk of the NAS is delayed; without it the disk is memory),
# SIMULATED_TIMEOUT (real seconds, default 600), SIMULATED_START (date the machine's clock starts at,
# e.g. 2026-03-27T00:00:00Z: DST, month ends ...), SIMULATED_MEM (default 1536M).
set -eu
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
LAB_DIR=${LAB_DIR:-$(cd "$here/../.." && pwd)/target/lab}
LAB_SHARE=${LAB_SHARE:-$(git rev-parse --show-toplevel 2>/dev/null || pwd)}
NET=${SIMULATED_NET:-delay 250us} TIMEOUT=${SIMULATED_TIMEOUT:-600} MEM=${SIMULATED_MEM:-1536M}
MOUNTS=${SIMULATED_MOUNTS:-local smb3 nfs3 nfs4 afp} START=${SIMULATED_START:-}
K=$LAB_DIR/linux-simulated
# A kernel that was built with other options is built anew.
OPTIONS='-d MODULES -d DEBUG_KERNEL -d DEBUG_INFO -e UML_TIME_TRAVEL_SUPPORT -e HIGH_RES_TIMERS -e NO_HZ_IDLE
  -e HOSTFS -e OVERLAY_FS -e TMPFS -e TMPFS_XATTR -e DEVTMPFS -e EXT4_FS -e FUSE_FS -e BLK_DEV_LOOP -e MD -e BLK_DEV_DM -e DM_DELAY -e DM_FLAKEY -e NETWORK_FILESYSTEMS
  -e NFS_FS -e NFS_V3 -e NFS_V4 -e NFS_V4_1 -e NFS_V4_2 -e NFSD -e NFSD_V4 -e CIFS -e CIFS_ALLOW_INSECURE_LEGACY -e CIFS_STATS2 -e CIFS_XATTR -e CIFS_POSIX
  -e INET -e IPV6 -e UNIX -e PACKET -e NAMESPACES -e NET_NS -e NETDEVICES -e VETH -e NET_SCHED -e NET_SCH_NETEM
  -e NLS -e NLS_UTF8 -e INOTIFY_USER -e FANOTIFY -e AIO -e IO_URING -e POSIX_MQUEUE -e KEYS -e DNS_RESOLVER -e CGROUPS -e TASKSTATS -e TASK_XACCT -e TASK_IO_ACCOUNTING -e TASK_DELAY_ACCT'
export LAB_DIR LAB_SHARE

built() { [ -x "$K" ] && [ "$(cat "$K.options" 2>/dev/null)" = "$OPTIONS" ]; }

check() {
  "$here/lab.sh" check
  built && return 0
  local t; for t in gcc make flex bison bc apt-get; do command -v $t >/dev/null || { echo "simulated: needs $t" >&2; exit 1; }; done
  [ -e /usr/include/libelf.h ] || { echo "simulated: needs libelf-dev" >&2; exit 1; }
}

build() {
  built && return 0
  check
  mkdir -p "$LAB_DIR"
  # One of several machines that start at once builds it; the others wait.
  (flock 9; built || compile) 9>"$LAB_DIR/build.lock"
}

compile() {
  local w; w=$(mktemp -d "$LAB_DIR/build.XXXX")
  (
    cd "$w"; apt-get -qq download linux-source-6.1
    dpkg-deb -x linux-source-6.1_*.deb .; tar xf usr/src/linux-source-6.1.tar.xz; cd linux-source-6.1
    make -s ARCH=um defconfig
    # shellcheck disable=SC2086  # a list of words
    ./scripts/config $OPTIONS
    make -s ARCH=um olddefconfig; make -s ARCH=um -j"$(nproc)" linux
    # Not written in place: a machine may be running the old kernel.
    strip -s -o "$w/kernel" linux; mv "$w/kernel" "$K"; printf '%s' "$OPTIONS" >"$K.options"
  ) >"$w/log" 2>&1 || { tail -20 "$w/log" >&2; rm -rf "$w"; exit 1; }
  rm -rf "$w"
}

run() {
  build; "$here/lab.sh" setup; "$here/lab.sh" fit "$K"
  local rc; w=$(mktemp -d "$LAB_DIR/simulated.XXXX"); trap 'rm -rf "$w"' EXIT
  printf '%q ' "$@" >"$w/cmd"; printf '%s' "$PWD" >"$w/cwd"
  mkdir -p "$LAB_DIR/root/client/nas"
  # ---- pid 1: one overlay for the client's programs, one (chroot) for the nas's -----------------
  cat >"$LAB_DIR/root/client/init-simulated" <<'E'
#!/bin/bash
export PATH=/usr/local/bin:/usr/sbin:/usr/bin HOME=/root LANG=C.UTF-8
mount -t proc proc /proc; mount -t tmpfs -o size=60%,mode=755 tmpfs /mnt; mkdir /mnt/{u,w,n,nl,nu,nw}
mount -t overlay -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w,index=off,xino=off overlay /mnt/n
mount -t hostfs -o "$nasroot" none /mnt/nl; mount -t overlay -o lowerdir=/mnt/nl,upperdir=/mnt/nu,workdir=/mnt/nw,index=off,xino=off overlay /mnt/n/nas
cd /mnt/n
for r in . nas; do
  mount -t proc proc $r/proc; mount -t sysfs sysfs $r/sys; mount -t devtmpfs dev $r/dev; ln -sfn /proc/self/fd $r/dev/fd
  mkdir -p $r/dev/pts $r/dev/shm; mount -t devpts devpts $r/dev/pts; for i in dev/shm run tmp; do mount -t tmpfs -o mode=1777 tmpfs $r/$i; done
done
mount -t hostfs -o / none host; mount -t hostfs -o "$labrun" none lab
IFS=:; for i in $labshare; do mkdir -p ".$i" && mount -t hostfs -o "$i" none ".$i"; done; unset IFS
exec chroot . /bin/bash /lab/main
E
  chmod +x "$LAB_DIR/root/client/init-simulated"
  cat >"$w/nas" <<'E'
export PATH=/usr/sbin:/usr/bin
mkdir -p /run/rpcbind /run/samba /run/lock; touch /var/lib/nfs/{etab,rmtab,state}
echo '/srv/share *(rw,async,no_subtree_check,all_squash,anonuid=1000,anongid=1000,fsid=0,insecure)' >/etc/exports
mount -t nfsd nfsd /proc/fs/nfsd; rpcbind -w; exportfs -ra; rpc.mountd; rpc.nfsd -V 3 -V 4.2 8
printf '[global]\n server role = standalone server\n disable netbios = yes\n smb ports = 445\n load printers = no\n printing = bsd\n printcap name = /dev/null\n disable spoolss = yes\n log level = 0\n vfs objects = catia fruit streams_xattr\n[share]\n path = /srv/share\n read only = no\n force user = lab\n' >/etc/samba/smb.conf
printf 'labpw\nlabpw\n' | smbpasswd -s -a lab >/dev/null; smbd -D
case +$ttmounts+ in *+afp+*) ;; *) exit 0;; esac
printf '[Global]\n uam list = uams_dhx2_passwd.so\n save password = yes\n log file = /var/log/netatalk.log\n zeroconf = no\n spotlight = no\n afp listen = 10.77.0.2\n hostname = nas\n[share]\n path = /srv/share\n ea = sys\n' >/etc/netatalk/afp.conf
# started without the parent process "netatalk", whose 2.6 wake-ups a second would make a simulated week slow
cnid_metad -d -F /etc/netatalk/afp.conf & afpd -d -F /etc/netatalk/afp.conf &
E
  cat >"$w/main" <<'E'
export PATH=/usr/local/bin:/usr/sbin:/usr/bin HOME=/root LANG=C.UTF-8
[ -z "$ttstart" ] || date -s "$ttstart" >/dev/null
hostname client; ip link set lo up
ip netns add nas; ip link add vec0 type veth peer name s0 netns nas; N="nsenter --net=/run/netns/nas"
ip addr add 10.77.0.1/24 dev vec0; ip link set vec0 up; $N ip link set lo up; $N ip addr add 10.77.0.2/24 dev s0; $N ip link set s0 up
tc qdisc add dev vec0 root netem limit 20000 ${ttnet//+/ }; $N tc qdisc add dev s0 root netem limit 20000 ${ttnet//+/ }
if [ -n "$ttdisk" ]; then # ext4 on a loop device below dm-delay, which delays each request by so many milliseconds
  truncate -s 1G /tmp/share.img; mke2fs -q -t ext4 /tmp/share.img; loop=$(losetup -f --show /tmp/share.img)
  dmsetup create --noudevsync share --table "0 $(blockdev --getsz $loop) delay $loop 0 ${ttdisk}"; dmsetup mknodes
  mount -o noatime /dev/mapper/share /nas/srv/share
else mount -t tmpfs -o size=40% tmpfs /nas/srv/share; fi
chmod 777 /nas/srv/share
$N chroot /nas /bin/bash <"/lab/nas"
up() { local i; for i in $(seq 600); do (exec 3<>/dev/tcp/10.77.0.2/$1) 2>/dev/null && return; sleep .05; done; return 1; }
mkdir -p -m 700 /run/user/0
for m in ${ttmounts//+/ }; do
  mkdir -p /m/$m
  case $m in
    local) truncate -s 1G /tmp/local.img; mke2fs -q -t ext4 /tmp/local.img; mount -o loop,noatime /tmp/local.img /m/local;; # a loop device, because a ubd disk runs in real time
    smb?) case $m in smb1) v=1.0;; smb2) v=2.1;; *) v=3.1.1;; esac; up 445; mount -t cifs //10.77.0.2/share /m/$m -o vers=$v,username=lab,password=labpw,nosharesock,iocharset=utf8;;
    nfs3) up 2049; mount -t nfs 10.77.0.2:/srv/share /m/nfs3 -o vers=3,nolock,tcp;;
    nfs4) up 2049; mount -t nfs 10.77.0.2:/ /m/nfs4 -o vers=4.2;;
    afp) up 548; bash /etc/lab/mount-afp;;
  esac || echo "mount of $m failed"
done
sleep 100 # the server's 90 s NFSv4 grace period (costs nothing here)
cd "$(cat /lab/cwd)" 2>/dev/null || cd /
eval "$(cat /lab/cmd)" </dev/null; echo $? >/lab/rc; cut -d' ' -f1 /proc/uptime >/lab/uptime; sync
echo o >/proc/sysrq-trigger; sleep 9
E
  local t0=$SECONDS
  # Own process group that is terminated when this script ends, even if the script is killed.
  setsid setpriv --pdeathsig TERM timeout -k 5 "$TIMEOUT" "$K" mem=$MEM time-travel=inf-cpu root=/dev/root rootfstype=hostfs \
    rootflags="$LAB_DIR/root/client" rw quiet loglevel=1 init=/init-simulated \
    nasroot="$LAB_DIR/root/nas" labrun="$w" labshare="$LAB_SHARE" ttnet="${NET// /+}" ttdisk="${SIMULATED_DISK:-}" ttmounts="${MOUNTS// /+}" ttstart="$START" \
    con=null con0=null,fd:1 uml_dir="$w/uml" umid=simulated </dev/null &
  machine=$!; trap 'kill $machine 2>/dev/null || true; rm -rf "$w"' EXIT
  wait $machine || true
  rc=$(cat "$w/rc" 2>/dev/null || echo 124)
  echo "simulated: $(cat "$w/uptime" 2>/dev/null || echo '?') s in $((SECONDS - t0)) real ones" >&2
  return "$rc"
}
cmd=${1:-help}; [ $# -gt 0 ] && shift
case $cmd in check) check;; build) build;; run) run "$@";; *) sed -n '2,/^set -eu/p' "${BASH_SOURCE[0]}" | sed '$d; s/^# \{0,1\}//';; esac
