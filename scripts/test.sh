#!/bin/bash
# Runs every test and ends with one line: N passed, N failed, N skipped. docs/testing.md says how.
#
# Built as the user. Tests that make namespaces need root, so the test programs are started by sudo
# where there is one; without it they print SKIP and why. A test that printed `SKIP name: why` is
# counted as skipped, not as passed.
# Usage: scripts/test.sh [FILTER...]      programs whose name contains a FILTER, as in xdp or app/system
set -uo pipefail
scripts=$(dirname "$0")

words=$("$scripts/build-tests.sh") || {
    echo "FAILED build-tests: the tests cannot be built"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
}
mapfile -t run <<<"$words"
if [ "$(id -u)" != 0 ] && command -v sudo >/dev/null; then
    run=(sudo --preserve-env "${run[@]}")
fi
[ $# -eq 0 ] || exec "${run[@]}" "$@"

# app/system waits most of its time, for links and for processes; the others compute. So there are
# two runs side by side, and the log of the others comes when both are over.
list=${run[-1]}
runner=("${run[@]:0:${#run[@]}-1}")
logs=$(dirname "$list")
system=$logs/system others=$logs/others
grep '^app/system' "$list" >"$system-list"
grep -v '^app/system' "$list" >"$others-list"
"${runner[@]}" "$others-list" >"$others-log" 2>&1 &
beside=$!
trap 'kill "$beside"; wait "$beside"; exit 130' INT TERM HUP
# One sum: that of both, at the end.
sum='^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$'
"${runner[@]}" "$system-list" 2>&1 | tee "$system-log" | grep --text --line-buffered --invert-match --extended-regexp "$sum"
wait "$beside"
grep --text --invert-match --extended-regexp "$sum" "$others-log"
grep --text --no-filename '^FAILED ' "$system-log" "$others-log"
grep --text --no-filename --extended-regexp "$sum" "$system-log" "$others-log" |
    awk '{ runs++; passed += $1; failed += $3; skipped += $5 }
        END {
            # A run that was killed has no sum.
            failed += 2 - runs
            printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
            exit failed > 0
        }'
