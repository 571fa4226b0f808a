#!/bin/sh
# Runs fuzzers, each for FUZZ_SECONDS (20), starting from the inputs in
# tests/fuzz/seeds/NAME/ when there are any. What it finds stays beside the fuzzer, in
# build/fuzz. The last line is "N passed, N failed", counting fuzzers.
#
#   tests/fuzz/run.sh FUZZER…
set -u

passed=0
failed=0
for fuzzer in "$@"; do
    name=$(basename "$fuzzer")
    corpus=$fuzzer.corpus
    seeds=$(dirname "$0")/seeds/$name
    mkdir -p "$corpus"
    [ -d "$seeds" ] || seeds=
    if "$fuzzer" -max_total_time="${FUZZ_SECONDS:-20}" -print_final_stats=1 -max_len=70000 -timeout=10 \
        -artifact_prefix="$fuzzer." "$corpus" ${seeds:+"$seeds"} >"$fuzzer.log" 2>&1; then
        echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$fuzzer.log") inputs"
        passed=$((passed + 1))
    else
        echo "---- $name FAILED; the end of $fuzzer.log:"
        tail -n 40 "$fuzzer.log"
        failed=$((failed + 1))
    fi
done

[ $((passed + failed)) -gt 0 ] || failed=1
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
