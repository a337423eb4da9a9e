// A program that lets every packet pass: 48 of these keep the kernel's XDP dispatcher full
// (dispatcher.rs).
#include <linux/bpf.h>

__attribute__((section("xdp"), used)) int parshall_full(struct xdp_md *packet) {
    (void)packet;
    return XDP_PASS;
}

char _license[] __attribute__((section("license"), used)) = "Apache-2.0";
