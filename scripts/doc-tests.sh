#!/bin/sh
# Runs the examples in the documentation of the crates that have some. Only cargo can run them, so
# they are not in the list of test programs.
set -eu
cd "$(dirname "$0")/.."

# Every other fence opens a block; one of plain text is no example.
crates=$(find crates -path '*/src/*.rs' -exec awk '
    FNR == 1 { inside = 0 }
    /^ *\/\/[\/!] *```/ {
        if (!inside && !/```text/) { split(FILENAME, path, "/"); print path[2] }
        inside = !inside
    }' {} + | sort -u)
# shellcheck disable=SC2046,SC2086 # a list of words
[ -z "$crates" ] || cargo test --doc $(printf -- '--package %s ' $crates)
