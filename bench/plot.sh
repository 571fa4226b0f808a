#!/bin/sh
# Draws results.json of the bench: one SVG on stdout, a group of bars for each workload, a bar
# for each peer, as long as its median is of the group's best, with a line from its minimum to
# its maximum.
#
#   bench/plot.sh [FILE [WORKLOAD…]]     default build/bench/results.json, all workloads
#
# The JSON is what bench/report.c writes: one peer a line.
set -eu
file=${1:-build/bench/results.json}
[ $# -eq 0 ] || shift

awk -v wanted=" $* " '
    function value(line, key) {
        if (!match(line, "\"" key "\": -?[0-9.]+")) {
            return 0
        }
        return substr(line, RSTART + length(key) + 4, RLENGTH - length(key) - 4) + 0
    }
    function figure(rate) {
        return rate >= 1e6 ? sprintf("%.2f M", rate / 1e6) : \
               rate >= 1e4 ? sprintf("%.1f k", rate / 1e3) : sprintf("%.0f", rate)
    }
    function text(x, y, anchor, weight, what) {
        body = body sprintf("<text x=\"%d\" y=\"%d\" text-anchor=\"%s\" font-weight=\"%s\">%s</text>\n", \
                            x, y, anchor, weight, what)
    }
    function bar(row, x, width, y, colour) {
        width = room * median[row] / best
        colour = name[row] == "hawser" ? "#1f6f8b" : "#a9b4bb"
        text(left - 8, y + 12, "end", "normal", name[row])
        body = body sprintf("<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"15\" fill=\"%s\"/>\n", \
                            left, y, width, colour)
        body = body sprintf("<path d=\"M%.1f %dH%.1f\" stroke=\"#333\"/>\n", \
                            left + room * least[row] / best, y + 7.5, left + room * most[row] / best)
        text(left + room * most[row] / best + 8, y + 12, "start", "normal", figure(median[row]))
    }
    function group(    i) {
        if (rows > 0 && best > 0) {
            text(left, y += 28, "start", "bold", title ", records a second")
            y += 8
            for (i = 1; i <= rows; i++) {
                bar(i, 0, 0, y)
                y += 20
            }
        }
        rows = best = 0
    }
    BEGIN {
        left = 140
        room = 440
    }
    /^  "[a-z0-9_]+": \{/ {
        group()
        split($0, part, "\"")
        title = part[2]
        is_wanted = wanted ~ /^ *$/ || index(wanted, " " title " ")
    }
    /^    "[a-z0-9_]+": \{"median"/ && is_wanted {
        split($0, part, "\"")
        name[++rows] = part[2]
        median[rows] = value($0, "median")
        least[rows] = value($0, "min")
        most[rows] = value($0, "max")
        best = most[rows] > best ? most[rows] : best
    }
    END {
        group()
        printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" " \
               "font-family=\"sans-serif\" font-size=\"13\">\n", left + room + 100, y + 16
        printf "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n%s</svg>\n", body
    }' "$file"
