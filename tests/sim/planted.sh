#!/bin/sh
# Shows that the simulation finds bugs: plants each of tests/sim/planted in a copy of the tree,
# builds the simulation there and runs it until it fails. The last line is "N passed, N failed".
#
#   tests/sim/planted.sh [NAME…]
#
# A file there is a comment, and then, for each file that it is planted in, a line `in FILE` with a
# sed script below. A bug that changes nothing in one of them, cannot be built or is not found within SEEDS (4000) seeds has failed.
# HAWSER_BUILD says where everything is built (default build).
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${HAWSER_BUILD:-build}

scratch=$(mktemp -d "${TMPDIR:-/tmp}/hawser-planted.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

# With the objects, whose times are kept: only what is touched is compiled.
git ls-files -z | xargs -0 cp -a --parents -t "$scratch" || exit 1
find "$build" \( -name '*.o' -o -name '*.d' \) -print0 | xargs -0 cp -a --parents -t "$scratch"

passed=0
failed=0
[ $# -gt 0 ] || set -- tests/sim/planted/*
for bug in "$@"; do
    name=$(basename "$bug")
    bug=tests/sim/planted/$name
    files=$(sed -n 's/^in //p' "$bug")
    verdict="not found"
    for file in $files; do
        awk -v file="$file" '/^in / { is_here = $2 == file; next } is_here' "$bug" >"$scratch/script"
        sed -f "$scratch/script" "$file" >"$scratch/$file"
        ! cmp -s "$file" "$scratch/$file" || verdict="changes nothing in $file"
    done
    if [ "$verdict" != "not found" ]; then
        :
    elif ! make -s -C "$scratch" BUILD="$build" "$build/tests/sim/sim" >"$scratch/log" 2>&1; then
        verdict="cannot be built"
        cat "$scratch/log"
    elif ! "$scratch/$build/tests/sim/sim" --seeds "${SEEDS:-4000}" --until-failure \
        >"$scratch/log" 2>&1; then
        verdict=$(sed -n 's/^---- seed \([0-9]*\) failed.*/found by seed \1/p' "$scratch/log" | head -n 1)
    fi
    echo "$name: $verdict"
    case $verdict in
    found*) passed=$((passed + 1)) ;;
    *) failed=$((failed + 1)) ;;
    esac
    for file in $files; do
        cp "$file" "$scratch/$file" # with a new time: it is compiled again
    done
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
