#!/bin/bash
# How long a million routes take from the kernel into the tables, and how many changes a second go
# by under traffic. Prints the figures of two of the system tests, run with the release binary.
# Needs root for network namespaces.
set -euo pipefail
cd "$(dirname "$0")/.."

tests=$(cargo test --release --package app --test system --no-run --message-format=json |
    sed -n 's/.*"name":"system".*"executable":"\([^"]*\)".*/\1/p' | tail -1)
sudo=
[ "$(id -u)" = 0 ] || ! command -v sudo >/dev/null || sudo=sudo

for test in routes::a_full_table_is_learned routes::changes_under_traffic_lose_nothing; do
    $sudo "$tests" --include-ignored --exact --show-output "$test" |
        sed -n -e '/^SKIP /p' -e 's/^[a-z_]*: //p' -e '/panicked/,/^$/p'
done
