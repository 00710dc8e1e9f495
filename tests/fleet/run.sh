#!/usr/bin/env bash
# Asks DuckDB, ClickHouse, Spark and Sail the weekly questions of a simulated fleet, and compares their answers with those of
# longhaul; then exports to a real S3 server that fails. Usage: tests/fleet/run.sh [MACHINES] [ENGINE...]
# Default: 20 machines, all engines. Ends with 77 if nothing can be installed. RELEASING.md says when to run it with 500.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
machines=${1:-20}
[ $# -eq 0 ] || shift
folder=${XDG_CACHE_HOME:-$HOME/.cache}/longhaul-fleet
python=$folder/bin/python
wanted=("$@")
[ ${#wanted[@]} -gt 0 ] || wanted=(duckdb chdb spark sail)

# installed ENGINE: installs the packages of an engine, and checks that it answers
installed() {
  local packages check
  case $1 in
    duckdb) packages='duckdb==2.0.0' check='import duckdb; duckdb.sql("SELECT 1").fetchall()' ;;
    chdb) packages='chdb==4.4.0' check='import chdb; chdb.query("SELECT 1")' ;;
    spark) packages='pyspark==4.3.0' check='import pyspark, shutil, sys; sys.exit(shutil.which("java") is None)' ;;
    sail)
      packages='pysail==0.7.2 pyspark[connect]==4.3.0'
      check='from pysail.spark import SparkConnectServer as S; from pyspark.sql import SparkSession as P
s = S(); s.start(background=True); P.builder.remote(f"sc://127.0.0.1:{s.listening_address[1]}").getOrCreate().sql("SELECT 1").collect()'
      ;;
    moto) packages='moto[server]==5.2.5' check='import moto.server' ;;
    *) return 1 ;;
  esac
  # shellcheck disable=SC2086  # several packages
  { [ -x "$python" ] || python3 -m venv "$folder"; } && "$folder/bin/pip" install -q $packages &&
    timeout 120 "$python" -c "$check"
} >"$log" 2>&1

log=$(mktemp)
data=$(mktemp -d)
trap 'rm -rf "$log" "$data"' EXIT
engines=()
for engine in "${wanted[@]}"; do
  if installed "$engine"; then engines+=("$engine"); else
    echo "skipped: fleet: $engine cannot be installed or does not start here: $(tail -1 "$log")"
  fi
done
failed=0
profile=debug build=()
# A large fleet takes longer to simulate than the program takes to build.
[ "$machines" -le 50 ] || profile=release build=(--release)
if [ ${#engines[@]} -gt 0 ]; then
  # --workspace selects the features of the tests, so that nothing is built twice.
  cargo build --quiet --locked "${build[@]}" --workspace --example simulated_fleet &&
    "${CARGO_TARGET_DIR:-target}/$profile/examples/simulated_fleet" --machines "$machines" --to "$data" &&
    "$python" tests/fleet/compare.py "$data" "${engines[@]}" || failed=1
fi
if installed moto; then
  port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  LONGHAUL_MOTO=$folder/bin/moto_server AWS_ENDPOINT_URL=http://127.0.0.1:$port AWS_ALLOW_HTTP=true AWS_REGION=us-east-1 \
    cargo test --locked --workspace --test fleet bucket:: -- --ignored || failed=1
else
  echo "skipped: fleet: moto cannot be installed here, so exports to a bucket are not tested: $(tail -1 "$log")"
  [ ${#engines[@]} -gt 0 ] || exit 77
fi
exit $failed
