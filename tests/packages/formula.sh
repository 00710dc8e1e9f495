#!/usr/bin/env bash
# Fills in the Homebrew formula, and checks its syntax and its parts with Ruby. Homebrew itself is not needed.
#
#   tests/packages/formula.sh
#
# Exits with 77 if there is no Ruby here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
command -v ruby >/dev/null || { echo 'skipped: formula: needs Ruby to read launchd/packages/longhaul.rb'; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo 'the source archive of a tag' >"$work/source.tar.gz"
DIST=$work .ci/release formula example/longhaul "$work/source.tar.gz"
ruby -cw "$work/longhaul.rb"
mkdir -p "$work/source/launchd"
cp -R launchd/packages "$work/source/launchd/"
ruby -w tests/packages/formula.rb "$work/longhaul.rb" "$work/source"
