#!/bin/bash
# Runs the tests inside other kernels, one after the other, and ends with a line for each: its sum,
# or that it died. docs/testing.md says how.
#
# Usage: scripts/test-kernels.sh [KERNEL...] [FILTER...]
#   KERNEL   6.1, 6.12 or newest; all three without one
#   FILTER   programs whose name contains it, as in xdp or app/system
# Exit code: 0 if every kernel lived and every test passed.
set -uo pipefail
scripts=$(dirname "$0")

kernels=()
filters=()
for word in "$@"; do
    case $word in
    6.1 | 6.12 | newest) kernels+=("$word") ;;
    *) filters+=("$word") ;;
    esac
done
[ ${#kernels[@]} -gt 0 ] || kernels=(6.1 6.12 newest)

words=$("$scripts/build-tests.sh") || exit 1
mapfile -t run <<<"$words"
logs=$(dirname "${run[-1]}")
export PARSHALL_GUEST_LIMIT=${PARSHALL_GUEST_LIMIT:-10800}

# Runs the tests in a kernel; what comes of it is added to the sums.
sums=
failed=0
kernel() {
    local log=$logs/$1.log start=$SECONDS code version sum
    "$scripts/guest.sh" "$1" "${run[@]}" "${filters[@]}" 2>&1 | tee "$log"
    code=${PIPESTATUS[0]}
    version=$(sed -n 's/^guest: Linux \([0-9.]*[0-9]\).*/\1/p' "$log")
    sum=$(grep -aE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
    case $code in
    124) sum="ended after $PARSHALL_GUEST_LIMIT s" ;;
    125) sum="died: $(sed -n 's/.*\(Kernel panic.*\)/\1/p' "$log" | tail -n 1)" ;;
    esac
    [ "$code" = 0 ] || failed=1
    sums+="${version:-$1}: ${sum:-no result} ($((SECONDS - start)) s, $log)"$'\n'
}

for name in "${kernels[@]}"; do
    echo "== Linux $name"
    kernel "$name"
done
printf '\n%s' "$sums"
exit $failed
