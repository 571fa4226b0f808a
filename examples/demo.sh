#!/bin/bash
# Real files of this machine through a real broker: four senders that finish, one that is
# killed half-way, and a receiver that writes one file per sender and says how each ended.
#
#   HAWSER_BUILD=build examples/demo.sh
#
# Exit 0 only if every byte arrived and every ending is the right one. Needs nothing but
# bash and coreutils, takes a few seconds, leaves no process and no file behind.
set -u
export LC_ALL=C

build=${HAWSER_BUILD:-build}
size=$((12 * 1024 * 1024)) # of each input
patience=20                # seconds that any one thing may take

work=$(mktemp -d "${TMPDIR:-/tmp}/hawser-demo.XXXXXX") || exit 1
started=() # processes of ours that may still run
failures=0

clean_up() {
    if [ ${#started[@]} -gt 0 ]; then
        kill -9 "${started[@]}"
        wait "${started[@]}"
    fi 2>/dev/null
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say() { printf '%s\n' "$*"; }
title() { printf '\n== %s\n' "$*"; }

complain() {
    say "WRONG: $*"
    failures=$((failures + 1))
}

give_up() { # TEXT [LOG]
    say "demo: $1"
    [ $# -lt 2 ] || cat "$2"
    exit 1
}

# The process has ended or is about to be waited for: it is no longer ours to kill.
forget() { # PID
    local pid kept=()
    for pid in "${started[@]}"; do
        [ "$pid" = "$1" ] || kept+=("$pid")
    done
    started=("${kept[@]}")
}

# Waits for a line in a log; prints what follows PATTERN in it.
wait_for_line() { # LOG PATTERN
    local line end=$((SECONDS + patience))
    while [ $SECONDS -lt $end ]; do
        [ ! -f "$1" ] || while IFS= read -r line; do
            case $line in
            "$2"*)
                printf '%s' "${line#"$2"}"
                return 0
                ;;
            esac
        done <"$1"
        sleep 0.05
    done
    return 1
}

file_size() { stat -c %s "$1" 2>/dev/null || echo 0; }

digest() { # FILE
    local sum
    sum=$(sha256sum <"$1") 2>/dev/null
    printf '%s' "${sum%% *}"
}

# Makes an input of files of this machine, again and again until it is large enough.
collect() { # NAME FILE...
    local name=$1 file files=()
    shift
    for file in "$@"; do
        [ -f "$file" ] && [ -r "$file" ] && [ -s "$file" ] && files+=("$file")
    done
    [ ${#files[@]} -gt 0 ] || give_up "this machine has no files for the input $name"
    while cat "${files[@]}"; do :; done 2>/dev/null | head -c "$size" >"$work/in/$name"
    printf '  %-10s %9d bytes out of %d files, such as %s\n' "$name" "$(file_size "$work/in/$name")" \
        ${#files[@]} "${files[0]}"
}

for program in hawser-broker hawser-send hawser-recv; do
    [ -x "$build/$program" ] || give_up "$build/$program is not built; run make"
done
mkdir "$work/in" "$work/out"
unset HAWSER_BROKER

title "Inputs"
collect texts /usr/share/doc/*/copyright /usr/share/common-licenses/*
collect lists /var/lib/dpkg/status /var/lib/dpkg/info/*.list /etc/*
collect programs /usr/bin/* /bin/*
collect libraries /usr/lib/*/lib*.so.* /usr/lib/lib*.so.* /lib/*/lib*.so.*
collect victim /usr/bin/[n-z]* /usr/bin/*
names=(texts lists programs libraries)
half=$((size / 2))
head -c "$half" "$work/in/victim" >"$work/in/victim.half"

title "A broker, a receiver, four senders, and one that will not live long"
"$build/hawser-broker" --listen 'tcp://127.0.0.1:*' --state-dir "$work/state" \
    >"$work/broker.log" 2>"$work/broker.err" &
broker=$!
started+=("$broker")
endpoint=$(wait_for_line "$work/broker.log" "hawser-broker: ready ") ||
    give_up "the broker does not start" "$work/broker.err"
endpoint=${endpoint%% *}
say "  broker at $endpoint"

begin=${EPOCHREALTIME/./}
"$build/hawser-recv" --broker "$endpoint" --anchor demo --senders 5 --framing chunk \
    --heartbeat 500ms --grace 1s --output-dir "$work/out" 2>"$work/receiver.log" &
receiver=$!
started+=("$receiver")
wait_for_line "$work/receiver.log" "hawser-recv: open demo " >/dev/null ||
    give_up "the receiver does not open its anchor" "$work/receiver.log"

senders=()
for name in "${names[@]}"; do
    "$build/hawser-send" --broker "$endpoint" --anchor demo --label "$name" --framing chunk \
        "$work/in/$name" 2>"$work/$name.log" &
    senders+=($!)
    started+=($!)
done

# The victim gets half of its input and then waits for more.
mkfifo "$work/fifo"
exec 7<>"$work/fifo"
"$build/hawser-send" --broker "$endpoint" --anchor demo --label victim --framing chunk \
    <"$work/fifo" 2>"$work/victim.log" 7>&- &
victim=$!
started+=("$victim")
cat "$work/in/victim.half" >&7 &
feeder=$!
started+=("$feeder")

arrived() {
    local file total=0
    for file in "$work"/out/*; do
        total=$((total + $(file_size "$file")))
    done
    echo "$total"
}

# Draws how much of the merged stream has arrived; on a terminal in place, else in quarters.
total=$((4 * size + half))
quarter=0
draw() {
    local bytes percent us bar
    bytes=$(arrived)
    percent=$((100 * bytes / total))
    us=$((${EPOCHREALTIME/./} - begin))
    bar=$(printf '%*s' $((percent / 4)) '')
    if [ ! -t 1 ] && [ $((percent / 25)) -lt $quarter ]; then
        return
    fi
    quarter=$((percent / 25 + 1))
    [ ! -t 1 ] || printf '\r\033[K'
    printf '  [%-25s] %3d%%  %3d.%d MB of %d.%d MB, %d MB/s' "${bar// /#}" "$percent" \
        $((bytes / 1000000)) $((bytes / 100000 % 10)) \
        $((total / 1000000)) $((total / 100000 % 10)) $((bytes / (us + 1)))
    [ -t 1 ] || echo
}

title "The merged stream"
end=$((SECONDS + patience))
while [ "$(arrived)" -lt "$total" ] && [ $SECONDS -lt $end ] && kill -0 "$receiver" 2>/dev/null; do
    draw
    sleep 0.1
done
draw
[ ! -t 1 ] || echo
[ "$(arrived)" -ge "$total" ] || complain "not everything arrived: $(arrived) of $total bytes"

title "kill -9 of the victim, half-way"
disown "$victim" # or bash would tell of its death in its own words
kill -9 "$victim"
forget "$victim"
exec 7>&-
wait "$feeder"
forget "$feeder"

for i in "${!names[@]}"; do
    wait "${senders[$i]}"
    status=$?
    forget "${senders[$i]}"
    [ $status -eq 0 ] || {
        complain "sender ${names[$i]} ended with $status"
        cat "$work/${names[$i]}.log"
    }
done

# The receiver ends by itself when the fifth ending has come.
end=$((SECONDS + patience))
while kill -0 "$receiver" 2>/dev/null && [ $SECONDS -lt $end ]; do
    sleep 0.1
done
if kill -0 "$receiver" 2>/dev/null; then
    complain "the receiver waits for an ending that does not come"
    kill -9 "$receiver"
fi
{ wait "$receiver"; } 2>/dev/null
status=$?
forget "$receiver"
[ $status -eq 3 ] || complain "the receiver ended with $status, not 3 (a sender was dropped)"

title "The five endings, as the receiver saw them"
endings=0
good=0
while IFS= read -r line; do
    case $line in
    *" detached, "* | *" dropped("* | *" cancelled("*) ;;
    *) continue ;;
    esac
    say "  ${line#hawser-recv: }"
    endings=$((endings + 1))
    case $line in
    *'"victim" dropped('*) good=$((good + 1)) ;;
    *'"victim" '*) ;;
    *" detached, "*) good=$((good + 1)) ;;
    esac
done <"$work/receiver.log"
if [ $endings -ne 5 ] || [ $good -ne 5 ]; then
    complain "these are not four detached and the victim dropped"
    cat "$work/receiver.log"
fi

title "SHA-256 of what was sent and of what arrived"
printf '  %-10s %9s  %-20s %-20s\n' sender bytes sent arrived
compare() { # NAME INPUT
    local sent got verdict=same
    sent=$(digest "$work/in/$2")
    got=$([ -f "$work/out/$1" ] && digest "$work/out/$1")
    if [ -z "$got" ] || [ "$sent" != "$got" ]; then
        verdict=DIFFERENT
        failures=$((failures + 1))
    fi
    printf '  %-10s %9d  %-20s %-20s %s\n' "$1" "$(file_size "$work/out/$1")" "${sent:0:16}..." \
        "${got:0:16}..." "$verdict"
}
for name in "${names[@]}"; do
    compare "$name" "$name"
done
compare victim victim.half

kill "$broker"
wait "$broker"
status=$?
forget "$broker"
[ $status -eq 0 ] || {
    complain "the broker ended with $status"
    cat "$work/broker.err"
}

if [ $failures -gt 0 ]; then
    printf '\n%d things are wrong\n' $failures
    exit 1
fi
printf '\nAll is right: every byte arrived, every stream ended once and says how.\n'
