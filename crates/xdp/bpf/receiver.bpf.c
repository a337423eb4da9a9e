/* The program of a port that only receives: every frame goes to the AF_XDP socket of its queue, whatever it is; where there
 * is no socket, the kernel gets it. */
#include "common.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, SOCKETS);
} xsks SEC(".maps");

SEC("xdp.frags")
int parshall_recv(struct xdp_md *ctx)
{
	return bpf_redirect_map(&xsks, ctx->rx_queue_index, XDP_PASS);
}

char _license[] SEC("license") = "Apache-2.0";
