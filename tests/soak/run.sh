#!/bin/sh
# What takes long: unit tests under valgrind, transfers with the programs under
# valgrind, transfers at their full size, a hundred thousand connections, thousands of
# simulated networks, faults of every kind under load, minutes of mixed load. The last line is "N passed, N failed".
#
#   tests/soak/run.sh UNIT_TEST…
#
# HAWSER_BUILD says where everything is built (default build). SOAK_SECONDS: length of
# the mixed load (120). STORM_ROUNDS: faults of a storm (60). SIM_SEEDS: simulated networks
# (100000).
set -u
build=${HAWSER_BUILD:-build}

wrappers=$(mktemp -d "${TMPDIR:-/tmp}/hawser-soak.XXXXXX") || exit 1
trap 'rm -rf "$wrappers"' EXIT
trap 'exit 130' INT TERM

valgrind="valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite"

# A script for each, so that the runner needs to know nothing of valgrind and variables.
wrap() { # NAME COMMAND
    printf '#!/bin/sh\n%s\n' "$2" >"$wrappers/$1"
    chmod +x "$wrappers/$1"
}

for test in "$@"; do
    wrap "valgrind_$(basename "$test")" "SCALE=20 exec $valgrind $test"
done
wrap programs_under_valgrind "SCALE=50 HAWSER_WRAP='$valgrind' exec $build/tests/e2e/transfer_test"
wrap full_size_transfers "SOAK=1 SCALE=1 exec $build/tests/e2e/transfer_test"
wrap peers_that_come_and_go "SOAK=1 exec $build/tests/e2e/churn_test"
wrap what_crosses "SOAK=1 exec $build/tests/e2e/race_test"
wrap links_that_are_pulled "SOAK=1 exec $build/tests/e2e/netns_test"
wrap links_that_break "SOAK=1 exec $build/tests/e2e/cuts_test"
wrap parties_that_stand_still "SOAK=1 exec $build/tests/e2e/standstill_test"
wrap who_comes_again "SOAK=1 exec $build/tests/e2e/again_test"
wrap brokers_that_go_and_come "SOAK=1 exec $build/tests/e2e/outage_test"
wrap receivers_that_return "SOAK=1 exec $build/tests/e2e/return_test"
wrap storms "exec $build/tests/soak/storm_test"
wrap simulated_networks "exec $build/tests/sim/sim --first 1000000 --seeds ${SIM_SEEDS:-100000}"
wrap mixed_load "exec $build/tests/soak/load_test"

TEST_TIMEOUT=${TEST_TIMEOUT:-1800} tests/run.sh "$wrappers"/*
