#!/bin/sh
# Runs test programs and sums up what they say.
#
#   tests/run.sh PROGRAM…
#
# A program is a cmocka test, or anything whose last line is "N passed, N failed". It
# fails as a whole when it crashes, exits with an error, runs longer than TEST_TIMEOUT
# seconds or runs no test; tests it announced and did not reach have failed. The output
# of what failed is printed. The last line is "N passed, N failed", the exit status 0
# only if nothing failed and something passed.
#
#   JOBS=N           programs that run at a time (default 2)
#   TEST_TIMEOUT=N   seconds for one program (default 300)
set -u

if [ "${1:-}" = --one ]; then
    results=$2
    program=$3
    name=$(echo "$program" | tr / _)
    started=$(date +%s)
    timeout -k 10 "${TEST_TIMEOUT:-300}" "$program" >"$results/$name.out" 2>&1 </dev/null
    status=$?
    echo "$status $(($(date +%s) - started)) $program" >"$results/$name.status"
    exit 0
fi

root=$(cd "$(dirname "$0")/.." && pwd)
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:handle_segv=2:handle_sigbus=2:handle_sigfpe=2:detect_stack_use_after_return=1}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"
# libzmq is not instrumented. Without ignore_noninstrumented_modules its every copy is taken
# for a race, looked up and suppressed: a transfer of 50 MB takes minutes instead of a second.
export TSAN_OPTIONS="${TSAN_OPTIONS:-suppressions=$root/tests/tsan.supp:ignore_noninstrumented_modules=1:second_deadlock_stack=1}"

results=$(mktemp -d "${TMPDIR:-/tmp}/hawser-tests.XXXXXX") || exit 1
trap 'rm -rf "$results"' EXIT
trap 'exit 130' INT TERM

[ $# -eq 0 ] || printf '%s\0' "$@" | xargs -0 -n 1 -P "${JOBS:-2}" "$0" --one "$results"

count() { # PATTERN FILE: lines that match
    grep -c -a -E "$1" "$2" || true
}

passed=0
failed=0
for program in "$@"; do
    out=$results/$(echo "$program" | tr / _).out
    status=255 seconds=0
    read -r status seconds _ <"${out%.out}.status"

    summary=$(tail -n 1 "$out" | grep -a -E '^[0-9]+ passed, [0-9]+ failed$' || true)
    skipped=0
    if [ -n "$summary" ]; then
        ok=${summary%% *}
        bad=${summary#*, }
        bad=${bad%% *}
    else
        announced=$(sed -n -E 's|^\[==========\] Running ([0-9]+) test.*|\1|p' "$out" | awk '{n += $1} END {print n + 0}')
        ok=$(count '^\[       OK \]' "$out")
        # Each is told when it is skipped and again in a list, under a line with their number.
        skipped=$(sed -n -E 's|^\[  SKIPPED \] ([0-9]+) test.*|\1|p' "$out" | awk '{n += $1} END {print n + 0}')
        bad=$((${announced:-0} - ok - skipped))
    fi

    why=""
    if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
        why=" (timeout after ${TEST_TIMEOUT:-300} s)"
    elif [ "$status" -gt 128 ]; then
        why=" (signal $((status - 128)))"
    elif [ "$status" -ne 0 ]; then
        why=" (exit $status)"
    elif [ $((ok + bad + skipped)) -eq 0 ]; then
        why=" (no test in it)"
    fi
    [ -z "$why" ] || [ "$bad" -gt 0 ] || bad=1

    if [ "$bad" -gt 0 ]; then
        echo "---- $program: $ok passed, $bad FAILED$why, ${seconds} s; its output:"
        cat "$out"
        echo "----"
    elif [ "$skipped" -gt 0 ]; then
        echo "$program: $ok passed, $skipped SKIPPED, ${seconds} s"
    else
        echo "$program: $ok passed, ${seconds} s"
    fi
    passed=$((passed + ok))
    failed=$((failed + bad))
done

[ $((passed + failed)) -gt 0 ] || failed=1
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
