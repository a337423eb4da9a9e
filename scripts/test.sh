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
exec "${run[@]}" "$@"
