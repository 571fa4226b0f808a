#!/bin/bash
# A stream that outlives its broker and its receiver: both are killed with kill -9 while it runs,
# and started again. Every record arrives once.
#
#   HAWSER_BUILD=build examples/restart.sh
#
# Exit 0 only if what arrived is what was sent. Needs nothing but bash and coreutils, takes a few
# seconds, leaves no process and no file behind.
set -u
export LC_ALL=C

build=${HAWSER_BUILD:-build}
records=3000000
patience=30 # seconds that any one thing may take

work=$(mktemp -d "${TMPDIR:-/tmp}/hawser-restart.XXXXXX") || exit 1
broker=
receiver=
sender=
feeder=

clean_up() {
    # shellcheck disable=SC2086
    [ -z "$broker$receiver$sender$feeder" ] || kill -9 $broker $receiver $sender $feeder
    wait
    rm -rf "$work"
} 2>/dev/null
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

give_up() { # TEXT
    echo "restart: $1"
    cat "$work"/*.log
    exit 1
}

# Waits until a command succeeds.
until_true() { # COMMAND...
    local end=$((SECONDS + patience))
    until "$@"; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.02
    done 2>/dev/null
}

start_broker() {
    "$build/hawser-broker" --listen "$HAWSER_BROKER" --state-dir "$work/state" >"$work/ready" \
        2>>"$work/broker.log" &
    broker=$!
    until_true grep -q ready "$work/ready" || give_up "the broker does not start"
}

# The same command line the first time and every time.
start_receiver() {
    "$build/hawser-recv" --anchor results --resume "$work/results.resume" --output-dir "$work/out" \
        --senders 1 --wait ${patience}s 2>>"$work/receiver.log" &
    receiver=$!
}

kill_at_once() { # PID
    disown "$1" # or bash would tell of its death in its own words
    kill -9 "$1"
    until_true eval "! kill -0 $1"
}

arrived() { stat -c %s "$work/out/first" 2>/dev/null || echo 0; }
has_arrived() { [ "$(arrived)" -ge "$1" ]; }

title() { printf '\n== %s\n' "$*"; }

report() { # TEXT
    printf '%-48s %9d of %d bytes have arrived\n' "$1" "$(arrived)" "$size"
}

for program in hawser-broker hawser-send hawser-recv; do
    [ -x "$build/$program" ] || give_up "$build/$program is not built; run make"
done
seq "$records" >"$work/input"
size=$(stat -c %s "$work/input")
split -n l/4 -d -a 1 "$work/input" "$work/part."
export HAWSER_BROKER=ipc://$work/socket

# The sender gets its input in four parts, so that it cannot be done before the last kill.
mkfifo "$work/fifo"
for part in 0 1 2 3; do
    until [ -e "$work/go.$part" ]; do sleep 0.02; done
    cat "$work/part.$part"
done >"$work/fifo" &
feeder=$!

title "A stream, its broker and its receiver"
start_broker
start_receiver
"$build/hawser-send" --anchor results --label first --wait ${patience}s "$work/fifo" \
    2>"$work/sender.log" &
sender=$!

touch "$work/go.0"
until_true has_arrived $((size / 8)) || give_up "nothing arrives"
kill_at_once "$broker"
report "kill -9 of the broker:"
start_broker

touch "$work/go.1"
until_true has_arrived $((3 * size / 8)) || give_up "nothing arrives from the restarted broker"
kill_at_once "$receiver"
report "kill -9 of the receiver:"
start_receiver

touch "$work/go.2"
until_true has_arrived $((5 * size / 8)) || give_up "nothing arrives at the next receiver"
kill_at_once "$broker"
kill_at_once "$receiver"
report "kill -9 of both:"
start_broker
start_receiver
touch "$work/go.3"
wait "$feeder"
feeder=

wait "$sender" || give_up "the sender ended with $?"
sender=
wait "$receiver" || give_up "the receiver ended with $?"
receiver=
report "sender and receiver are done:"

title "What the three receivers said"
cat "$work/receiver.log"
title "What the sender said"
cat "$work/sender.log"
cmp "$work/input" "$work/out/first" || give_up "what arrived is not what was sent"
kill "$broker"
wait "$broker" || give_up "the broker ended with $?"
broker=
printf '\nAll is right: %d records arrived, every one once.\n' "$records"
