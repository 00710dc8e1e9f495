#!/usr/bin/env bash
# Checks every file in results/ and builds page/index.html from those that pass.
# Usage: ./check.sh; LONGHAUL names the program if it is not in the PATH. Exits with 1 if a file is refused.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
longhaul=${LONGHAUL:-longhaul}

shopt -s nullglob
files=(results/*.json)
if [ ${#files[@]} = 0 ]; then
  echo 'results/ has no file yet: `longhaul export share results/NAME.json` writes one' >&2
  exit 1
fi
failed=0
"$longhaul" merge check "${files[@]}" || failed=1
mkdir -p page
"$longhaul" merge "${files[@]}" --format html --output page/index.html || failed=1
"$longhaul" merge "${files[@]}" --format json --output page/results.json || failed=1
exit $failed
