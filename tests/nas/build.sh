#!/usr/bin/env bash
# Gets a real node_exporter from the Go module registry, and a real SNMP agent and SSH server from Debian's packages, for
# tests/e2e/nas_servers.rs. Nothing is installed on this machine.
#
#   tests/nas/build.sh FOLDER      fills FOLDER/node_exporter and FOLDER/root; needs Go, and apt-get with package lists
#
# Existing programs are not fetched again. Exits with 1 if one of them is missing; the others are there nevertheless.
set -euo pipefail
folder=$(mkdir -p "${1:?usage: $0 FOLDER}" && cd "$1" && pwd)

exporter() {
  command -v go >/dev/null || return 1
  GOBIN=$folder GOPATH=$folder/gopath GOCACHE=${GOCACHE:-$folder/gocache} GOFLAGS='-buildvcs=false -modcacherw' \
    go install -trimpath -gcflags='all=-N -l' -ldflags='-s -w' github.com/prometheus/node_exporter@v1.9.1
}

# The packages with those of their libraries that not every machine has.
packages() {
  apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances snmpd \
    openssh-server | grep -E '^lib(snmp|sensors|wrap|pci|mysql|mariadb|perl)[0-9.a-z-]*$' | sort -u
}

servers() {
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
  apt-cache show snmpd >/dev/null 2>&1 || apt-get -qq update || return 1
  mkdir -p "$folder/debs" && cd "$folder/debs" || return 1
  # shellcheck disable=SC2046  # one word for each package
  apt-get -qq download snmpd openssh-server $(packages) || return 1
  local package
  for package in *.deb; do dpkg-deb -x "$package" "$folder/root" || return 1; done
  rm -rf "$folder/debs"
}

failed=0
[ -x "$folder/node_exporter" ] || (exporter) >&2 || failed=1
[ -x "$folder/root/usr/sbin/snmpd" ] || (servers) >&2 || failed=1
echo "$folder"
exit $failed
