#!/usr/bin/env bash
# Builds a real ntfy server and Mailpit, a mail server that keeps what it gets, from the Go module registry, for
# tests/e2e/notify.rs.
#
#   tests/notify/build.sh FOLDER      builds FOLDER/ntfy and FOLDER/mailpit; needs Go, a C compiler and the network
#
# Existing programs are not built again. Caches stay in FOLDER; $GOCACHE may name another one. The versions are pinned. Where the
# registry lacks ntfy, NTFY_SOURCE may name a checkout of it. Exits with 1 if one of the two cannot be built; the other one is built
# nevertheless.
set -euo pipefail
folder=$(mkdir -p "${1:?usage: $0 FOLDER}" && cd "$1" && pwd)
command -v go >/dev/null || { echo "Go is missing" >&2; exit 3; }
export GOPATH=$folder/gopath GOCACHE=${GOCACHE:-$folder/gocache} GOFLAGS='-buildvcs=false -modcacherw'
ntfy=v2.14.0 mailpit=v1.27.11

# The module lacks the web pages that the server embeds; its own Makefile puts empty files in their place for tests, too.
ntfy() {
  cd "$folder"
  if [ -z "${NTFY_SOURCE:-}" ]; then
    go mod download "heckel.io/ntfy/v2@$ntfy" || return 1
    NTFY_SOURCE=$GOPATH/pkg/mod/heckel.io/ntfy/v2@$ntfy
  fi
  rm -rf ntfy-source && cp -r "$NTFY_SOURCE" ntfy-source && cd ntfy-source || return 1
  mkdir -p server/docs server/site
  touch server/docs/index.html server/site/app.html
  go build -tags sqlite_omit_load_extension,osusergo,netgo -trimpath -gcflags='all=-N -l' -ldflags='-s -w' -o ../ntfy .
}

mailpit() { GOBIN=$folder go install -trimpath -gcflags='all=-N -l' -ldflags='-s -w' "github.com/axllent/mailpit@$mailpit"; }

failed=0
[ -x "$folder/mailpit" ] || (mailpit) || failed=1
[ -x "$folder/ntfy" ] || (ntfy) || failed=1
echo "$folder"
exit $failed
