#!/bin/sh
# Installs longhaul @VERSION@ below ~/.local, or removes it again. It needs no administrator, and changes nothing else.
#
#   sh install.sh             LONGHAUL_PREFIX=/opt/longhaul: another folder than ~/.local
#   sh install.sh --remove    removes what it installed; `longhaul service uninstall --purge` before that removes the data
set -eu
prefix=${LONGHAUL_PREFIX:-$HOME/.local}
# Tests fetch from a folder.
from=${LONGHAUL_DOWNLOADS:-https://github.com/@REPOSITORY@/releases/download/v@VERSION@}
fail() { echo "longhaul was not installed: $1" >&2; exit 1; }

# target: prints the target triple of the archive for this machine
target() {
  case "$(uname -s) $(uname -m)" in
    "Darwin "*) echo universal-apple-darwin ;;
    "Linux x86_64" | "Linux aarch64")
      if ldd --version 2>&1 | grep -qi musl; then libc=musl; else libc=gnu; fi
      echo "$(uname -m)-unknown-linux-$libc" ;;
    *) fail "there are no programs for $(uname -s) on $(uname -m). Build them: cargo install --git https://github.com/@REPOSITORY@" ;;
  esac
}

# fetch FILE: downloads a file of the release into the working folder
fetch() {
  if command -v curl >/dev/null; then curl -fsSL "$from/$1" -o "$work/$1"; else wget -qO "$work/$1" "$from/$1"; fi ||
    fail "download $from/$1: check the connection and try again"
}

# check FILE: compares a file with the sums of the release
check() {
  grep " \*\{0,1\}$1\$" "$work/SHA256SUMS" >"$work/sum" || fail "SHA256SUMS of the release has no line for $1"
  if command -v sha256sum >/dev/null; then sums=sha256sum; else sums='shasum -a 256'; fi
  (cd "$work" && $sums -c sum >/dev/null 2>&1) || fail "$1 is damaged: its sum is not that of the release. Try again"
}

# put FROM TO MODE: writes a file in one step, so that a running service meets the old or the new program
put() {
  mkdir -p "$(dirname "$2")"
  { cp "$1" "$2.new" && chmod "$3" "$2.new" && mv "$2.new" "$2"; } || fail "write $2: check that you may write there"
}

# refuse_if_installed: launchd and systemd would go on starting a program that is gone
refuse_if_installed() {
  for file in "$HOME/Library/LaunchAgents/org.longhaul.agent.plist" "${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user/longhaul.service"; do
    [ -e "$file" ] || continue
    echo "longhaul was not removed: the service is still installed: run \`longhaul service uninstall\` first" >&2
    exit 1
  done
}

remove() {
  refuse_if_installed
  rm -f "$prefix/bin/longhaul" "$prefix/bin/longhauld" "$prefix/share/bash-completion/completions/longhaul" \
    "$prefix/share/zsh/site-functions/_longhaul" "$prefix/share/fish/vendor_completions.d/longhaul.fish" \
    "$prefix"/share/man/man1/longhaul.1 "$prefix"/share/man/man1/longhaul-*.1 "$prefix"/share/man/man1/longhauld.1
  echo "longhaul is removed from $prefix"
}

install_programs() {
  name=longhaul-@VERSION@-$(target)
  fetch SHA256SUMS
  fetch "$name.tar.gz"
  check "$name.tar.gz"
  tar -xzf "$work/$name.tar.gz" -C "$work" || fail "unpack $name.tar.gz"
  files=$work/$name
  "$files/longhaul" --version >/dev/null || fail "the program does not start on this machine"
  for page in "$files"/man/*.1; do put "$page" "$prefix/share/man/man1/$(basename "$page")" 644; done
  put "$files/completions/longhaul.bash" "$prefix/share/bash-completion/completions/longhaul" 644
  put "$files/completions/longhaul.zsh" "$prefix/share/zsh/site-functions/_longhaul" 644
  put "$files/completions/longhaul.fish" "$prefix/share/fish/vendor_completions.d/longhaul.fish" 644
  put "$files/longhauld" "$prefix/bin/longhauld" 755
  put "$files/longhaul" "$prefix/bin/longhaul" 755
  echo "longhaul @VERSION@ is in $prefix/bin"
  case ":$PATH:" in *":$prefix/bin:"*) ;; *) echo "Add that folder to your PATH, or call it as $prefix/bin/longhaul" ;; esac
  echo "Next: \`longhaul try --target nas=FOLDER\` measures a share and the local disk for some minutes, and leaves nothing there"
}

case ${1:-} in
  '')
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    install_programs ;;
  --remove) remove ;;
  *) sed -n '4,5p' "$0" >&2; exit 2 ;;
esac
