#!/bin/bash
# Builds every test program and lists them, and prints the command that runs them, a word a line.
#
# The list, TARGET/tests/list, has a line a program: its name, the directory to run it in, the
# executable, arguments; with tabs between. Examples in documentation, which only cargo can run, are
# not in it: scripts/doc-tests.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")
tests=$target/tests
mkdir -p "$tests"

# Executables that cargo built, from its messages: package, name (lib for a library's own tests),
# test or not, directory and path.
built() {
    cargo "$@" --message-format=json-render-diagnostics |
        sed -n 's#^{"reason":"compiler-artifact".*"manifest_path":"\([^"]*/\)\([^"/]*\)/Cargo.toml".*"target":{"kind":\["\([^"]*\)"\][^}]*"name":"\([^"]*\)".*"profile":{[^}]*"test":\([a-z]*\)}.*"executable":"\([^"]*\)".*#\2\t\3\t\4\t\5\t\1\2\t\6#p' |
        awk -F'\t' -v OFS='\t' '{ print $1, $2 == "lib" ? "lib" : $3, $4, $5, $6 }' | sort
}

built test --workspace --no-run >"$tests/built"
# Rings and snapshots under every order of their atomics that loom can think of. Another build of
# the engine, so it has a directory of its own.
RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=$target/loom built test --package graph --profile loom --lib --no-run >"$tests/loom"

{
    awk -F'\t' -v OFS='\t' '$3 == "true" { print $1 "/" $2, $4, $5 }' "$tests/built"
    awk -F'\t' -v OFS='\t' '{ print $1 "/loom", $4, $5, "loom" }' "$tests/loom"
} >"$tests/list"

executable() {
    awk -F'\t' -v name="$1" '$2 == name && $3 == "false" { print $5 }' "$tests/built"
}

printf '%s\n' "$(executable run-tests)" --cleanup "$(executable parshall)" --full-dispatcher "$tests/list"
