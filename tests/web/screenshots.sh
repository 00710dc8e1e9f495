#!/usr/bin/env bash
# Makes the pictures of the README and the documentation in docs/images, from the made-up data of `longhaul demo`.
# Needs Node and Chromium (install.sh). Usage: tests/web/screenshots.sh [PROGRAM]; without it, longhaul is built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
program=${1:-}
[ -n "$program" ] || { cargo build --locked --bin longhaul; program=target/debug/longhaul; }
exec {output}< <(exec "$program" demo)
demo=$!
trap 'kill "$demo"' EXIT
read -r line <&"$output"
node tests/web/screenshots.mjs "${line##* }" docs/images
