#!/usr/bin/env bash
# Installs playwright-core and axe-core, which tests/web/suite.mjs needs, into its folder, and Chromium from the system's packages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
npm ci --no-audit --no-fund
command -v chromium >/dev/null || {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || { echo "Chromium is missing: install it" >&2; exit 1; }
  apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium fonts-dejavu
}
