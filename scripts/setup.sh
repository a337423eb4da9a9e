#!/bin/sh
# Installs what a make target needs from Debian's packages, and says what for. Quick if everything
# is there.
# Usage: scripts/setup.sh build|lab|test|kernels
set -eu

what=${1:-build}

# package:program or file that shows it is there:why
build="gcc:gcc:linker of Rust programs
libc6-dev:/usr/include/linux/if_xdp.h:C library and kernel headers
make:make:the targets
pkg-config:pkg-config:finds libraries"
lab="iproute2:ip:network namespaces and links
ethtool:ethtool:offloads of the links
util-linux:taskset:processes on processors of their own"
test="clang:clang:compiles the XDP programs again, to compare them with those in the tree
llvm:llvm-strip:makes them small
libbpf-dev:/usr/include/bpf/bpf_helpers.h:their headers
bird2:bird:a routing daemon beside the router
bird2:birdc:its client
frr:/usr/lib/frr/zebra:another one
frr:/usr/lib/frr/bgpd:another one
frr:/usr/lib/frr/ospfd:another one
dpdk-dev:dpdk-testpmd:memif peer that is not ours
librte-meta-net:/usr/lib/*/dpdk/pmds-*/librte_net_memif.so*:its memif driver
librte-meta-mempool:/usr/lib/*/dpdk/pmds-*/librte_mempool_ring.so*:its packet memory
python3:python3:runs it, and the profiles of T-Rex that are programs
python3-scapy:/usr/lib/python3/dist-packages/scapy:a parser of packets that is not ours
tcpdump:tcpdump:looks at the host's side of an interface
iperf3:iperf3:real TCP
nftables:nft:a firewall of the host
iputils-ping:ping:a host that asks for an answer
chromium:chromium:opens the report and the live page
gdb:gdb:stacks of a test program that does not end
bpftool:bpftool:BPF programs, maps and links that tests leave behind
ministat:ministat:compares measurements, and is not ours
procps:pgrep:processes that they leave behind
util-linux:unshare:a network namespace without a name
util-linux:nsenter:the mounts of another process"
kernels="qemu-system-x86:qemu-system-x86_64:a machine for another kernel
busybox-static:/usr/share/doc/busybox-static:its first programs
cpio:cpio:its first file system
kmod:modprobe:which modules it needs
xz-utils:xz:they may be compressed by this
zstd:zstd:or by this
debian-archive-keyring:/usr/share/keyrings/debian-archive-keyring.gpg:whether the kernels are Debian's
iproute2:ip:its links
util-linux:setpriv:a guest that ends with its starter"

case $what in
build) wanted=$build ;;
lab) wanted="$build
$lab" ;;
test) wanted="$build
$lab
$test" ;;
kernels) wanted=$kernels ;;
*)
    echo "usage: scripts/setup.sh build|lab|test|kernels" >&2
    exit 2
    ;;
esac

there() {
    case $1 in
    # shellcheck disable=SC2086 # a pattern
    /*) ls $1 >/dev/null 2>&1 ;;
    *) PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null 2>&1 ;;
    esac
}

missing=
list=$(mktemp)
trap 'rm -f "$list"' EXIT
printf '%s\n' "$wanted" >"$list"
while IFS=: read -r package shown why; do
    if ! there "$shown"; then
        [ -n "$missing" ] || echo "Installing by apt:"
        printf '  %-12s %s\n' "$package" "$why"
        missing="$missing $package"
    fi
done <"$list"

if [ -n "$missing" ]; then
    if ! command -v apt-get >/dev/null; then
        echo "setup: no apt-get here; install these by your system's own means:$missing" >&2
        exit 1
    fi
    sudo=
    if [ "$(id -u)" != 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "setup: not root and no sudo; as root: apt-get install$missing" >&2
            exit 1
        fi
        sudo=sudo
    fi
    # Routing daemons are wanted as programs for the tests, not as services of this machine.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e $policy ]; then
        printf '#!/bin/sh\nexit 101\n' | $sudo tee $policy >/dev/null
        $sudo chmod 755 $policy
        trap 'rm -f "$list"; $sudo rm -f $policy' EXIT
    fi
    $sudo apt-get update -qq
    # shellcheck disable=SC2086 # a list of words
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
    if command -v systemctl >/dev/null; then
        for service in bird frr; do
            case " $missing " in *" $service"*) $sudo systemctl disable --quiet "$service" 2>/dev/null || true ;; esac
        done
    fi
fi

if ! command -v cargo >/dev/null; then
    cat >&2 <<'EOF'
setup: cargo is missing. Install Rust for this user (Debian's own is too old), then open a new shell:
  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh
EOF
    exit 1
fi
