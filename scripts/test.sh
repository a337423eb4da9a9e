#!/bin/bash
# Runs every test and ends with one line: N passed, N failed, N skipped.
#
# Built as the user. Tests that make namespaces need root, so the test programs are started by sudo where there is
# one; without it they print SKIP and why. A test that printed `SKIP name: why` is counted as skipped, not as passed.
# Usage: scripts/test.sh [ARGUMENTS OF cargo test]
set -uo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
target=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
if [ "$(id -u)" != 0 ] && command -v sudo >/dev/null; then
    export "CARGO_TARGET_${target}_RUNNER=sudo --preserve-env"
fi

cargo test --workspace --no-fail-fast "$@" -- --show-output 2>&1 | tee "$log"
status=${PIPESTATUS[0]}

# Rings and snapshots under every order of their atomics that loom can think of. Another build of the engine, so it has a
# directory of its own.
if [ $# = 0 ]; then
    RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/loom \
        cargo test --package graph --release --lib loom 2>&1 | tee --append "$log"
    [ "${PIPESTATUS[0]}" = 0 ] || status=1
fi

echo
grep -aE '^SKIP ' "$log" | sort -u
awk -v skipped="$(grep -aE '^SKIP [^:]+' -o "$log" | sort -u | wc -l)" '
    /^test result:/ { passed += $4; failed += $6; ignored += $8 }
    END {
        passed -= skipped; if (passed < 0) passed = 0
        printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped + ignored
        exit failed > 0
    }' "$log" || status=1
exit "$status"
