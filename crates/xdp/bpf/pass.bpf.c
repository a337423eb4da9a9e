/* Lets every packet pass: 48 of these keep the kernel's XDP dispatcher full while tests run
 * (crates/testbed/src/dispatcher.rs). */
#include "common.bpf.h"

SEC("xdp")
int parshall_full(struct xdp_md *ctx)
{
	return XDP_PASS;
}

char _license[] SEC("license") = "Apache-2.0";
