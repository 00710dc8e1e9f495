#!/usr/bin/env bash
# Builds the Debian package into dist/, and installs, starts, upgrades, removes and purges it in a fresh Debian: nothing may be left.
#
#   tests/packages/deb.sh      PROFILE=dist: with the optimization of releases, which takes minutes
#   PROGRAMS=target/release tests/packages/deb.sh      with programs that are built already
#
# Needs Debian or Ubuntu, root, /sys/fs/cgroup, and network for cargo-deb and for the fresh Debian, which are kept in the cache folder.
# Exits with 77 if one of them is missing here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
cache=${XDG_CACHE_HOME:-$HOME/.cache}/longhaul-packages
work=$(mktemp -d)
trap 'umount -R "$work/root" 2>/dev/null || true; rm -rf "$work"' EXIT
missing() { echo "skipped: packages: $1"; exit 77; }
fail() { echo "FAILED: $1" >&2; exit 1; }
say() { printf -- '--- %s\n' "$*"; }

[ "$(id -u)" = 0 ] || missing 'needs root'
[ -w /sys/fs/cgroup ] || missing 'needs control groups'
command -v dpkg-deb apt-get >/dev/null || missing 'needs dpkg and apt-get'
command -v cargo-deb >/dev/null || export PATH=$cache/bin:$PATH
command -v cargo-deb >/dev/null || CARGO_PROFILE_RELEASE_OPT_LEVEL=1 cargo install -q --locked --root "$cache" --no-default-features cargo-deb@3.6.2 ||
  missing 'cargo-deb cannot be built here'

# fresh_debian FOLDER: a minimal Debian with systemd
fresh_debian() {
  [ ! -e "$1/.ready" ] || return 0
  rm -rf "$1" "$cache/tool"
  mkdir -p "$cache/tool"
  (cd "$cache/tool" && apt-get -qq download debootstrap && dpkg-deb -x debootstrap_*.deb .) || return 1
  DEBOOTSTRAP_DIR=$cache/tool/usr/share/debootstrap "$cache/tool/usr/sbin/debootstrap" --variant=minbase \
    --include=systemd bookworm "$1" >"$cache/debootstrap.log" 2>&1 || return 1
  touch "$1/.ready"
}
fresh_debian "$cache/debian" || missing 'a fresh Debian cannot be downloaded here'

say 'build'
profile=${PROFILE:-release}
if [ -n "${PROGRAMS:-}" ]; then profile=$(basename "$PROGRAMS"); else cargo build --profile "$profile" --locked --features parquet,png; fi
.ci/release pages "target/$profile"
package() { cargo deb --no-build --locked --profile "$profile" --features parquet,png --deb-revision "$1" --output "$work/longhaul-$1.deb" >/dev/null; }
package 1
package 2
dpkg-deb --info "$work/longhaul-1.deb"
dpkg-deb --contents "$work/longhaul-1.deb" | grep -v /man1/longhaul-

cp -a "$cache/debian" "$work/root"
cp "$work"/*.deb "$work/root/root/"
# Folders that a desktop has before longhaul is installed, and that stay.
mkdir -p "$work/root/root/.config/systemd/user" "$work/root/root/.local/share" "$work/root/root/.local/state"
# Everything but what dpkg itself keeps, and what is mounted.
files() { (cd "$work/root" && find . -xdev -not -path './var/lib/dpkg*' -not -path './var/log/*' -not -path './root/*.deb' -not -path './run*' -not -path './tmp*' | sort); }
files >"$work/before"
cat >"$work/root/root/inside" <<'INSIDE'
set -euo pipefail
export HOME=/root XDG_RUNTIME_DIR=/run/user/0 DEBIAN_FRONTEND=noninteractive
fail() { echo "FAILED: $1" >&2; exit 1; }
wait_for() { for _ in $(seq 3000); do eval "$1" >/dev/null 2>&1 && return; sleep 0.1; done; fail "waited for: $1"; }
mount -t proc proc /proc
mount -t tmpfs none /run
mkdir -p /run/systemd/system $XDG_RUNTIME_DIR

dpkg -i /root/longhaul-1.deb
longhaul --version
man=$(ls /usr/share/man/man1/longhaul*.1.gz | wc -l)
[ "$man" -gt 20 ] || fail "$man manual pages"
systemd-analyze --user verify /usr/lib/systemd/user/longhaul.service || fail 'the unit is invalid'
longhaul --database /tmp/try.sqlite try | tail -4

mkdir -p /root/.config/longhaul /root/measured
printf 'scale = "quick"\n[targets.local]\npath = "/root/measured"\nrole = "baseline"\n' >/root/.config/longhaul/config.toml
/usr/lib/systemd/systemd --user >/dev/null 2>&1 &
manager=$!
wait_for 'systemctl --user is-system-running | grep -E "running|degraded"'
systemctl --user enable --now longhaul
wait_for 'longhaul status | grep -q "measuring"'
longhaul status
first=$(systemctl --user show longhaul --property=MainPID --value)

dpkg -i /root/longhaul-2.deb
# The service notices that its program was replaced, ends after its round, and systemd starts the new one half a minute later.
wait_for "systemctl --user is-active longhaul && [ \$(systemctl --user show longhaul --property=MainPID --value) != $first ]"
wait_for 'longhaul status'   # it answers; a round need not be due
echo "upgraded: process $first became $(systemctl --user show longhaul --property=MainPID --value)"

systemctl --user disable --now longhaul
longhaul targets clean local --yes
longhaul service uninstall --purge --yes
dpkg --remove longhaul
[ ! -e /usr/bin/longhaul ] || fail 'the programs are left'
dpkg --purge longhaul
kill $manager
wait $manager || true
rm -rf /root/measured /root/inside
INSIDE
mkdir -p dist
cp "$work/longhaul-1.deb" dist/
say 'install, start, upgrade, remove'
mount --bind "$work/root" "$work/root"
group=/sys/fs/cgroup/longhaul-package-$$
mkdir "$group"
(
  echo "$BASHPID" >"$group/cgroup.procs"
  exec unshare --mount --pid --fork bash -c '
    mount --rbind /dev "$1/dev" && mkdir -p "$1/sys" && mount --rbind /sys "$1/sys" && exec chroot "$1" bash /root/inside' - "$work/root"
) || { find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true; fail 'inside the fresh Debian'; }
find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
umount "$work/root"
files >"$work/after"
diff "$work/before" "$work/after" || fail 'files are left, or missing'
echo 'the package left nothing'
