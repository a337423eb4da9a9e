#!/bin/bash
# Runs the tests inside other kernels, one after the other, and ends with a line for each: its sum,
# or that it died. Then the router on network cards of each kind in the same kernels, and a table of
# what each can do. docs/testing.md says how.
#
# Usage: scripts/test-kernels.sh [write] [KERNEL...] [quick | cards [CARD...] | frr | FILTER...]
#   KERNEL   6.1, 6.12 or newest; all three without one
#   quick    each XDP program in every kernel, a short lab in two, one card in one: four minutes
#   cards    only the router on cards; on these alone, as in virtio-net-pci:4, if any are named
#   frr      only the router between two guests with FRR
#   write    what quick and cards have seen goes into the tables of docs/kernels.md
#   FILTER   only programs whose name contains it, as in xdp or app/system
# Exit code: 0 if every kernel lived and every test passed. What cannot run here is skipped.
set -uo pipefail
scripts=$(dirname "$0")

kernels=()
filters=()
cards=()
part=all
write=
for word in "$@"; do
    case $word in
    6.1 | 6.12 | newest) kernels+=("$word") ;;
    write) write=yes ;;
    quick | cards | frr) part=$word ;;
    *) if [ $part = cards ]; then cards+=("$word"); else filters+=("$word"); fi ;;
    esac
done
[ ${#filters[@]} -eq 0 ] || part=programs
[ ${#kernels[@]} -gt 0 ] || kernels=(6.1 6.12 newest)
# A virtio-net that goes through the IOMMU's interface is what the kernel does zero-copy with.
[ ${#cards[@]} -gt 0 ] || cards=(virtio-net-pci virtio-net-pci:4 virtio-net-pci,rss=on:4
    virtio-net-pci,disable-legacy=on,iommu_platform=on e1000e vmxnet3 igb)

words=$("$scripts/build-tests.sh") || exit 1
mapfile -t run <<<"$words"
list=${run[-1]}
logs=$(dirname "$list")
# On cards the tests run one after the other: there is one pair of them.

# A list of some tests of a program, by another name: some PROGRAM NAME [ARGUMENT...].
some() {
    awk -F'\t' -v OFS='\t' -v program="$1" -v name="$2" -v arguments="$(printf '\t%s' "${@:3}")" \
        '$1 == program { $1 = name; print $0 arguments }' "$list"
}
some app/system app/cards --ignored --test-threads=1 cards:: >"$logs/cards-list"
some app/system app/guests --ignored guests:: >"$logs/guests-list"
some xdp/lib xdp/programs every_program_of_every_object_loads >"$logs/newest-list"
{
    cat "$logs/newest-list"
    some app/system app/lab --ignored report::lab_has_a_result_in_each_row
} >"$logs/6.1-list"
{
    cat "$logs/6.1-list"
    some app/system app/cards --ignored --test-threads=1 cards::what cards::a_load
} >"$logs/6.12-list"
runner=("${run[@]:0:${#run[@]}-1}")
run_cards=("${runner[@]}" "$logs/cards-list")
run_guests=("${runner[@]}" "$logs/guests-list")

sums=
rows=
programs=
failed=0
commit=$(git -C "$scripts" describe --always --dirty)

# Runs a command in a kernel. $release and $version of the kernel, and $sum: what came of it.
inside() {
    local kernel=$1 log=$2 start=$SECONDS code
    shift 2
    "$scripts/guest.sh" "$kernel" "$@" 2>&1 | tee "$log"
    code=${PIPESTATUS[0]}
    release=$(sed -n 's/^guest: Linux //p' "$log")
    version=$(sed -n 's/^\([0-9.]*[0-9]\).*/\1/p' <<<"$release")
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

# A fact that the tests printed: fact CARD|LAB WHAT.
fact() {
    tr -d '\r' <"$log" | sed -n "s/^$1 $2: //p" | tail -n 1
}

# How many tests passed, of how many that ran.
passed() {
    awk '/ passed, / { $0 = $1 " of " $1 + $3 } { print }' <<<"$sum"
}

# A row of the table of cards.
row() {
    local what
    [[ $sum != SKIP* ]] || return
    rows+="| ${version%.*} | $of "
    for what in mode queues multi-buffer lane 'live frames' jumbo 'MTU 1400' '1 queues' refused; do
        what=$(fact CARD "$what")
        rows+="| ${what:--} "
    done
    rows+="| $(passed) | $commit |"$'\n'
}

# A row of the table of programs.
row_of_programs() {
    local what loaded
    [[ $sum != SKIP* ]] || return
    # A kernel that died, or was too slow, has said nothing.
    case $(tr -d '\r' <"$log" | grep -a 'every_program_of_every_object_loads \.\.\. ') in
    *ok) loaded=all ;;
    *FAILED) loaded=refused ;;
    *) loaded=- ;;
    esac
    programs+="| ${version%.*} | programs | $release | $loaded "
    for what in 'kernel veth' 'parshall veth' 'parshall memif'; do
        what=$(fact LAB "$what")
        programs+="| ${what:--} "
    done
    programs+="| $commit |"$'\n'
}

# Puts rows from standard input into the table of docs/kernels.md that begins with this heading.
# The rows of a kernel and a card take the places of those that there were.
put() {
    local page=$scripts/../docs/kernels.md new
    new=$(mktemp)
    awk -F' *\\| *' -v heading="$1" -v rows="$(cat)" '
        function rest(    n) { for (n = 1; n <= count; n++) if (!(n in put)) { print row[n]; put[n] } inside = 0 }
        BEGIN { count = split(rows, row, "\n"); for (n = 1; n <= count; n++) { split(row[n], word); at[word[2], word[3]] = n } }
        inside && !/^\|/ { rest() }
        inside && ($2, $3) in at { n = at[$2, $3]; print row[n]; put[n]; next }
        { print }
        index($0, heading) == 1 { inside = 1 }
        END { if (inside) rest() }' "$page" >"$new"
    cat "$new" >"$page"
    rm -f "$new"
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
if [ $part = quick ]; then
    # A lab of under a minute takes some in emulated time.
    export PARSHALL_GUEST_LIMIT=${PARSHALL_GUEST_LIMIT:-420}
    for name in "${kernels[@]}"; do
        echo "== Linux $name, quick"
        of=quick
        log=$logs/$name-quick.log
        card=
        [ "$name" != 6.12 ] || card=virtio-net-pci
        PARSHALL_GUEST_CARDS=$card PARSHALL_GUEST_MEMORY=4G inside "$name" "$log" "${runner[@]}" "$logs/$name-list"
        row_of_programs
    done
fi
if [ $part = all ] || [ $part = cards ]; then
    export PARSHALL_GUEST_LIMIT=${PARSHALL_GUEST_LIMIT:-1800}
    for name in "${kernels[@]}"; do
        for of in "${cards[@]}"; do
            echo "== Linux $name, $of"
            log=$logs/$name-$of.log
            PARSHALL_GUEST_CARDS=$of PARSHALL_GUEST_MEMORY=2G inside "$name" "$log" "${run_cards[@]}"
            row
        done
    done
fi
cards_table='| Linux | card | mode |'
programs_table='| Linux | | release |'
if [ -n "$write" ]; then
    [ -z "$rows" ] || put "$cards_table" <<<"${rows%$'\n'}"
    [ -z "$programs" ] || put "$programs_table" <<<"${programs%$'\n'}"
fi
printf '\n%s%s\n%s' "$rows" "$programs" "$sums"
exit $failed
