#!/bin/sh
# Shows that the list of behaviours in tests/README.md is true.
#
#   tests/list.sh [FILE]     another list than tests/README.md
#
# A row of the list is `| name | what it pins | tests |`; the tests are program names and
# functions in backquotes, as `unit/tx_test`: `ring_wraps`, … Every function has to be a
# test that the program runs, every name to come once and to be borne by one of its tests,
# or to begin its name. Of a row without a name only the tests are looked at.
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
    # Looks at the tests that a cell names. Sets their number, and whether one bears the name;
    # returns what is wrong, or nothing.
    function look(cell, name,    fault, program, word) {
        tests = is_borne = 0
        while (match(cell, /`[^`]*`/)) {
            word = substr(cell, RSTART + 1, RLENGTH - 2)
            cell = substr(cell, RSTART + RLENGTH)
            if (word ~ /\/[a-z_]+_test$/) {
                program = word
            } else if (word ~ /^[a-z0-9_]+$/) {
                tests++
                is_borne = is_borne || index(word, name) == 1
                if (!((program " " word) in is_test)) {
                    fault = program " runs no test " word
                }
            }
        }
        return fault
    }

    FILENAME != list { is_test[$0] = 1; next }

    # A row of the list begins with a name in backquotes; of other rows only the tests that
    # they name are looked at.
    $2 ~ /^ `[a-z0-9_]+` $/ {
        name = $2
        gsub(/[` ]/, "", name)
        fault = look($4, name)
        if (NF != 5) {
            fault = "not three columns"
        } else if (name in seen) {
            fault = "comes twice"
        } else if ($3 ~ /^ *$/) {
            fault = "says nothing"
        } else if (tests == 0) {
            fault = "names no test"
        } else if (!is_borne && fault == "") {
            fault = "no test of this name"
        }
        seen[name] = 1
    }
    $2 !~ /^ `[a-z0-9_]+` $/ {
        if ($4 !~ /`[a-z0-9]+\/[a-z_]+_test`/) {
            next
        }
        name = $2
        fault = look($4, name)
    }
    fault != "" { print list ":" FNR ": " name ": " fault; failed++; next }
    { passed++ }

    END {
        if (passed + failed == 0) {
            print list ": no list of behaviours"
            failed++
        }
        print passed + 0 " passed, " failed + 0 " failed"
        exit failed > 0
    }' "$known" "$list"
