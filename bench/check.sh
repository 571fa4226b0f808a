#!/bin/sh
# Shows that the bench works: a fifth of a second of Hawser and of a libzmq connection, of which
# every record has to arrive, once, in order and whole. Says nothing of how fast.
#
#   HAWSER_BUILD=build bench/check.sh
#
# The last line is "N passed, N failed", counting peers.
set -u
build=${HAWSER_BUILD:-build}
output=$build/bench/check
passed=0
failed=0

mkdir -p "$output"
rm -f "$output/results.json"
"$build/bench/bench" --programs "$build" --output "$output" --workloads w1 \
    --peers hawser,push_pull --rounds 1 --seconds 0.2
status=$?
for peer in hawser push_pull; do
    if [ $status -eq 0 ] && grep -q "\"$peer\": {\"median\": [1-9].* \"lost\": 0," "$output/results.json"; then
        passed=$((passed + 1))
    else
        echo "$peer: records are missing or wrong, or the bench ended with $status"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
