#!/bin/sh
# Shows that the list of behaviours in tests/README.md is true.
#
#   tests/list.sh [FILE]     another list than tests/README.md
#
# A row of the list is `| name | what it pins | tests |`; the tests are program names and
# functions in backquotes, as `unit/tx_test`: `ring_wraps`, … Every function has to be a
# test that the program runs, every name to come once and to be borne by one of its tests,
# or to begin its name.
#
# The last line is "N passed, N failed", counting rows.
set -u
cd "$(dirname "$0")/.." || exit 1
list=${1:-tests/README.md}

known=$(mktemp) || exit 1
trap 'rm -f "$known"' EXIT

# The tests that each program runs: `unit/tx_test ring_wraps`.
for file in tests/*/*_test.c; do
    program=${file#tests/}
    awk -v program="${program%.c}" '
        /CMUnitTest tests\[\]/ { is_table = 1 }
        is_table {
            line = $0
            while (match(line, /\([a-z][a-z0-9_]*[,)]/)) {
                print program, substr(line, RSTART + 1, RLENGTH - 2)
                line = substr(line, RSTART + RLENGTH)
            }
        }
        /};/ { is_table = 0 }' "$file"
done >"$known"

awk -F '|' -v list="$list" '
    FILENAME != list { is_test[$0] = 1; next }

    # A row of the list begins with a name in backquotes.
    $2 !~ /^ `[a-z0-9_]+` $/ { next }
    {
        name = $2
        gsub(/[` ]/, "", name)
        fault = NF == 5 ? "" : "not three columns"
        if (name in seen) {
            fault = "comes twice"
        }
        seen[name] = 1
        if ($3 ~ /^ *$/) {
            fault = "says nothing"
        }
        program = ""
        tests = 0
        is_borne = 0
        rest = $4
        while (match(rest, /`[^`]*`/)) {
            word = substr(rest, RSTART + 1, RLENGTH - 2)
            rest = substr(rest, RSTART + RLENGTH)
            if (word ~ /\//) {
                program = word
                continue
            }
            tests++
            if (!((program " " word) in is_test)) {
                fault = program " runs no test " word
            }
            is_borne = is_borne || index(word, name) == 1
        }
        if (tests == 0 && fault == "") {
            fault = "names no test"
        } else if (!is_borne && fault == "") {
            fault = "no test of this name"
        }
        if (fault != "") {
            print list ":" FNR ": " name ": " fault
            failed++
        } else {
            passed++
        }
    }
    END {
        if (passed + failed == 0) {
            print list ": no list of behaviours"
            failed++
        }
        print passed + 0 " passed, " failed + 0 " failed"
        exit failed > 0
    }' "$known" "$list"
