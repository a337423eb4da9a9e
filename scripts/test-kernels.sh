#!/bin/bash
# Runs the tests inside other kernels, one after the other, and ends with a line for each: its sum,
# or that it died. Then the router on network cards of each kind in the same kernels, and a table of
# what each can do. docs/testing.md says how.
#
# Usage: scripts/test-kernels.sh [KERNEL...] [quick | cards [CARD...] | frr | FILTER...]
#   KERNEL   6.1, 6.12 or newest; all three without one
#   quick    the router on one kind of card in one kernel: three minutes
#   cards    only the router on cards; on these alone, as in virtio-net-pci:4, if any are named
#   frr      only the router between two guests with FRR
#   FILTER   only programs whose name contains it, as in xdp or app/system
# Exit code: 0 if every kernel lived and every test passed. What cannot run here is skipped.
set -uo pipefail
scripts=$(dirname "$0")

kernels=()
filters=()
cards=()
part=all
for word in "$@"; do
    case $word in
    6.1 | 6.12 | newest) kernels+=("$word") ;;
    quick | cards | frr) part=$word ;;
    *) if [ $part = cards ]; then cards+=("$word"); else filters+=("$word"); fi ;;
    esac
done
[ ${#filters[@]} -eq 0 ] || part=programs
# What quick and cards run: tests of tests/cards.rs whose names begin so, with tabs between.
tests=cards::
case $part in
quick)
    [ ${#kernels[@]} -gt 0 ] || kernels=(6.12)
    cards=(virtio-net-pci)
    tests=$'cards::what\tcards::a_load'
    export PARSHALL_GUEST_LIMIT=${PARSHALL_GUEST_LIMIT:-170}
    ;;
*) [ ${#kernels[@]} -gt 0 ] || kernels=(6.1 6.12 newest) ;;
esac
# A virtio-net that goes through the IOMMU's interface is what the kernel does zero-copy with.
[ ${#cards[@]} -gt 0 ] || cards=(virtio-net-pci virtio-net-pci:4 virtio-net-pci,rss=on:4
    virtio-net-pci,disable-legacy=on,iommu_platform=on e1000e vmxnet3 igb)

words=$("$scripts/build-tests.sh") || exit 1
mapfile -t run <<<"$words"
list=${run[-1]}
logs=$(dirname "$list")
# On cards the tests run one after the other: there is one pair of them.
awk -F'\t' -v OFS='\t' -v tests="$tests" '$1 == "app/system" { $1 = "app/cards"; print $0, "--ignored", "--test-threads=1", tests }' \
    "$list" >"$logs/cards-list"
run_cards=("${run[@]:0:${#run[@]}-1}" "$logs/cards-list")
awk -F'\t' -v OFS='\t' '$1 == "app/system" { $1 = "app/guests"; print $0, "--ignored", "guests::" }' \
    "$list" >"$logs/guests-list"
run_guests=("${run[@]:0:${#run[@]}-1}" "$logs/guests-list")

sums=
rows=
failed=0

# Runs a command in a kernel. $version, and $sum: what came of it.
inside() {
    local kernel=$1 log=$2 start=$SECONDS code
    shift 2
    "$scripts/guest.sh" "$kernel" "$@" 2>&1 | tee "$log"
    code=${PIPESTATUS[0]}
    version=$(sed -n 's/^guest: Linux \([0-9.]*[0-9]\).*/\1/p' "$log")
    sum=$(grep -aE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
    case $code in
    77) sum=$(sed -n 's/^guest: \(SKIP.*\)/\1/p' "$log" | tail -n 1) ;;
    124) sum="ended after $PARSHALL_GUEST_LIMIT s" ;;
    125) sum="died: $(sed -n 's/.*\(Kernel panic.*\)/\1/p' "$log" | tail -n 1)" ;;
    esac
    [ "$code" = 0 ] || [ "$code" = 77 ] || failed=1
    version=${version:-$kernel}
    sum=${sum:-no result}
    sums+="$version $of: $sum ($((SECONDS - start)) s, $log)"$'\n'
}

# The router in a guest between two others with FRR, which do what tests/guests.rs tells them.
between_neighbours() {
    local kernel=$1 log=$2 sockets side beside=()
    sockets=$(mktemp -d)
    for side in 0 1; do
        PARSHALL_GUEST_WIRES="02:70:73:01:0$side:02,$sockets/h$side,$sockets/r$side" \
            PARSHALL_GUEST_CPUS=1 PARSHALL_GUEST_MEMORY=1G \
            "$scripts/guest.sh" "$kernel" sh -c "
                ip addr add 198.18.$side.2/24 dev h$side && ip link set h$side up
                exec busybox nc -ll -p 7000 -e bash" >"${log%.log}-h$side.log" 2>&1 &
        beside+=($!)
    done
    PARSHALL_GUEST_WIRES="02:70:73:01:00:01,$sockets/r0,$sockets/h0 02:70:73:01:01:01,$sockets/r1,$sockets/h1" \
        PARSHALL_GUEST_MEMORY=2G inside "$kernel" "$log" "${run_guests[@]}"
    kill "${beside[@]}" 2>/dev/null
    wait "${beside[@]}" 2>/dev/null
    rm -rf "$sockets"
}

# A fact that the tests on cards printed.
fact() {
    tr -d '\r' <"$log" | sed -n "s/^CARD $1: //p" | tail -n 1
}

# A row of the table.
row() {
    local what
    rows+="| $version | $of "
    for what in driver mode queues multi-buffer lane 'live frames' jumbo 'MTU 1400' '1 queues' refused; do
        what=$(fact "$what")
        rows+="| ${what:--} "
    done
    rows+="| $sum |"$'\n'
}

if [ $part = all ] || [ $part = programs ]; then
    export PARSHALL_GUEST_LIMIT=${PARSHALL_GUEST_LIMIT:-10800}
    for name in "${kernels[@]}"; do
        echo "== Linux $name"
        of=programs
        inside "$name" "$logs/$name.log" "${run[@]}" "${filters[@]}"
    done
fi
if [ $part = all ] || [ $part = frr ]; then
    export PARSHALL_GUEST_LIMIT=${PARSHALL_GUEST_LIMIT:-1800}
    for name in "${kernels[@]}"; do
        echo "== Linux $name, between two guests with FRR"
        of=frr
        between_neighbours "$name" "$logs/$name-frr.log"
    done
fi
if [ $part != programs ] && [ $part != frr ]; then
    export PARSHALL_GUEST_LIMIT=${PARSHALL_GUEST_LIMIT:-1800}
    for name in "${kernels[@]}"; do
        for of in "${cards[@]}"; do
            echo "== Linux $name, $of"
            log=$logs/$name-$of.log
            PARSHALL_GUEST_CARDS=$of PARSHALL_GUEST_MEMORY=2G inside "$name" "$log" "${run_cards[@]}"
            row
        done
    done
    cat <<'TABLE'

| Linux | card | driver | mode | queues | multi-buffer | lane | live frames | MTU 9000 | MTU changed | queues changed | refused | tests |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
TABLE
    printf '%s' "$rows"
fi
printf '\n%s' "$sums"
exit $failed
