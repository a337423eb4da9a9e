#!/bin/bash
# Runs a command under another kernel, on this machine's own files: QEMU boots a Debian kernel whose
# root is this machine's, read only, with a layer of memory above it. What the command writes is
# gone with the guest.
#
# Usage: scripts/guest.sh KERNEL COMMAND [ARGUMENT...]
#   KERNEL   6.1 (Debian 12), 6.12 (Debian 13) or newest (Debian unstable)
# Exit code: that of the command; 125 if the kernel died (its last words are printed) or did not
# come up; 124 if the guest was ended after PARSHALL_GUEST_LIMIT seconds (3600); 77 if there can be
# no such guest here, with a line `guest: SKIP: why`. The guest ends with this script, even by
# SIGKILL.
#
# Kernels are fetched as Debian packages and unpacked below
# ${XDG_CACHE_HOME:-~/.cache}/parshall/kernels, never installed. The processors are emulated (KVM is
# used where PARSHALL_GUEST_ACCEL=kvm asks for it), so time is slow there: tests multiply their
# limits by PARSHALL_PATIENCE, 8 if it is not set. The command gets all variables that begin with
# PARSHALL_, and RUST_BACKTRACE. PARSHALL_GUEST_CPUS (2) and PARSHALL_GUEST_MEMORY (8G) are the
# guest's size.
#
# PARSHALL_GUEST_CARDS=MODEL[,OPTION...][:QUEUES] gives the guest four network cards on two links:
# on each one of this model of QEMU's (virtio-net-pci, e1000e, vmxnet3 ...), with these options of
# its device, for a router, r0 and r1, and one for its host, h0 and h1. Their addresses are those of
# the tests' topology (tests/harness/topology.rs). The links are bridges in a network namespace of
# QEMU's own.
set -euo pipefail

accel=${PARSHALL_GUEST_ACCEL:-tcg,thread=multi}
cpus=${PARSHALL_GUEST_CPUS:-2}
memory=${PARSHALL_GUEST_MEMORY:-8G}
limit=${PARSHALL_GUEST_LIMIT:-3600}
cards=${PARSHALL_GUEST_CARDS:-}
wires=${PARSHALL_GUEST_WIRES:-}
export PARSHALL_PATIENCE=${PARSHALL_PATIENCE:-8}
PATH=$PATH:/usr/sbin:/sbin
scripts=$(cd "$(dirname "$0")" && pwd)

say() {
    echo "guest: $*" >&2
}

usage() {
    sed -n '2,/^[^#]/ s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

# Runs apt-get or apt-cache with lists of the suite's own, so that the machine's stay as they are.
suite_apt() {
    local program=$1
    shift
    "$program" -o "Dir::Etc::SourceList=$cache/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o "Dir::State::Lists=$cache/lists" -o "Dir::Cache=$cache/apt" -o APT::Sandbox::User=root "$@"
}

# Where this machine gets its Debian packages.
mirror() {
    # shellcheck disable=SC2016 # apt's own variable
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' |
        awk 'NR == 1 { uri = $0 } END { print uri ? uri : "http://deb.debian.org/debian/" }'
}

# Unpacks a version of the kernel below $cache/root.
unpack() {
    local version=$1
    say "fetching the kernel $version"
    rm -rf "$cache/root" "$cache/packages" "$cache/version"
    mkdir -p "$cache/packages" "$cache/root"
    # From 7 on the kernel and its modules are packages of their own, and the image's package is
    # empty.
    (
        cd "$cache/packages"
        suite_apt apt-get -qq download "linux-binary-$version" "linux-modules-$version" 2>/dev/null ||
            suite_apt apt-get -qq download "linux-image-$version"
    )
    for package in "$cache"/packages/*.deb; do dpkg -x "$package" "$cache/root"; done
    rm -rf "$cache/packages"
    echo "$version" >"$cache/version"
}

# Fetches the suite's kernel; looks for a newer one once a day.
fetch() {
    local image
    if [ -e "$cache/version" ] && [ -n "$(find "$cache/fetched" -mtime -1 2>/dev/null)" ]; then
        return
    fi
    mkdir -p "$cache/lists/partial" "$cache/apt/archives/partial"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(mirror) $suite main" >"$cache/sources.list"
    suite_apt apt-get -qq update || return
    image=$(suite_apt apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: linux-image-\([0-9].*\)/\1/p')
    [ -n "$image" ] || return
    if [ "$image" != "$(cat "$cache/version" 2>/dev/null)" ]; then
        unpack "$image" || return
    fi
    touch "$cache/fetched"
}

# Makes a kernel ready: $version, $kernel, $modules.
prepare() {
    mkdir -p "$cache"
    # Only one fetches; the others use what it fetched.
    exec 9>"$cache/lock"
    flock 9
    if ! fetch; then
        [ -e "$cache/version" ] || {
            say "SKIP: the kernel of $suite cannot be fetched"
            exit 77
        }
        say "no newer kernel of $suite could be looked for"
    fi
    version=$(cat "$cache/version")
    # Before 7 the modules are below lib, later below usr/lib: both are found below lib.
    [ -e "$cache/root/lib" ] || ln -s usr/lib "$cache/root/lib"
    modules=$cache/root/lib/modules/$version
    [ -e "$modules/modules.dep" ] || depmod -b "$cache/root" "$version"
    exec 9>&-
    kernel=$cache/root/boot/vmlinuz-$version
    [ -e "$kernel" ] || kernel=$modules/vmlinuz
}

# Puts a module and all that it needs into the first file system, numbered in the order of loading.
# What the kernel has built in is not named.
module() {
    local file name
    while read -r file; do
        name=$(basename "$file")
        name=${name%%.ko*}.ko
        ! compgen -G "$work/root/modules/*-$name" >/dev/null || continue
        name=$work/root/modules/$((number++))-$name
        case $file in
        *.xz) xz -dc "$file" ;;
        *.zst) zstd -qdc "$file" ;;
        *.gz) gzip -dc "$file" ;;
        *) cat "$file" ;;
        esac >"$name"
    done < <(modprobe --dirname "$cache/root" --set-version "$version" --show-depends "$1" 2>/dev/null |
        sed -n 's/^insmod \([^ ]*\).*/\1/p')
}

# The command as a file that the guest runs in this directory.
write_command() {
    printf 'cd %q || exit\n' "$PWD"
    printf 'export %q\n' "PATH=$PATH" "HOME=$HOME"
    env -0 | while IFS= read -r -d '' variable; do
        case $variable in PARSHALL_* | RUST_BACKTRACE=*) printf 'export %q\n' "$variable" ;; esac
    done
    printf 'exec'
    printf ' %q' "$@"
    echo
}

# The first program: mounts the machine's files and starts the command on the first serial port. Its
# own output is the kernel's console, the second one.
write_init() {
    cat <<'INIT'
#!/bin/busybox sh
b=/bin/busybox
end() { echo; echo "guest: $*"; $b sync; $b poweroff -f; }
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
for number in $($b ls /modules | $b sort -n); do $b insmod "/modules/$number" || echo "guest: $number"; done
$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=loose,ro host /host || end "no file system of the host"
$b mount -t tmpfs tmpfs /up && $b mkdir /up/upper /up/work
$b mount -t overlay -o lowerdir=/host,upperdir=/up/upper,workdir=/up/work overlay /new || end "no overlay"
cd /new
$b mount -t proc proc proc
$b mount -t sysfs sys sys
$b mount -t devtmpfs dev dev
$b mkdir -p dev/pts dev/shm dev/net
$b mount -t devpts devpts dev/pts
for d in dev/shm run; do $b mount -t tmpfs -o mode=1777 tmpfs $d; done
$b mkdir -p run/netns run/lock
$b mount -t cgroup2 cgroup sys/fs/cgroup
$b mount -t bpf bpf sys/fs/bpf
$b mount -t debugfs debug sys/kernel/debug
$b mount -t tracefs tracefs sys/kernel/tracing
release=$($b uname -r)
$b mkdir -p lib/modules
[ -e "lib/modules/$release" ] || $b ln -s "$($b cat /modules.path)" "lib/modules/$release"
$b cp /command run/command
$b chroot . /bin/sh -c 'PATH=$PATH:/usr/sbin:/sbin; ip link set lo up
    modprobe tun
    for card in /sys/bus/pci/devices/*; do
        case $(cat "$card/class") in 0x02*) modprobe -q "$(cat "$card/modalias")" ;; esac
    done
    for card in /sys/bus/virtio/devices/*/modalias; do modprobe -q "$(cat "$card")"; done
    for card in /sys/class/net/*; do
        case $(cat "$card/address") in
        02:70:73:01:00:01) name=r0 ;;
        02:70:73:01:00:02) name=h0 ;;
        02:70:73:01:01:01) name=r1 ;;
        02:70:73:01:01:02) name=h1 ;;
        *) continue ;;
        esac
        ip link set "${card##*/}" name "$name"
    done'
echo "guest: up"
$b stty -F dev/ttyS0 115200 -opost -echo
$b chroot . /bin/bash /run/command <dev/null >dev/ttyS0 2>&1
code=$?
# Waits until all is sent.
$b stty -F dev/ttyS0 opost
end "exit $code"
INIT
}

write_initramfs() {
    local number=10
    mkdir -p "$work/root"/{bin,sbin,host,proc,sys,dev,up,new,modules}
    cp "$(command -v busybox)" "$work/root/bin/busybox"
    for name in 9pnet_virtio 9p overlay virtio_pci; do module "$name"; done
    write_command "$@" >"$work/root/command"
    write_init >"$work/root/init"
    # What the kernel calls for a module that it needs.
    printf '#!/bin/busybox sh\nexec /bin/busybox chroot /new /sbin/modprobe "$@"\n' >"$work/root/sbin/modprobe"
    chmod +x "$work/root/init" "$work/root/sbin/modprobe"
    echo "$modules" >"$work/root/modules.path"
    (cd "$work/root" && find . | cpio --quiet -o -H newc | gzip -1) >"$work/initramfs"
}

# QEMU's arguments for the cards: $links.
plug() {
    local model=${cards%:*} queues=1 link wire of_card=
    # Such a card leaves nothing unfinished to the wire.
    local finished=csum=off,gso=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off
    links=()
    for wire in $wires; do
        local mac local remote
        IFS=, read -r mac local remote <<<"$wire"
        links+=(-netdev "dgram,id=wire${#links[@]},local.type=unix,local.path=$local,remote.type=unix,remote.path=$remote"
            -device "virtio-net-pci,netdev=wire${#links[@]},mac=$mac,$finished")
    done
    [ -n "$cards" ] || return 0
    case $cards in *:*) queues=${cards#*:} ;; esac
    if ! qemu-system-x86_64 -device help 2>/dev/null | grep -q "name \"${model%%,*}\""; then
        say "SKIP: $(qemu-system-x86_64 --version | sed -n '1s/ (.*//p') has no card ${model%%,*}"
        exit 77
    fi
    [ "$queues" = 1 ] || of_card=,mq=on,vectors=$((2 * queues + 2))
    for link in 0 1; do
        links+=(-netdev "tap,id=card$link,ifname=card$link,script=no,downscript=no,queues=$queues"
            -device "$model,netdev=card$link,mac=02:70:73:01:0$link:01$of_card"
            -netdev "tap,id=host$link,ifname=host$link,script=no,downscript=no"
            -device "virtio-net-pci,netdev=host$link,mac=02:70:73:01:0$link:02,$finished")
    done
    write_links "$queues" >"$work/links"
}

# Makes the links and runs QEMU, which is the script's arguments.
write_links() {
    local several=
    [ "$1" = 1 ] || several=multi_queue
    cat <<LINKS
set -e
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
for link in 0 1; do
    ip link add link\$link type bridge forward_delay 0 stp_state 0 mcast_snooping 0
    ip tuntap add card\$link mode tap $several
    ip tuntap add host\$link mode tap
    for port in card\$link host\$link; do ip link set \$port mtu 16000 master link\$link up; done
    ip link set link\$link up
done
exec "\$@"
LINKS
}

# Runs the guest; the command's output is this script's, the console is $work/console. An error of
# the kernel ends the guest with its trace on the console.
boot() {
    local arguments=(-M q35 -accel "$accel" -cpu 'max,la57=off' -smp "$cpus" -m "$memory" -nodefaults -display none
        -serial stdio -serial "file:$work/console" -no-reboot
        -virtfs 'local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap'
        -kernel "$kernel" -initrd "$work/initramfs"
        -append "console=ttyS1,115200 loglevel=5 oops=panic panic=-1 mitigations=off"
        "${links[@]}")
    local beside=()
    if [ -n "$cards" ]; then
        beside=(unshare --net)
        [ "$(id -u)" = 0 ] || beside+=(--map-root-user)
        beside+=(-- bash "$work/links")
    fi
    # In the background, so that a signal to this script is seen at once.
    setpriv --pdeathsig KILL -- timeout --kill-after=10 "$limit" "${beside[@]}" \
        setpriv --pdeathsig KILL -- qemu-system-x86_64 "${arguments[@]}" </dev/null &
    guest=$!
    wait "$guest"
}

# Where the kernel's last error begins, or else the end of what it said.
last_words() {
    say "the last words of $version:"
    tr -d '\r' <"$work/console" | awk '
        { line[NR] = $0 }
        !error && /Oops|BUG:|Kernel panic|general protection|unable to handle/ { error = NR }
        END { for (n = error ? error - 5 : NR - 30; n <= NR; n++) if (n > 0) print line[n] }' >&2
}

# What to end with, from how QEMU ended and what the console says.
verdict() {
    local code
    grep -aE 'WARNING: (CPU|possible)|INFO: (task|rcu)|soft lockup' "$work/console" | tr -d '\r' >&2 || true
    code=$(tr -d '\r' <"$work/console" | sed -n 's/^guest: exit \([0-9]*\)$/\1/p' | tail -n 1)
    if [ -n "$code" ]; then
        exit "$code"
    fi
    last_words
    if [ "$1" = 124 ]; then
        say "$version was ended after $limit s"
        exit 124
    fi
    say "$version died"
    exit 125
}

[ $# -ge 2 ] || usage
case $1 in
6.1) suite=bookworm ;;
6.12) suite=trixie ;;
newest) suite=sid ;;
*) usage ;;
esac
shift
cache=${XDG_CACHE_HOME:-$HOME/.cache}/parshall/kernels/$suite

"$scripts/setup.sh" kernels >&2 || {
    say "SKIP: QEMU, or what a guest needs beside it, cannot be installed"
    exit 77
}
prepare
guest=
work=$(mktemp -d)
trap '[ -z "$guest" ] || kill "$guest" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
write_initramfs "$@"
plug
say "Linux $version"
status=0
boot || status=$?
guest=
verdict "$status"
