#!/bin/sh
# What takes long: the unit tests and the soak programs under valgrind's eye, and the
# process tests at their full sizes. The last line is "N passed, N failed".
#
#   tests/soak/run.sh UNIT_TEST… -- SOAK_TEST…
#
# HAWSER_BUILD says where the programs are (default build).
set -u

wrappers=$(mktemp -d "${TMPDIR:-/tmp}/hawser-soak.XXXXXX") || exit 1
trap 'rm -rf "$wrappers"' EXIT
trap 'exit 130' INT TERM

# A wrapper per unit test, so that the runner needs to know nothing of valgrind.
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    wrapper=$wrappers/valgrind_$(basename "$1")
    cat >"$wrapper" <<END
#!/bin/sh
exec valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,possible \\
    --track-fds=no --child-silent-after-fork=yes "$1"
END
    chmod +x "$wrapper"
    shift
done
[ $# -eq 0 ] || shift

SCALE=${SCALE:-20} TEST_TIMEOUT=${TEST_TIMEOUT:-1800} tests/run.sh "$wrappers"/* "$@"
