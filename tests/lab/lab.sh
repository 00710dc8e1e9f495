#!/usr/bin/env bash
# lab.sh - two small virtual Linux machines ("nas" and "client") connected by a private network,
# for testing a program against real file servers through real client mounts.
#
#   nas    Samba (SMB1..3.1.1), kernel nfsd (NFS 3, 4.2), Netatalk (AFP 3.4) on one ext4 disk
#   client kernel cifs and nfs mounts, gvfs/FUSE for AFP, a local ext4 disk as the baseline
#
# Both are User-Mode Linux (Debian package user-mode-linux): each is an ordinary host process.
# The host needs no root, no /dev/kvm, no kernel modules, no FUSE and no network. It needs
# ptrace, ~3 GiB of RAM (in $TMPDIR or /dev/shm), 1 GB of disk under $LAB_DIR, python3,
# apt-get + dpkg-deb + tar, mke2fs and a Debian mirror (first time only).
# x86_64 hosts only. Nothing listens on the host: the network is one socketpair(2).
#
#   lab.sh setup            download and unpack (idempotent; `up` does it when needed)
#   lab.sh up               boot both, mount everything, print the mounts
#   lab.sh run CMD...       run CMD in the client (cwd, stdout/stderr, exit status; boots if down)
#   lab.sh nas CMD...       run CMD in the nas
#   lab.sh net ARGS|clear   tc netem on BOTH ends, e.g. `net delay 5ms 1ms rate 1gbit loss 0.1%`
#                           (one-way values: the round trip gets twice the delay)
#   lab.sh cut | heal       drop every packet both ways (cable pulled) / undo
#   lab.sh freeze [ROLE]    stop a machine with SIGSTOP (default nas: a hung NAS); thaw [ROLE] continues it
#   lab.sh kill-nas         kill the nas, as a power loss does; lab.sh boot-nas starts it again
#   lab.sh check            print why this host cannot run the lab and exit with 1, or print nothing
#   lab.sh programs PKG...  install more programs for the client into $LAB_DIR/programs, outside of its root tree
#   lab.sh status | log ROLE | down | clean
#
# Settings (environment): LAB_DIR (default: target/lab of the repository), LAB_LIFELINE (a file: the machines end as
# soon as no process holds a lock on it, so that a killed caller leaves nothing running), LAB_SHARE (host
# directories that appear read-write at the same path inside, ':'-separated; default: the git
# top level of $PWD, else $PWD; the whole host tree is at /host), LAB_MOUNTS, LAB_MEM, LAB_ENV (names to pass on),
# LAB_TIMEOUT (seconds for `run`, default 600), LAB_MIRROR, LAB_AFP_DELAY.
#
# Mounts in the client: /m/local /m/smb1 /m/smb2 /m/smb3 /m/nfs3 /m/nfs4 /m/afp. All shares export
# the same directory of the nas (/srv/share), so one data set serves every protocol.
# User and password on the nas: lab / labpw. Addresses: client 10.77.0.1, nas 10.77.0.2.
set -eu
LAB_DIR=${LAB_DIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/target/lab}
LAB_LIFELINE=${LAB_LIFELINE:-}
LAB_MOUNTS=${LAB_MOUNTS:-local smb1 smb2 smb3 nfs3 nfs4 afp}
LAB_MEM=${LAB_MEM:-1024M}
LAB_MIRROR=${LAB_MIRROR:-$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
  sed -nE 's#^URIs: *(https?://[^ ]*)/debian/? *$#\1#p; s#^deb .*(https?://[^ ]*)/debian/? .*#\1#p' | head -1)}   # the host's mirror
LAB_SHARE=${LAB_SHARE:-$(git rev-parse --show-toplevel 2>/dev/null || pwd)}
LAB_TIMEOUT=${LAB_TIMEOUT:-600}
LAB_ENV=${LAB_ENV:-RUST_LOG RUST_BACKTRACE}
LAB_AFP_DELAY=${LAB_AFP_DELAY:-6ms}
export LAB_LIFELINE LAB_AFP_DELAY LAB_DIR LAB_MEM LAB_MOUNTS LAB_SHARE LAB_TIMEOUT LAB_ENV
ROOT=$LAB_DIR/root RUN=$LAB_DIR/run KER=$LAB_DIR/kernel
PATH=$PATH:/usr/sbin:/sbin
export ROOT RUN KER

CORE="bash coreutils dash debianutils sed grep gawk findutils tar gzip diffutils base-files base-passwd libc-bin
 util-linux mount procps hostname netbase kmod iproute2 iputils-ping e2fsprogs python3-minimal libpython3-stdlib attr acl strace tcpdump"
NAS="$CORE samba samba-common-bin nfs-kernel-server nfs-common snmpd prometheus-node-exporter"
# gvfs is from bookworm, because gvfsd-afp of trixie (1.57.2) crashes after a few file creations
CLIENT="$CORE cifs-utils nfs-common smbclient keyutils gvfs-fuse gvfs-backends libglib2.0-bin fuse3 dbus-daemon dbus-bin fio dmsetup ethtool"

say() { printf 'lab: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# Runs apt isolated from the host: own package lists and cache, no locks, no root. The dpkg status is empty, so that
# all dependencies are downloaded.
apt_iso() { # apt_iso SUITE ARGS...
  local s=$1 d=$LAB_DIR/apt/$1; shift
  mkdir -p "$d/lists/partial" "$d/cache/archives/partial"; : >"$d/status"
  local k='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]'
  printf 'deb %s %s/debian %s main\ndeb %s %s/debian-security %s-security main\n' \
    "$k" "$LAB_MIRROR" "$s" "$k" "$LAB_MIRROR" "$s" >"$d/sources.list"
  cat >"$d/apt.conf" <<E
Dir::Etc::sourcelist "$d/sources.list"; Dir::Etc::sourceparts "/dev/null"; Dir::Etc::preferencesparts "/dev/null";
Dir::State::lists "$d/lists"; Dir::State::status "$d/status"; Dir::Cache "$d/cache"; Dir::Cache::archives "$d/cache/archives";
Debug::NoLocking "1"; APT::Sandbox::User "root"; APT::Install-Recommends "0"; Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "0"; Acquire::Retries "3";
E
  APT_CONFIG=$d/apt.conf "$@"
}

unpack() { # unpack DEB DIR: unpacks a package without documentation; keeps the links of a merged /usr
  dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" --no-same-owner --keep-directory-symlink \
    --exclude=./usr/share/doc --exclude=./usr/share/man --exclude=./usr/share/locale --exclude=./usr/share/icons 2>/dev/null || true
}
programs() {
  local R=$LAB_DIR/programs d; [ "$(cat "$R/.ready" 2>/dev/null || true)" != "$*" ] || return 0; rm -rf "$R"; mkdir -p "$R"
  apt_iso bookworm apt-get -qq update; apt_iso bookworm apt-get -qq -y --download-only install "$@" >/dev/null
  for d in "$LAB_DIR/apt/bookworm/cache/archives"/*.deb; do unpack "$d" "$R"; done; rm -rf "$LAB_DIR/apt"; echo "$*" >"$R/.ready"
}

make_root() { # make_root DIR SUITE PACKAGES...: creates a root tree from packages, without running maintainer scripts
  local R=$1 s=$2 d; shift 2
  rm -rf "$R"; mkdir -p "$R"/usr/{bin,sbin,lib,lib64}; for d in bin sbin lib lib64; do ln -sfn usr/$d "$R/$d"; done
  apt_iso "$s" apt-get -qq -y --download-only install "$@" >/dev/null
  for d in "$LAB_DIR/apt/$s/cache/archives"/*.deb; do unpack "$d" "$R"; done
  rm -f "$LAB_DIR/apt/$s/cache/archives"/*.deb
  # folders and users that the maintainer scripts would have created
  mkdir -p "$R"/{mnt,m,srv/share,lab,host,home/lab,proc,sys,dev,run,tmp,root,etc/samba,etc/pam.d,etc/lab} "$R/usr/lib/modules" \
    "$R"/var/lib/{nfs/sm,nfs/v4recovery,nfs/rpc_pipefs,samba/private,netatalk/CNID} "$R"/var/{log/samba,cache/samba,lock}
  cp "$R/usr/share/base-passwd/passwd.master" "$R/etc/passwd"; cp "$R/usr/share/base-passwd/group.master" "$R/etc/group"
  printf '%s\n' 'lab:x:1000:1000::/home/lab:/bin/bash' '_rpc:x:106:65534::/run/rpcbind:/usr/sbin/nologin' \
    'statd:x:107:65534::/var/lib/nfs:/usr/sbin/nologin' 'messagebus:x:108:108::/nonexistent:/usr/sbin/nologin' >>"$R/etc/passwd"
  printf '%s\n' 'lab:x:1000:' 'messagebus:x:108:' >>"$R/etc/group"
  # "labpw", SHA-512 crypt, salt "labsalt"
  echo 'lab:$6$labsalt$gaaTMLEl1XvMqzhulPEzHQVQEx91JyApJCcFOEbVp7I13/8EuL54qQVoTHPLh4GIHCcR49.Ii0WrMihXu8SKf0:19000:0:99999:7:::' >"$R/etc/shadow"
  printf '%s: files\n' passwd group shadow hosts services protocols rpc netgroup >"$R/etc/nsswitch.conf"
  printf '127.0.0.1 localhost\n10.77.0.1 client\n10.77.0.2 nas\n' >"$R/etc/hosts"
  for d in auth account session password session-noninteractive; do echo "${d%%-*} required pam_unix.so" >"$R/etc/pam.d/common-$d"; done
  echo 0123456789abcdef0123456789abcdef >"$R/etc/machine-id"
  [ -e "$R/usr/bin/awk" ] || ln -s gawk "$R/usr/bin/awk"
  ldconfig -r "$R" 2>/dev/null || true
  d=$R/usr/lib/x86_64-linux-gnu       # run with the loader of the root tree, which works with any host libc and without chroot
  [ ! -x "$d/glib-2.0/glib-compile-schemas" ] || "$d/ld-linux-x86-64.so.2" --library-path "$d" "$d/glib-2.0/glib-compile-schemas" "$R/usr/share/glib-2.0/schemas"
}

check() { # checks the requirements that cannot be installed: processor, tools, permission to use ptrace
  [ "$(uname -m)" = x86_64 ] || die "x86_64 only (User-Mode Linux has no other port)"
  local t; for t in apt-get dpkg-deb tar python3 mke2fs setsid ldconfig; do command -v $t >/dev/null || die "needs $t"; done
  [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || die "needs Debian's keyring (package debian-archive-keyring)"
  python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(0, 0, 0, 0) != 0)' || die "ptrace is not allowed here"
}

setup() {
  local want; want="v2 trixie $(printf %s "$CLIENT$NAS" | cksum)"
  if [ "$(cat "$LAB_DIR/.ready" 2>/dev/null || true)" != "$want" ]; then
    check; local t0=$SECONDS
    down; rm -rf "$ROOT" "$KER" "$LAB_DIR/.ready"; mkdir -p "$ROOT" "$KER"
    say "fetching the kernel and the programs of both machines (Debian packages)"
    apt_iso bookworm apt-get -qq update
    # The kernel is from bookworm (6.1, needs glibc 2.34), because trixie's needs glibc 2.38.
    (cd "$LAB_DIR/apt/bookworm/cache" && apt_iso bookworm apt-get -qq download user-mode-linux)
    dpkg-deb -x "$(ls -t "$LAB_DIR/apt/bookworm/cache"/user-mode-linux_*.deb | head -1)" "$KER"
    make_root "$ROOT/client" bookworm $CLIENT
    apt_iso trixie apt-get -qq update
    make_root "$ROOT/nas" trixie $NAS netatalk netatalk-tests
    rm -rf "$LAB_DIR/apt"
    echo "$want" >"$LAB_DIR/.ready"
    say "set up in $((SECONDS - t0)) s, $(du -sm "$LAB_DIR" | cut -f1) MB"
  fi
  fit_registers "$KER/usr/bin/linux.uml"
  guest_files "$ROOT/nas"; guest_files "$ROOT/client"
}

# The UML kernel sets the registers of its processes with PTRACE_SETREGSET and a length of 2696 bytes, which covers AVX-512.
# On a processor with AMX the host requires 11008 bytes and rejects any other length (arch/x86/kernel/fpu/regset.c,
# xstateregs_set), so the UML kernel panics when its first process starts. The bytes beyond 2696 are not read, because the
# header says that the AMX tiles are unused. So it suffices to patch the length in the one call that sets the registers.
fit_registers() {   # fit_registers KERNEL
  python3 - "$1" <<'E'
import struct, sys
path, flags = sys.argv[1], open("/proc/cpuinfo").read().split()
call = lambda size: struct.pack("<I", size) + b"\xbf\x05\x42\0\0"   # movq $size,(length); mov $0x4205,%edi
old, new = (2696, 11008) if "amx_tile" in flags else (11008, 2696)
kernel = open(path, "rb").read()
if kernel.count(call(old)) == 1: open(path, "wb").write(kernel.replace(call(old), call(new)))
E
}

guest_files() { local ROOT=$1
# ---- pid 1 of both machines: a temporary overlay over the shared read-only root --------------
cat >"$ROOT/init" <<'E'
#!/bin/bash
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
mount -t proc proc /proc; mount -t hostfs -o "$labmods" none /usr/lib/modules; modprobe overlay
mount -t tmpfs -o size=60%,mode=755 tmpfs /mnt; mkdir /mnt/u /mnt/w /mnt/n
mount -t overlay -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w,index=off,xino=off overlay /mnt/n
cd /mnt/n
mount -t proc proc proc; mount -t sysfs sysfs sys; mount -t devtmpfs dev dev; mkdir -p dev/pts dev/shm; ln -sfn /proc/self/fd dev/fd
mount -t devpts devpts dev/pts; for i in dev/shm run tmp; do mount -t tmpfs -o mode=1777 tmpfs $i; done
mount -t hostfs -o / none host; mount -t hostfs -o "$labrun" none lab
IFS=:; for i in $labshare; do mkdir -p ".$i" && mount -t hostfs -o "$i" none ".$i"; done; unset IFS
mount --bind /usr/lib/modules usr/lib/modules
ip link set lo up; hostname $role
exec chroot . /bin/bash /etc/lab/$role
E
mkdir -p "$ROOT/etc/lab"
# ---- the nas ---------------------------------------------------------------------------------
cat >"$ROOT/etc/lab/nas" <<'E'
ip addr add 10.77.0.2/24 dev vec0; ip link set vec0 up
python3 /etc/lab/agent &
modprobe -a nfsd sch_netem
mount -t ext4 -o noatime /dev/ubda /srv/share; chown lab: /srv/share; chmod 777 /srv/share
mkdir -p /run/rpcbind /run/samba /run/lock; touch /var/lib/nfs/{etab,rmtab,state}
echo '/srv/share *(rw,sync,no_subtree_check,all_squash,anonuid=1000,anongid=1000,fsid=0,insecure)' >/etc/exports
mount -t nfsd nfsd /proc/fs/nfsd
rpcbind -w; exportfs -ra; rpc.mountd
rpc.nfsd -G 10 -L 10 -V 3 -V 4.2 8           # 10 s lease and grace instead of 90 s ...
echo Y >/proc/fs/nfsd/v4_end_grace           # ... and no grace period at all at boot
cat >/etc/samba/smb.conf <<X
[global]
 server role = standalone server
 server min protocol = NT1
 ntlm auth = yes
 disable netbios = yes
 smb ports = 445
 load printers = no
 printing = bsd
 printcap name = /dev/null
 disable spoolss = yes
 log level = 0
 vfs objects = catia fruit streams_xattr
[share]
 path = /srv/share
 read only = no
 force user = lab
X
printf 'labpw\nlabpw\n' | smbpasswd -s -a lab
smbd -D
if [ -x /usr/sbin/netatalk ]; then
# gvfs's AFP client has a race: a reply that arrives before the callback of its request is set kills
# gvfsd-afp, once in ~100 opens at LAN latency, never at 6 ms. So requests to port 548 are delayed.
if [ "$afpdelay" != 0 ]; then
  modprobe -a ifb act_mirred cls_u32 sch_ingress; ip link add ifb0 type ifb 2>/dev/null; ip link set ifb0 up
  tc qdisc add dev ifb0 root netem delay $afpdelay limit 20000
  tc qdisc add dev vec0 ingress
  tc filter add dev vec0 parent ffff: protocol ip u32 match ip dport 548 0xffff action mirred egress redirect dev ifb0
fi
cat >/etc/netatalk/afp.conf <<X
[Global]
 uam list = uams_dhx2_passwd.so
 save password = yes
 log file = /var/log/netatalk.log
 zeroconf = no
 spotlight = no
 afp listen = 10.77.0.2
 hostname = nas
[share]
 path = /srv/share
 ea = sys
X
netatalk
fi
cut -d' ' -f1 /proc/uptime >/lab/io/nas/ready
wait      # bash stays pid 1 and reaps orphans
E
# ---- the client ------------------------------------------------------------------------------
cat >"$ROOT/etc/lab/client" <<'E'
ip addr add 10.77.0.1/24 dev vec0; ip link set vec0 up
python3 /etc/lab/agent &
jobs=()
modprobe -a sch_netem cifs nfsv3 nfsv4 fuse
up() { local i; for i in $(seq 600); do (exec 3<>/dev/tcp/10.77.0.2/$1) 2>/dev/null && return; sleep .05; done; return 1; }
mkdir -p -m 700 /run/user/0
mount -t fusectl fusectl /sys/fs/fuse/connections
for m in $(tr + ' ' <<<"$labmounts"); do (
  mkdir -p /m/$m
  case $m in
    local) mount -t ext4 -o noatime /dev/ubda /m/local; chmod 777 /m/local;;
    smb?) up 445; case $m in smb1) v=1.0;; smb2) v=2.1;; smb3) v=3.1.1;; esac
          mount -t cifs //10.77.0.2/share /m/$m -o vers=$v,username=lab,password=labpw,nosharesock,iocharset=utf8;;
    nfs3) up 2049; mount -t nfs 10.77.0.2:/srv/share /m/nfs3 -o vers=3,nolock,tcp;;
    nfs4) up 2049; mount -t nfs 10.77.0.2:/ /m/nfs4 -o vers=4.2;;
    afp)  [ -x /usr/libexec/gvfsd-afp ] && up 548 && bash /etc/lab/mount-afp;;
  esac && echo "$(cut -d' ' -f1 /proc/uptime) $m mounted" || echo "mount of $m failed"
) & jobs+=($!); done
wait "${jobs[@]}"
cut -d' ' -f1 /proc/uptime >/lab/io/client/ready
wait
E
# ---- AFP: gvfs through FUSE. Also `lab.sh run mount-afp` after its backend died (see README) ----
cat >"$ROOT/etc/lab/mount-afp" <<'E'
export XDG_RUNTIME_DIR=/run/user/0 DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/0/bus GIO_USE_VOLUME_MONITOR=unix
[ -S /run/user/0/bus ] || dbus-daemon --session --address=$DBUS_SESSION_BUS_ADDRESS --fork
pkill -9 -x gvfsd-afp
for i in 1 2 3 4 5; do         # gvfsd-afp sometimes hangs after the login: kill it and try again
  printf 'labpw\n' | timeout 10 gio mount afp://lab@10.77.0.2/share >/dev/null && break; pkill -9 -x gvfsd-afp
done
rmdir /m/afp 2>/dev/null; ln -sfn /run/user/0/gvfs/afp-volume:host=10.77.0.2,user=lab,volume=share /m/afp; ls /m/afp/ >/dev/null
E
mkdir -p "$ROOT/usr/local/bin"; printf '#!/bin/sh\nexec bash /etc/lab/mount-afp\n' >"$ROOT/usr/local/bin/mount-afp"; chmod +x "$ROOT/usr/local/bin/mount-afp"
# ---- command agent: receives jobs and returns results as files in /lab/io/ROLE (hostfs) -------
cat >"$ROOT/etc/lab/agent" <<'E'
import json, os, select, signal, subprocess, sys, threading, time
role = os.uname().nodename; d = f"/lab/io/{role}"
def job(i):
    j = json.load(open(f"{d}/{i}.job")); o = os.open(f"{d}/{i}.out", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o666)
    env = dict(os.environ, **j["env"])
    try:
        cwd = j["cwd"] if os.path.isdir(j["cwd"]) else "/"
        p = subprocess.Popen(j["argv"], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, start_new_session=True)
        end = time.time() + j["timeout"]; fd = p.stdout.fileno(); late = None
        while late is None or time.time() < late:    # a stuck grandchild may keep the pipe open forever
            if select.select([fd], [], [], 0.05)[0]:
                b = os.read(fd, 1 << 16)
                if not b: break
                os.write(o, b); os.fdatasync(o)      # hostfs caches writes: flush them now
            if late is None and p.poll() is not None: late = time.time() + 0.5
            if late is None and time.time() > end:
                os.write(o, b"lab: timed out\n"); os.killpg(p.pid, signal.SIGKILL); late = time.time() + 2
        try: rc = p.wait(5)                          # the output ends a moment before the process
        except subprocess.TimeoutExpired: rc = 137
        rc = 128 - rc if rc < 0 else rc
    except OSError as e:
        os.write(o, f"{e}\n".encode()); rc = 127
    os.fsync(o); os.close(o)
    with open(f"{d}/{i}.rc.new", "w") as f: f.write(str(rc))
    os.rename(f"{d}/{i}.rc.new", f"{d}/{i}.rc")
seen = set(f[:-4] for f in os.listdir(d) if f.endswith(".job"))   # jobs of an earlier boot
while True:
    for f in os.listdir(d):
        if f.endswith(".job") and f[:-4] not in seen:
            seen.add(f[:-4]); threading.Thread(target=job, args=(f[:-4],), daemon=True).start()
    time.sleep(0.02)
E
chmod +x "$ROOT/init"
}

# ---- host side: one supervisor process holds the network (a socketpair) and the two machines ---
supervisor() { cat <<'E'
import ctypes, fcntl, os, signal, socket, subprocess, sys, time
E = os.environ; RUN, ROOT, KER, LAB = E["RUN"], E["ROOT"], E["KER"], E["LAB_DIR"]
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
for s in (a, b):
    for o in (socket.SO_SNDBUF, socket.SO_RCVBUF): s.setsockopt(socket.SOL_SOCKET, o, 4 << 20)
wire = {"client": a, "nas": b}; vm = {}
life = open(E["LAB_LIFELINE"], "a") if E["LAB_LIFELINE"] else None
def abandoned():          # the lock is free: every process that used the lab has ended
    try: fcntl.flock(life, fcntl.LOCK_EX | fcntl.LOCK_NB); return True
    except BlockingIOError: return False
def die_with_us(): ctypes.CDLL(None).prctl(1, signal.SIGKILL)      # PR_SET_PDEATHSIG
def boot(r):
    for f in ("ready",):
        try: os.unlink(f"{RUN}/io/{r}/{f}")
        except FileNotFoundError: pass
    fd = wire[r].fileno()
    vm[r] = subprocess.Popen([f"{KER}/usr/bin/linux.uml", f"mem={E['LAB_MEM']}", "root=/dev/root", "rootfstype=hostfs",
        f"rootflags={ROOT}/{r}", "rw", "quiet", "init=/init", f"role={r}", f"labrun={RUN}", f"labmods={KER}/usr/lib/uml/modules", f"labshare={E['LAB_SHARE']}",
        f"afpdelay={E['LAB_AFP_DELAY']}", f"labmounts={E['LAB_MOUNTS'].replace(' ', '+')}", f"ubd0={LAB}/{r}.img", f"umid=lab-{r}-{os.getpid()}", f"uml_dir={RUN}/uml",
        "con=null", "con0=null,fd:1", f"vec0:transport=fd,fd={fd},mac=02:00:00:00:00:0{1 if r == 'client' else 2},depth=128"],
        pass_fds=[fd], stdin=subprocess.DEVNULL, stdout=open(f"{RUN}/{r}.log", "ab"), stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=die_with_us)
    open(f"{RUN}/{r}.pid", "w").write(str(vm[r].pid))
def kill(r):
    if r in vm:
        try: os.killpg(vm[r].pid, signal.SIGKILL)       # a machine is a process group
        except ProcessLookupError: pass
        vm.pop(r).wait()
def bye(*_):
    for r in list(vm): kill(r)
    sys.exit(0)
# Under load a machine may lose its one-shot timer and then idle forever. An additional SIGALRM is harmless once init runs;
# before that it would kill the machine.
def nudge():
    for r in vm:
        if os.path.exists(f"{RUN}/io/{r}/ready"): vm[r].send_signal(signal.SIGALRM)
signal.signal(signal.SIGTERM, bye); signal.signal(signal.SIGINT, bye)
boot("nas"); boot("client"); nudged = 0
while True:
    if time.monotonic() - nudged > 5: nudged = time.monotonic(); nudge()
    for f in os.listdir(f"{RUN}/ctl"):
        what, r = f.split("-"); os.unlink(f"{RUN}/ctl/{f}")
        if what == "kill": kill(r)
        elif what == "boot": kill(r); boot(r)
    if "client" in vm and vm["client"].poll() is not None: bye()
    if life and abandoned(): bye()
    time.sleep(0.05)
E
}

alive() { [ -f "$RUN/pid" ] && kill -0 "$(cat "$RUN/pid")" 2>/dev/null; }

wait_ready() { # wait_ready ROLE
  local i; for i in $(seq 1200); do
    [ -f "$RUN/io/$1/ready" ] && return 0
    alive || { tail -30 "$RUN/$1.log" >&2; die "machine $1 died"; }
    sleep 0.05
  done; tail -30 "$RUN/$1.log" >&2; die "machine $1 did not come up"
}

up() {
  setup; alive && return 0
  local t0; t0=$(date +%s%N)
  rm -rf "$RUN"; mkdir -p "$RUN"/{io/nas,io/client,ctl,uml}
  local r; for r in nas client; do
    rm -f "$LAB_DIR/$r.img"; truncate -s 8G "$LAB_DIR/$r.img"   # sparse
    mke2fs -q -t ext4 -E lazy_itable_init=1,lazy_journal_init=1,nodiscard "$LAB_DIR/$r.img"
  done
  supervisor >"$RUN/supervisor.py"
  setsid python3 "$RUN/supervisor.py" </dev/null >"$RUN/supervisor.log" 2>&1 &
  echo $! >"$RUN/pid"
  wait_ready nas; wait_ready client
  say "up in $(( ($(date +%s%N) - t0) / 1000000 )) ms"
}

run_in() { # run_in ROLE CMD...: runs a command in a machine, prints its output while it runs, returns its exit status
  local r=$1 d="$RUN/io/$1" i pos=0 n; shift
  [ $# -gt 0 ] || die "run what?"
  alive || up
  i=$$-$(date +%s%N)
  python3 - "$PWD" "$LAB_TIMEOUT" "$LAB_ENV" "$@" >"$d/$i.new" <<'E'
import json, os, sys
print(json.dumps({"cwd": sys.argv[1], "timeout": float(sys.argv[2]), "argv": sys.argv[4:],
                  "env": {k: os.environ[k] for k in sys.argv[3].split() if k in os.environ}}))
E
  : >"$d/$i.out"; mv "$d/$i.new" "$d/$i.job"
  trap 'exit 130' INT
  while :; do
    n=0; [ -f "$d/$i.rc" ] && n=1
    tail -c +$((pos + 1)) "$d/$i.out" | tee "$d/$i.part"; pos=$((pos + $(stat -c %s "$d/$i.part")))
    [ $n = 1 ] && break
    alive || die "the machine went away"
    sleep 0.03
  done
  n=$(cat "$d/$i.rc"); rm -f "$d/$i".*; return "$n"
}

net() { # net ARGS...: sets the same netem options on both ends
  if [ "${1:-}" = clear ]; then set -- sh -c 'tc qdisc del dev vec0 root 2>/dev/null; true'
  else set -- tc qdisc replace dev vec0 root netem limit 20000 "$@"; fi
  run_in client "$@" && run_in nas "$@"
}

# sig SIGNAL ROLE: signals only the machine's first process, its kernel, which panics if its ptraced children stop too.
sig() { kill "-$1" "$(cat "$RUN/$2.pid")"; }

down() {
  local i p; alive || { rm -f "$RUN/pid" 2>/dev/null || true; return 0; }
  p=$(cat "$RUN/pid"); for i in nas client; do sig CONT $i 2>/dev/null || true; done
  kill "$p"; for i in $(seq 100); do kill -0 "$p" 2>/dev/null || break; sleep 0.05; done
  for i in nas client; do kill -KILL -- "-$(cat "$RUN/$i.pid")" 2>/dev/null || true; done
  rm -f "$RUN/pid"; say down
}

cmd=${1:-help}; [ $# -gt 0 ] && shift
case $cmd in
  check) check;;
  setup) setup;; programs) programs "$@";;
  up) up; run_in client sh -c "grep -E ' (/m/|/run/user)' /proc/mounts; ls -ld /m/afp 2>/dev/null; true";;
  run) run_in client "$@";;
  nas) run_in nas "$@";;
  net) net "$@";;
  cut) net loss 100%;;      # with netem the links stay up, so neither machine notices
  heal) net clear;;
  freeze) sig STOP "${1:-nas}";;
  thaw) sig CONT "${1:-nas}";;
  kill-nas) : >"$RUN/ctl/kill-nas"; sleep 0.3;;
  boot-nas) rm -f "$RUN/io/nas/ready"; : >"$RUN/ctl/boot-nas"; wait_ready nas;;
  status) alive && for r in nas client; do echo "$r pid $(cat "$RUN/$r.pid") ready after $(cat "$RUN/io/$r/ready" 2>/dev/null || echo -) s"; done || echo down;;
  log) cat "$RUN/${1:-client}.log";;
  fit) fit_registers "$1";;
  down) down;;
  clean) down; rm -rf "$ROOT" "$KER" "$RUN" "$LAB_DIR"/apt "$LAB_DIR"/programs "$LAB_DIR"/*.img "$LAB_DIR/.ready";;
  *) sed -n '2,/^set -eu/p' "${BASH_SOURCE[0]}" | sed '$d; s/^# \{0,1\}//';;
esac
