#!/usr/bin/env bash
# Builds a real OpenTelemetry Collector and a real Prometheus from the Go module registry, for tests/e2e/collector.rs.
#
#   tests/collector/build.sh FOLDER      builds FOLDER/otelcol, FOLDER/prometheus and FOLDER/promtool; needs Go and the network
#
# Existing programs are not built again. Caches stay in FOLDER; $GOCACHE may name one that several scripts share. The versions are
# pinned because some registries lack modules of newer collectors. Not optimized, which takes a quarter less time to build.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(mkdir -p "${1:?usage: $0 FOLDER}" && cd "$1" && pwd)
command -v go >/dev/null || { echo "Go is missing" >&2; exit 3; }
export GOPATH=$folder/gopath GOCACHE=${GOCACHE:-$folder/gocache} GOFLAGS='-mod=mod -buildvcs=false -modcacherw'
core=v0.155.0 providers=v1.61.0 prometheus=v0.315.0

collector() {
  mkdir -p "$folder/collector" && cp "$source/main.go" "$folder/collector/" && cd "$folder/collector"
  [ -f go.mod ] || go mod init longhaul.example/collector
  go get go.opentelemetry.io/collector/{receiver/otlpreceiver,processor/batchprocessor,exporter/debugexporter,otelcol}@$core \
    github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter@$core \
    go.opentelemetry.io/collector/confmap/provider/{fileprovider,envprovider}@$providers
  go build -trimpath -gcflags='all=-N -l' -ldflags='-s -w' -o ../otelcol .
}

prometheus() {
  mkdir -p "$folder/metrics" && cd "$folder/metrics"
  [ -f go.mod ] || go mod init longhaul.example/metrics
  go get "github.com/prometheus/prometheus/cmd/prometheus@$prometheus" "github.com/prometheus/prometheus/cmd/promtool@$prometheus"
  go build -tags netgo,remove_all_sd -trimpath -gcflags='all=-N -l' -ldflags='-s -w' -o .. \
    github.com/prometheus/prometheus/cmd/prometheus github.com/prometheus/prometheus/cmd/promtool
}

[ -x "$folder/otelcol" ] || (collector)
{ [ -x "$folder/prometheus" ] && [ -x "$folder/promtool" ]; } || (prometheus)
echo "$folder"
