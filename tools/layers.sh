#!/bin/sh
# Guards the border between protocol logic and the world (docs/design.md, "Layers").
#
#   tools/layers.sh      after a build without sanitizers; HAWSER_BUILD=build
#
# 1. A pure object (a file without _io in its name) uses only the outside symbols that
#    tools/layers.allow names, and has no writable data.
# 2. A pure file includes no header of the world: no *_io.h, zmq.h, czmq.h, time.h …
# 3. Includes point downward only; own headers are named from lib/ or the root.
#
# The last line is "N passed, N failed", counting files.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${HAWSER_BUILD:-build}

world="zmq.h czmq.h pthread.h threads.h time.h signal.h unistd.h fcntl.h poll.h stdatomic.h"
world="$world sys/*.h netinet/*.h arpa/inet.h netdb.h"

# The rank of a directory: a file may include what has a lower rank, and its own directory.
rank() { # DIRECTORY
    case $1 in
    lib/base) echo 0 ;;
    lib/proto | lib/framing) echo 1 ;;
    lib/io) echo 2 ;;
    lib/conf | lib/cancel) echo 3 ;;
    lib/client | lib) echo 4 ;;
    broker | sender | receiver | ctl) echo 5 ;;
    *) echo 9 ;;
    esac
}

is_pure() { # FILE
    case $1 in
    *_io.[ch] | */main.c | lib/hawser.h) return 1 ;;
    *) return 0 ;;
    esac
}

check_includes() { # FILE
    directory=$(dirname "$1")
    own_rank=$(rank "$directory")
    sed -n -E 's/^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]*)[>"].*/\1 \2/p' "$1" | while read -r quote header; do
        if is_pure "$1"; then
            for pattern in $world '*_io.h'; do
                # shellcheck disable=SC2254
                case $header in
                $pattern) echo "$1: a pure file includes $header" ;;
                esac
            done
        fi
        [ "$quote" = '"' ] || continue
        if [ -f "lib/$header" ]; then
            target=lib/$header
        elif [ -f "$header" ]; then
            target=$header
        else
            [ ! -f "$directory/$header" ] || echo "$1: include $header by its path from lib/ or the root"
            continue
        fi
        [ "$target" != lib/base/error.h ] || continue
        target_directory=$(dirname "$target")
        [ "$target_directory" = "$directory" ] || [ "$(rank "$target_directory")" -lt "$own_rank" ] ||
            [ "$directory $target" = "lib/client lib/hawser.h" ] ||
            [ "$directory $target" = "lib/cancel lib/hawser.h" ] ||
            echo "$1: includes $target, which is not below $directory"
        case "$directory $target" in
        "broker lib/client/"* | "broker lib/hawser.h") echo "$1: the broker is no client: $target" ;;
        esac
    done
}

check_object() { # FILE
    object=${1%.c}.o
    if [ ! -f "$build/$object" ]; then
        echo "$1: $build/$object is not built"
        return
    fi
    nm -u -P "$build/$object" | while read -r symbol _; do
        symbol=${symbol%%@*}
        allowed=no
        case $symbol in
        hws_*) continue ;;
        esac
        while read -r where what; do
            # shellcheck disable=SC2254
            case $object in
            $where)
                case $symbol in
                $what) allowed=yes ;;
                esac
                ;;
            esac
        done <"$allow"
        [ $allowed = yes ] || echo "$1: uses $symbol"
    done
    objdump -t "$build/$object" |
        awk -v file="$1" '$3 == "O" && $4 ~ /^\.t?(data|bss)/ && $4 !~ /^\.data\.rel\.ro/ {
            print file ": writable data: " $6
        }'
}

allow=$(mktemp) || exit 1
trap 'rm -f "$allow"' EXIT
grep -v -E '^(#|$)' tools/layers.allow >"$allow"

passed=0
failed=0
for file in $(find lib broker sender receiver ctl -name '*.[ch]' 2>/dev/null | LC_ALL=C sort); do
    faults=$(
        check_includes "$file"
        case $file in
        *.c) if is_pure "$file"; then check_object "$file"; fi ;;
        esac
    )
    if [ -n "$faults" ]; then
        echo "$faults"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
