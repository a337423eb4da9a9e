#!/bin/bash
# How long a million IPv4 routes beside 250,000 of IPv6 take from the kernel into the tables, and how
# many changes a second of each family go by under traffic. Prints the figures of three of the system
# tests, run with the release binary by `run-tests`. Needs root for network namespaces.
set -euo pipefail
cd "$(dirname "$0")/.."

built() {
    cargo "$@" --message-format=json-render-diagnostics |
        sed -n 's/.*"name":"\(system\|run-tests\)".*"executable":"\([^"]*\)".*/\1 \2/p'
}
declare -A program
while read -r name path; do program[$name]=$path; done < <(
    built test --release --package app --test system --no-run
    built build --release --package testbed --bin run-tests
)
list=$(mktemp)
trap 'rm -f "$list"' EXIT
printf '%s\t' routes "$PWD/crates/app" "${program[system]}" --include-ignored --test-threads=1 --exact \
    routes::{a_full_table_is_learned,{,ip6_}changes_under_traffic_lose_nothing} |
    sed 's/\t$/\n/' >"$list"
sudo=
[ "$(id -u)" = 0 ] || ! command -v sudo >/dev/null || sudo=sudo
$sudo "${program[run-tests]}" --full-dispatcher "$list" |
    sed -n -e '/^SKIP /p' -e '/^FAILED /p' -e '/^[a-z0-9_]*\(learned\|lose_nothing\): /p' \
        -e '/panicked/,/^$/p'
