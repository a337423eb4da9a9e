/* The program of a port that only receives: every frame goes to the AF_XDP socket of its queue,
 * whatever it is; where there is no socket, the kernel gets it. */
#include "common.bpf.h"

AF_XDP_SOCKETS(xsks);

SEC("xdp.frags")
int parshall_recv(struct xdp_md *ctx)
{
	return bpf_redirect_map(&xsks, ctx->rx_queue_index, XDP_PASS);
}

char _license[] SEC("license") = "Apache-2.0";
