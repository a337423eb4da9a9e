#!/bin/bash
# What needs a nightly toolchain: undefined behaviour (miri), memory errors (address sanitizer),
# fuzzers. Each says SKIP where its tool is missing.
# Usage: scripts/deep.sh [SECONDS PER FUZZER]
set -uo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
failed=0

step() {
    echo "== $1"
    shift
    "$@" || failed=1
}

if ! rustup toolchain list 2>/dev/null | grep -q nightly; then
    echo "SKIP deep: no nightly toolchain (rustup toolchain install nightly --component miri,rust-src)"
    exit 0
fi

if cargo +nightly miri --version >/dev/null 2>&1; then
    # The crates that touch memory by hand and need few system calls; not the tests that only repeat
    # safe code.
    step "miri" env MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --package tables --package graph --lib -- \
        --skip ip4::tests --skip random_groups --skip any_ --skip flows_of --skip lengths_are
else
    echo "SKIP miri: rustup +nightly component add miri rust-src"
fi

host=$(rustc -vV | sed -n 's/^host: //p')
if [ -d "$(rustc +nightly --print sysroot)/lib/rustlib/src" ]; then
    # A test wants to see what a bus error does to the process: the sanitizer must not take it.
    step "address sanitizer" env RUSTFLAGS=-Zsanitizer=address ASAN_OPTIONS=handle_sigbus=0 \
        cargo +nightly test -Zbuild-std --target "$host" --package graph --package tables --package io --lib
else
    echo "SKIP address sanitizer: rustup +nightly component add rust-src"
fi

if ! cargo fuzz --version >/dev/null 2>&1; then
    echo "SKIP fuzz: cargo install cargo-fuzz"
else
    for target in $(cargo +nightly fuzz list); do
        # What is found is kept in the first directory; the seeds stay as they are.
        mkdir -p "fuzz/corpus/$target"
        step "fuzz $target" cargo +nightly fuzz run "$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -- \
            -max_total_time="$seconds"
    done
fi

exit $failed
