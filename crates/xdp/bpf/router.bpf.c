/* The router's side of an AF_XDP port: what the router forwards goes to the socket, the rest to the kernel.
 *
 * The kernel keeps: everything while the interface is down, frames that are not for its own address, everything that is not untagged
 * IPv4, IPv4 with options (the kernel is the slow path), multicast and limited broadcast, what a DHCP server
 * answers to the interface's own client (its destination is an address that nobody has yet), and destinations
 * whose next-hop group says local or punt. All else goes to the graph, broken packets too, because the graph
 * counts them.
 *
 * Every port runs its own instance, with its own sockets and counters; the tables are shared. */
#include "common.bpf.h"
#include "tables.h"

#include <linux/in.h>

#define DHCP_CLIENT 68
#define DHCP_CHADDR 28

/* One cache line of a table. */
struct line {
	__u32 word[LINE_WORDS];
};

struct counters {
	__u64 passed;
	__u64 redirected;
};

/* Number of the port's interface; written by userspace before the program is anywhere. */
volatile __u64 interface;

/* Sizes of the tables are the loader's, it brings the maps. */
struct map_def SEC("maps") ip4_first = {
	.type = BPF_MAP_TYPE_ARRAY,
	.key_size = 4,
	.value_size = sizeof(struct line),
	.max_entries = 1 << 20,
	.map_flags = BPF_F_MMAPABLE,
};

struct map_def SEC("maps") ip4_second = {
	.type = BPF_MAP_TYPE_ARRAY,
	.key_size = 4,
	.value_size = sizeof(struct line),
	.max_entries = 16,
	.map_flags = BPF_F_MMAPABLE,
};

struct map_def SEC("maps") interfaces = {
	.type = BPF_MAP_TYPE_ARRAY,
	.key_size = 4,
	.value_size = sizeof(struct line),
	.max_entries = INTERFACES,
	.map_flags = BPF_F_MMAPABLE,
};

struct map_def SEC("maps") xsks = {
	.type = BPF_MAP_TYPE_XSKMAP,
	.key_size = 4,
	.value_size = 4,
	.max_entries = 256,
};

struct map_def SEC("maps") counters = {
	.type = BPF_MAP_TYPE_PERCPU_ARRAY,
	.key_size = 4,
	.value_size = sizeof(struct counters),
	.max_entries = 1,
};

/* One 32-bit load, whatever the compiler thinks of it: userspace changes the word at any time. */
static __always_inline __u32 word(void *map, __u32 line, __u32 at)
{
	struct line *l = bpf_map_lookup_elem(map, &line);

	return l ? *(volatile __u32 *)&l->word[at & (LINE_WORDS - 1)] : 0;
}

/* DIR-24-8: bits 31..8 of the address choose the entry, which may name a group of 256 for bits 7..0. */
static __always_inline __u32 group_of(__u32 dst)
{
	__u32 entry = word(&ip4_first, dst >> 12, dst >> 8);

	if (entry & ENTRY_EXT)
		entry = word(&ip4_second, ((entry & ~ENTRY_EXT) << 4) | ((dst >> 4) & 15), dst);
	return entry & ENTRY_GROUP;
}

static __always_inline int is_group(__u32 dst)
{
	return dst >> 28 == 0xe || dst == ~0u;
}

/* Ethernet address at p in the low 48 bits, the first byte lowest, as in an interface's line. */
static __always_inline __u64 mac(const __u8 *p)
{
	return LOAD32(p) | (__u64)LOAD16(p + 4) << 32;
}

/* RFC 2131: UDP to port 68, the interface's own address as the client's hardware address. */
static __always_inline int is_dhcp_reply(const __u8 *ip, const __u8 *end, __u64 own)
{
	const __u8 *udp = ip + IP4_LEN, *client = udp + UDP_LEN + DHCP_CHADDR;

	return ip[9] == IPPROTO_UDP && client + 6 <= end && LOAD16(udp + 2) == bpf_htons(DHCP_CLIENT) && mac(client) == own;
}

static __always_inline int is_kernels(struct xdp_md *ctx)
{
	__u32 number = interface, start = word(&interfaces, number, INTERFACE_MAC_WORD);
	/* Mode and end of the address are one word. */
	__u32 end_and_mode = word(&interfaces, number, INTERFACE_MODE_WORD), mode = INTERFACE_MODE(end_and_mode);
	__u64 own = start | (__u64)INTERFACE_MAC_END(end_and_mode) << 32;
	const __u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const __u8 *ip = data + ETH_LEN;
	__u32 dst, group;

	if (mode == MODE_L2)
		return 0;
	if (mode != MODE_ROUTED && mode != MODE_UNADDRESSED)
		return 1;
	if (ip > end)
		return 1;
	if (mac(data) != own)
		return 1;
	if (LOAD16(data + 12) != bpf_htons(ETHERTYPE_IP4))
		return 1;
	if (ip + IP4_LEN > end || ip[0] >> 4 != IP4_VERSION)
		return 0;
	if ((ip[0] & 15) > IP4_IHL)
		return 1;
	dst = bpf_ntohl(LOAD32(ip + 16));
	if (is_group(dst) || is_dhcp_reply(ip, end, own))
		return 1;
	group = group_of(dst);
	return group == GROUP_LOCAL || group == GROUP_PUNT;
}

SEC("xdp.frags")
int parshall_router(struct xdp_md *ctx)
{
	__u32 key = 0;
	struct counters *c = bpf_map_lookup_elem(&counters, &key);
	int verdict = XDP_PASS;

	if (!c)
		return XDP_ABORTED;
	if (!is_kernels(ctx))
		/* No socket on this queue: the kernel forwards. */
		verdict = bpf_redirect_map(&xsks, ctx->rx_queue_index, XDP_PASS);
	if (verdict == XDP_PASS)
		c->passed++;
	else
		c->redirected++;
	return verdict;
}

char _license[] SEC("license") = "Apache-2.0";
