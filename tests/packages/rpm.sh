#!/usr/bin/env bash
# Builds the RPM package into dist/, reads it back, and installs, upgrades and removes it in an empty folder: nothing may be left.
#
#   tests/packages/rpm.sh    PROFILE=dist: with the optimization of releases; PROGRAMS=FOLDER: with the programs in it, without a build
#
# Needs rpm, root, and network for cargo-generate-rpm, which is kept in the cache folder. Exits with 77 if one of them is missing here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
cache=${XDG_CACHE_HOME:-$HOME/.cache}/longhaul-packages
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
missing() { echo "skipped: rpm: $1"; exit 77; }
fail() { echo "FAILED: $1" >&2; exit 1; }
say() { printf -- '--- %s\n' "$*"; }

[ "$(id -u)" = 0 ] || missing 'needs root'
command -v rpm >/dev/null || missing 'needs rpm'
command -v cargo-generate-rpm >/dev/null || export PATH=$cache/bin:$PATH
command -v cargo-generate-rpm >/dev/null || CARGO_PROFILE_RELEASE_OPT_LEVEL=1 cargo install -q --locked --root "$cache" cargo-generate-rpm@0.16.1 ||
  missing 'cargo-generate-rpm cannot be built here'

say 'build'
profile=${PROFILE:-release}
# cargo-generate-rpm takes the programs from here, wherever CARGO_TARGET_DIR points to.
unset CARGO_TARGET_DIR
if [ -n "${PROGRAMS:-}" ]; then
  mkdir -p "target/$profile"
  for program in longhaul longhauld; do
    [ "$PROGRAMS/$program" -ef "target/$profile/$program" ] || cp "$PROGRAMS/$program" "target/$profile/"
  done
else
  cargo build --profile "$profile" --locked --features parquet,png
fi
.ci/release pages "target/$profile"
seconds=$(git log -1 --format=%ct)
package() { cargo generate-rpm --profile "$profile" --source-date "$seconds" --set-metadata "release = \"$1\"" --output "$work/$2" "${@:3}"; }
package 1 longhaul-1.rpm
package 1 again.rpm
package 2 longhaul-2.rpm --payload-compress none
cmp "$work/longhaul-1.rpm" "$work/again.rpm" || fail 'two packages of the same programs differ'

say 'read back'
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
query() { rpm --query --package "$@" "$work/longhaul-1.rpm"; }
query --info
query --requires
[ "$(query --queryformat '%{NAME} %{VERSION} %{RELEASE} %{ARCH} %{LICENSE}')" = "longhaul $version 1 $(uname -m) MIT OR Apache-2.0" ] || fail 'name, version or licence'
[ -z "$(query --scripts)" ] || fail 'it has scripts'
[ -z "$(query --conflicts; query --obsoletes; query --configfiles)" ] || fail 'it conflicts with, replaces or configures something'
query --requires | grep -q '^libc.so.6(GLIBC_' || fail 'it does not require the C library'
query --queryformat '[%{FILEMODES:octal} %{FILEUSERNAME}:%{FILEGROUPNAME} %{FILENAMES}\n]' >"$work/list"
grep -v '/man1/longhaul-' "$work/list"
cat >"$work/expected" <<'EXPECTED'
40755 root:root /usr/share/doc/longhaul
40755 root:root /usr/share/licenses/longhaul
100755 root:root /usr/bin/longhaul
100755 root:root /usr/bin/longhauld
100644 root:root /usr/lib/systemd/user/longhaul.service
100644 root:root /usr/share/bash-completion/completions/longhaul
100644 root:root /usr/share/doc/longhaul/CHANGELOG.md
100644 root:root /usr/share/doc/longhaul/README.md
100644 root:root /usr/share/fish/vendor_completions.d/longhaul.fish
100644 root:root /usr/share/licenses/longhaul/LICENSE-APACHE
100644 root:root /usr/share/licenses/longhaul/LICENSE-MIT
100644 root:root /usr/share/zsh/site-functions/_longhaul
EXPECTED
(cd target/packages/man && printf '100644 root:root /usr/share/man/man1/%s\n' *.1) >>"$work/expected"
diff <(sort "$work/expected") <(sort "$work/list") || fail 'files, modes or owners'

say 'install, upgrade, remove'
# The package needs a system with its C library; this folder has only the files of the package.
database=(--root "$work/root" --define '_dbpath /var/lib/rpm')
inside() { rpm "${database[@]}" --nodeps "$@"; }
files() { (cd "$work/root" && find . -not -path './var/lib/rpm*' | sort); }
mkdir "$work/root"
rpm "${database[@]}" --initdb
files >"$work/before"
inside --upgrade "$work/longhaul-1.rpm"
inside --verify longhaul || fail 'an installed file differs'
"$work/root/usr/bin/longhaul" --version
for name in longhaul longhauld; do cmp "target/$profile/$name" "$work/root/usr/bin/$name" || fail "$name differs"; done
inside --upgrade "$work/longhaul-2.rpm"
[ "$(rpm "${database[@]}" --query --queryformat '%{RELEASE}' longhaul)" = 2 ] || fail 'the upgrade'
inside --verify longhaul || fail 'an upgraded file differs'
inside --erase longhaul
files >"$work/after"
diff "$work/before" "$work/after" >"$work/left" || true
# Folders of the system, which exist before the package is installed on a real one, are no part of it.
! (cd "$work/root" && find . -not -type d -not -path './var/lib/rpm*' | grep .) || fail 'files are left'
! grep -E '^> .*longhaul' "$work/left" || fail 'folders are left'
mkdir -p dist
cp "$work/longhaul-1.rpm" "dist/longhaul-$version-1.$(uname -m).rpm"
echo 'the package left nothing'
