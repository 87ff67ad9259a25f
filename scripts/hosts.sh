#!/bin/sh
# Sees to it that the tests of two hosts can make network namespaces: they need root and iproute2.
set -eu
[ "${GRADIRON_TEST_NO_HOSTS:-}" = 1 ] && exit 0
[ "$(uname)" = Linux ] && [ "$(id -u)" = 0 ] || {
    echo "The tests of two hosts need root on Linux. (GRADIRON_TEST_NO_HOSTS=1 leaves them out.)" >&2
    exit 1
}
command -v ip >/dev/null && exit 0
apt-get update -q </dev/null
DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends iproute2 </dev/null
