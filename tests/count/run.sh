#!/bin/sh
# Counts the instructions that a 64-byte record costs on each part of its way, and holds each
# against a limit: a guard against a slower data path that needs no clock. A tool counts, so a
# busy machine changes nothing; another compiler does, a little, for which the limits have room.
#
#   tests/count/run.sh
#
# HAWSER_BUILD says where everything is built (default build). A part is a function with all
# that it calls. It is counted in a short run and in a long one: what the two do not share are
# records. The last line is "N passed, N failed", counting parts.
set -u
build=${HAWSER_BUILD:-build}
SHORT=4
LONG=12
RECORDS=500 # of a round, as the programs have it

# The tool counts a string instruction once for each byte: copies are to be made with others.
export GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=1073741824

broker=
output=$(mktemp -d "${TMPDIR:-/tmp}/hawser-count.XXXXXX") || exit 1
trap '[ -z "$broker" ] || kill "$broker"; rm -rf "$output"' EXIT
trap 'exit 130' INT TERM
passed=0
failed=0

collected() { # PROGRAM ROUNDS FUNCTION: instructions, or nothing
    valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="$3" \
        "$build/tests/count/$1" "$2" "$endpoint" >"$output/log" 2>&1 || {
        cat "$output/log" >&2
        return
    }
    sed -n 's/^.*Collected : //p' "$output/log"
}

start_broker() { # sets endpoint
    "$build/hawser-broker" --listen "ipc://$output/broker" --state-dir "$output/state" \
        >"$output/ready" 2>"$output/broker.log" &
    broker=$!
    for _ in $(seq 100); do
        endpoint=$(sed -n 's/^hawser-broker: ready \([^ ]*\).*/\1/p' "$output/ready")
        [ -z "$endpoint" ] || return
        sleep 0.1
    done
    echo "the broker does not start" >&2
    exit 1
}

part() { # PROGRAM FUNCTION LIMIT WHAT: at most LIMIT instructions a record
    short=$(collected "$1" $SHORT "$2")
    long=$(collected "$1" $LONG "$2")
    cost=$(((${long:-0} - ${short:-0}) / ((LONG - SHORT) * RECORDS)))
    # Nothing at all is a function that is not there any more.
    if [ "${short:-0}" -gt 0 ] && [ "$cost" -le "$3" ]; then
        passed=$((passed + 1))
        verdict=
    else
        failed=$((failed + 1))
        verdict="   FAILED"
    fi
    printf '%-22s %-20s %5d instructions a record, at most %d%s\n' "$4" "$2" "$cost" "$3" "$verdict"
}

start_broker
part path hws_tx_append 120 "kept by its sender"
part path hws_session_pop 20 "packed"
part path hws_engine_recv 20 "taken by the broker"
part path hws_engine_pop 5 "passed on"
part path hws_session_batch 15 "taken by the client"
part ends hws_sender_send 290 "sent, all in all"
part ends hws_receiver_recv 110 "received, all in all"

[ $((passed + failed)) -gt 0 ] || failed=1
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
