#!/usr/bin/env bash
# Installs from an archive with the shell installer, then upgrades and removes: nothing is left, and a damaged archive changes nothing.
#
#   tests/packages/shell.sh FOLDER    FOLDER: with the two programs for this machine
set -euo pipefail
programs=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $1" >&2; exit 1; }
export DIST=$work/release HOME=$work/home LONGHAUL_DOWNLOADS=file://$work/release
unset XDG_CONFIG_HOME
mkdir "$HOME"
files() { (cd "$HOME" && find . ! -type d | sort); }

.ci/release pages "$programs"
.ci/release archive "$(uname -m)-unknown-linux-gnu" "$programs"
.ci/release shell example/longhaul
.ci/release sums
sh -n "$work/release/install.sh"

sh "$work/release/install.sh"
"$HOME/.local/bin/longhaul" --version
[ "$(stat -c %a "$HOME/.local/bin/longhauld")" = 755 ] || fail 'the mode of longhauld'
[ "$(files | grep -c '/man1/longhaul')" -gt 20 ] || fail 'the manual pages'
[ "$(files | grep -cE 'bash-completion|_longhaul|longhaul.fish')" = 3 ] || fail 'the completions'

# An upgrade replaces the programs: another file, not another content of the same one.
before=$(stat -c %i "$HOME/.local/bin/longhauld")
sh "$work/release/install.sh" >/dev/null
[ "$(stat -c %i "$HOME/.local/bin/longhauld")" != "$before" ] || fail 'the program was written in place'

printf x >>"$work"/release/longhaul-*.tar.gz
rm "$HOME/.local/bin/longhaul"
! sh "$work/release/install.sh" 2>"$work/error" || fail 'a damaged archive was installed'
grep -q 'is damaged' "$work/error" || fail "$(cat "$work/error")"
[ ! -e "$HOME/.local/bin/longhaul" ] || fail 'a damaged archive was installed'

# While the service is installed, the programs stay: launchd and systemd would go on starting them.
for definition in Library/LaunchAgents/org.longhaul.agent.plist .config/systemd/user/longhaul.service; do
  mkdir -p "$(dirname "$HOME/$definition")"
  touch "$HOME/$definition"
  ! sh "$work/release/install.sh" --remove 2>"$work/error" || fail "removed in spite of $definition"
  grep -q 'longhaul service uninstall' "$work/error" || fail "$(cat "$work/error")"
  [ -e "$HOME/.local/bin/longhauld" ] || fail "the program was removed in spite of $definition"
  rm "$HOME/$definition"
done

sh "$work/release/install.sh" --remove
[ -z "$(files)" ] || fail "files are left: $(files)"
echo 'the installer left nothing'
