#!/usr/bin/env bash
# interface.sh FOLDER - installs Schemathesis, which tests an HTTP API against its OpenAPI description, into FOLDER and prints
# the path of the program. To use it: LONGHAUL_SCHEMATHESIS=PATH cargo test --workspace --test web interface:: -- --ignored
set -euo pipefail
program=${1:?usage: interface.sh FOLDER}/bin/schemathesis
[ -x "$program" ] || {
  python3 -m venv "$1"
  "$1/bin/pip" install --quiet --disable-pip-version-check schemathesis==4.32.5
} >&2
echo "$program"
