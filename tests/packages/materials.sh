#!/usr/bin/env bash
# Makes the bill of materials (CycloneDX) and checks that it names each crate that cargo compiles for the packages.
#
#   tests/packages/materials.sh
#
# Needs jq, and network for cargo-cyclonedx, which is kept in the cache folder. Exits with 77 if one of them is missing here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
cache=${XDG_CACHE_HOME:-$HOME/.cache}/longhaul-packages
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
missing() { echo "skipped: materials: $1"; exit 77; }
fail() { echo "FAILED: $1" >&2; exit 1; }

command -v jq >/dev/null || missing 'needs jq'
command -v cargo-cyclonedx >/dev/null || export PATH=$cache/bin:$PATH
command -v cargo-cyclonedx >/dev/null || CARGO_PROFILE_RELEASE_OPT_LEVEL=1 cargo install -q --locked --root "$cache" cargo-cyclonedx@0.5.9 ||
  missing 'cargo-cyclonedx cannot be built here'

DIST=$work/1 .ci/release materials
DIST=$work/2 .ci/release materials
bill=$work/1/longhaul.cdx.json
[ "$(jq -r '.bomFormat + " " + .specVersion' "$bill")" = 'CycloneDX 1.5' ] || fail 'it is not CycloneDX 1.5'
# Two bills differ in their serial number alone.
same() { jq -S 'del(.serialNumber)' "$work/$1/longhaul.cdx.json"; }
diff <(same 1) <(same 2) >/dev/null || fail 'two bills of one commit differ'
! grep -F "$PWD" "$bill" || fail 'it names a folder of this machine'

jq -r '.metadata.component, .components[] | "\(.name) \(.version)"' "$bill" | sort -u >"$work/named"
jq -r '.components[] | select(.licenses == null) | .name' "$bill" >"$work/without-licence"
# Every system, because one bill is for all of them.
cargo tree --locked --edges normal,build --features parquet,png --target all --prefix none --format '{p}' |
  sed 's/ v/ /' | cut -d' ' -f1,2 | sort -u >"$work/shipped"
[ "$(wc -l <"$work/shipped")" -gt 100 ] || fail 'cargo tree names too few crates'
comm -23 "$work/shipped" "$work/named" >"$work/missing"
[ ! -s "$work/missing" ] || fail "it lacks: $(tr '\n' ',' <"$work/missing")"
[ ! -s "$work/without-licence" ] || fail "no licence of: $(tr '\n' ',' <"$work/without-licence")"
git diff --quiet -- Cargo.lock || fail 'Cargo.lock was changed'
echo "the bill names $(wc -l <"$work/named") crates with their licences, among them all $(wc -l <"$work/shipped") that are compiled"
