#!/bin/sh
# Installs the Debian packages that building, testing and the demo need, as far as
# they are missing; says what it installs and does nothing when all is there.
#
#   install-deps.sh            what `make` and `make check` need
#   install-deps.sh --dev      also what the sanitizer, fuzz, soak and format targets need
#   install-deps.sh --bench    what `make bench` measures beside Hawser
set -eu

packages="gcc make pkg-config libzmq3-dev libczmq-dev libcjson-dev libsodium-dev libcmocka-dev iproute2 faketime"
if [ "${1:-}" = "--dev" ]; then
    packages="$packages clang libclang-rt-14-dev clang-format-16 valgrind"
elif [ "${1:-}" = "--bench" ]; then
    packages="$packages nats-server mosquitto libmosquitto-dev redis-server libhiredis-dev"
fi

missing=""
for package in $packages; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "install-deps: no apt-get here; please install:$missing" >&2
    exit 1
fi
echo "install-deps: installing$missing" >&2
as_root=""
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
        echo "install-deps: not root and no sudo; please install:$missing" >&2
        exit 1
    }
    as_root=sudo
fi
$as_root apt-get update -qq
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    $missing >/dev/null
