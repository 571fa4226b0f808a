#!/bin/sh
# Installs into a scratch directory and builds and runs a program against what is
# there, shared and static, found with pkg-config as a stranger would. The program has the
# sample of hawser.h in it, so that compiles as it is written.
set -eu
cd "$(dirname "$0")/.."

scratch=$(mktemp -d "${TMPDIR:-/tmp}/hawser-install.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
make --no-print-directory install PREFIX="$scratch/prefix" >"$scratch/log" 2>&1 || {
    cat "$scratch/log"
    exit 1
}

header=$scratch/prefix/include/hawser/hawser.h
{
    printf '#include <hawser.h>\n#include <stdio.h>\n\n'
    printf 'int read_results (void);\nint send_result (void);\n\n'
    sed -n '1,/\*\//s/^ \*      //p' "$header"
    cat <<'END'

int main (int argc, char **argv)
{
    (void) argv;
    hws_client_t *client = NULL;
    const int rc = hws_client_new (&client, NULL);
    hws_client_destroy (&client);
    printf ("%s %s\n", hws_version (), hws_strerror (rc));
    if (argc > 1) {
        return read_results () + send_result (); /* they need a broker; here they only link */
    }
    return rc == 0 && hws_error_from_word ("not_found", 9) == HWS_ENOT_FOUND ? 0 : 1;
}
END
} >"$scratch/program.c"
grep -q hws_receiver_open "$scratch/program.c" && grep -q hws_sender_attach "$scratch/program.c"

export PKG_CONFIG_PATH="$scratch/prefix/lib/pkgconfig"
# shellcheck disable=SC2046
cc -std=c11 -Wall -Wextra -Werror -o "$scratch/shared" "$scratch/program.c" $(pkg-config --cflags --libs hawser)
LD_LIBRARY_PATH=$scratch/prefix/lib "$scratch/shared"
# Statically: our library only, so of what it needs --static says too much.
needed=$(pkg-config --print-requires-private hawser)
# shellcheck disable=SC2046,SC2086
cc -std=c11 -Wall -Wextra -Werror -o "$scratch/static" "$scratch/program.c" $(pkg-config --cflags hawser) \
    "$scratch/prefix/lib/libhawser.a" $(pkg-config --libs $needed) -lpthread
rm "$scratch/prefix/lib/libhawser.so" "$scratch/prefix/lib/libhawser.so.0"
"$scratch/static"

version=$(pkg-config --modversion hawser)
for program in hawser-broker hawser-send hawser-recv hawser-ctl; do
    "$scratch/prefix/bin/$program" --version | grep -q -F "$version"
done
echo "try-install: version $version installs, links shared and static, and runs"
