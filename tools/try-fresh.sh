#!/bin/sh
# Tries the README's commands as a newcomer does: a fresh Debian root that has only a
# compiler, make and git, and a fresh clone of what is committed here. Needs root,
# debootstrap and the network (packages come from where this machine gets its own).
#
#   tools/try-fresh.sh [DIRECTORY [COMMAND]]   default /tmp/hawser-fresh, kept if it is there,
#                                              and "make demo && make check"
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
root=${1:-/tmp/hawser-fresh}
command=${2:-make demo && make check}

if [ ! -x "$root/usr/bin/git" ]; then
    mirror=$(sed -n -E 's/^(deb +(\[[^]]*\] +)?|URIs: *)([^ ]+).*/\3/p' \
        /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1)
    debootstrap --variant=minbase --include=gcc,libc6-dev,make,git,ca-certificates \
        bookworm "$root" "$mirror"
    for file in sources.list sources.list.d apt.conf apt.conf.d trusted.gpg trusted.gpg.d keyrings; do
        [ ! -e "/etc/apt/$file" ] || cp -rL "/etc/apt/$file" "$root/etc/apt/"
    done
fi
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
[ ! -e /etc/hosts ] || cp -L /etc/hosts "$root/etc/hosts"

# /proc and /dev are what a machine has; nothing else of this one is mounted.
mounted=""
cleanup() {
    for point in $mounted; do
        umount -l "$root/$point"
    done
}
trap cleanup EXIT
for point in proc dev; do
    mkdir -p "$root/$point"
    if [ $point = proc ]; then
        mount -t proc proc "$root/proc"
    else
        mount --bind /dev "$root/dev"
    fi
    mounted="$mounted $point"
done

rm -rf "$root/root/hawser" "$root/root/hawser.bundle"
git -C "$here" bundle create -q "$root/root/hawser.bundle" HEAD
chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    ${http_proxy:+http_proxy=$http_proxy} ${https_proxy:+https_proxy=$https_proxy} \
    sh -eu -c 'cd /root && git -c advice.detachedHead=false clone -q hawser.bundle hawser && cd hawser && eval "$1"' sh "$command"
