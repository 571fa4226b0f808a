#!/bin/sh
# Installs into a scratch directory and builds and runs a program against what is
# there, shared and static, found with pkg-config as a stranger would.
set -eu
cd "$(dirname "$0")/.."

scratch=$(mktemp -d "${TMPDIR:-/tmp}/hawser-install.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
make --no-print-directory install PREFIX="$scratch/prefix" >"$scratch/log" 2>&1 || {
    cat "$scratch/log"
    exit 1
}

cat >"$scratch/program.c" <<'END'
#include <hawser/hawser.h>
#include <stdio.h>

int main (void)
{
    hws_client_t *client = NULL;
    const int rc = hws_client_new (&client, NULL);
    hws_client_destroy (&client);
    printf ("%s %s\n", hws_version (), hws_strerror (rc));
    return rc == 0 ? 0 : 1;
}
END

export PKG_CONFIG_PATH="$scratch/prefix/lib/pkgconfig"
# shellcheck disable=SC2046
cc -o "$scratch/shared" "$scratch/program.c" $(pkg-config --cflags --libs hawser)
LD_LIBRARY_PATH=$scratch/prefix/lib "$scratch/shared"
# Statically: our library only, so of what it needs --static says too much.
needed=$(pkg-config --print-requires-private hawser)
# shellcheck disable=SC2046,SC2086
cc -o "$scratch/static" "$scratch/program.c" $(pkg-config --cflags hawser) \
    "$scratch/prefix/lib/libhawser.a" $(pkg-config --libs $needed) -lpthread
rm "$scratch/prefix/lib/libhawser.so" "$scratch/prefix/lib/libhawser.so.0"
"$scratch/static"

version=$(pkg-config --modversion hawser)
for program in hawser-broker hawser-send hawser-recv; do
    "$scratch/prefix/bin/$program" --version | grep -q -F "$version"
done
echo "try-install: version $version installs, links shared and static, and runs"
