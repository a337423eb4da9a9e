/* The router's program on a device: it forwards what it can, gives what the router must do to the
 * graph, and leaves the rest to the kernel.
 *
 * The kernel keeps: everything while the interface is down, frames that are not for its own
 * address, everything that is not untagged IPv4, IPv4 with options (the kernel is the slow path),
 * multicast and limited broadcast, what a DHCP server answers to the interface's own client (its
 * destination is an address that nobody has yet), and destinations whose next-hop group says local
 * or punt.
 *
 * All else is the router's. Where the interface's line says so, the program forwards as the graph's
 * stages ip4-input, ip4-lookup and ip4-rewrite do, out of the same tables; whatever needs more than
 * that, and all that is broken in another way than its checksum, goes to the graph by the AF_XDP
 * socket of the queue.
 *
 * Every port runs its own instance, with its own sockets; tables, counters and ways out are
 * shared. */
#include "common.bpf.h"
#include "tables.h"

#include <linux/in.h>

#define DHCP_CLIENT 68
#define DHCP_CHADDR 28
/* More Fragments and the offset, in the fragment word. */
#define FRAGMENT 0x3fff
/* Shortest Ethernet frame without its checksum: shorter packets are padded to it. */
#define SHORTEST 60
/* One packet in this many is looked at for an unfinished checksum. */
#define SAMPLE 64

/* One cache line of a table. */
struct line {
	__u32 word[LINE_WORDS];
};

/* Why the program drops; `DROPS` of router.rs in its order. */
enum drop {
	DROP_BAD_CHECKSUM,
	DROP_BLACKHOLE,
	DROP_GONE,
	DROPS,
};

/* Of one interface; `Counters` of router.rs. */
struct counters {
	/* Left to the kernel, and given to the graph. */
	__u64 passed;
	__u64 redirected;
	/* Forwarded or dropped here. */
	__u64 rx_packets;
	__u64 rx_bytes;
	/* Sent by it, wherever they came in. */
	__u64 tx_packets;
	__u64 tx_bytes;
	__u64 drops[DROPS];
};

/* Number of the port's interface; written by userspace before the program is anywhere. */
volatile __u64 interface;

/* A table, which userspace writes as memory. Its size is the loader's, it brings the map. */
#define TABLE(name, lines)                            \
	struct {                                      \
		__uint(type, BPF_MAP_TYPE_ARRAY);     \
		__type(key, __u32);                   \
		__type(value, struct line);           \
		__uint(max_entries, lines);           \
		__uint(map_flags, BPF_F_MMAPABLE);    \
	} name SEC(".maps")

TABLE(ip4_first, 1 << 20);
TABLE(ip4_second, 16);
TABLE(nexthop_groups, 16);
TABLE(adjacencies, 16);
TABLE(interfaces, INTERFACES);

AF_XDP_SOCKETS(xsks);

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct counters);
	__uint(max_entries, INTERFACES);
} counters SEC(".maps");

/* The devices to send by, by number of the interface. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, INTERFACES);
} egress SEC(".maps");

/* One 32-bit load, whatever the compiler thinks of it: userspace changes the word at any time. */
static __always_inline __u32 load(struct line *l, __u32 at)
{
	return *(volatile __u32 *)&l->word[at & (LINE_WORDS - 1)];
}

static __always_inline __u32 word(void *map, __u32 line, __u32 at)
{
	struct line *l = bpf_map_lookup_elem(map, &line);

	return l ? load(l, at) : 0;
}

/* DIR-24-8: bits 31..8 of the address choose the entry, which may name a group of 256 for bits
 * 7..0. */
static __always_inline __u32 entry_of(__u32 dst)
{
	__u32 entry = word(&ip4_first, dst >> 12, dst >> 8);

	if (entry & ENTRY_EXT)
		entry = word(&ip4_second, ((entry & ~ENTRY_EXT) << 4) | ((dst >> 4) & 15), dst);
	return entry;
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

/* A number of at most 64 bits, folded to the 16 with the same ones' complement sum (RFC 1071). */
static __always_inline __u32 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* One packet on its way through the program. */
struct packet {
	struct xdp_md *ctx;
	__u8 *data;
	const __u8 *end;
	struct counters *counters;
	/* Of the whole frame, in bytes. */
	__u32 len;
	/* IPv4 total length. */
	__u32 total;
	/* FIB entry of the destination. */
	__u32 entry;
};

static __always_inline int to_kernel(const struct packet *p)
{
	p->counters->passed++;
	return XDP_PASS;
}

static __always_inline int to_graph(const struct packet *p)
{
	/* No socket on this queue: the kernel forwards. */
	int verdict = bpf_redirect_map(&xsks, p->ctx->rx_queue_index, XDP_PASS);

	if (verdict == XDP_PASS)
		return to_kernel(p);
	p->counters->redirected++;
	return verdict;
}

static __always_inline void received(const struct packet *p)
{
	p->counters->rx_packets++;
	p->counters->rx_bytes += p->len;
}

static __always_inline int drop(const struct packet *p, enum drop why)
{
	received(p);
	p->counters->drops[why]++;
	return XDP_DROP;
}

/* The header is that of an ordinary packet, its checksum aside. Its first 20 bytes are there. */
static __always_inline int is_plain(const struct packet *p)
{
	const __u8 *ip = p->data + ETH_LEN;
	__u32 framed = ETH_LEN + p->total;

	if (ip[0] != (IP4_VERSION << 4 | IP4_IHL) || ip[8] <= 1)
		return 0;
	if (p->total < IP4_LEN || framed > p->len || (framed < p->len && p->len > SHORTEST))
		return 0;
	/* Addresses that no packet on a wire may have: first byte 0, 127 or above 223. */
	return (__u8)(ip[12] - 1) < 223 && ip[12] != 127 && (__u8)(ip[16] - 1) < 223 && ip[16] != 127;
}

/* The TCP or UDP checksum field holds the sum of the pseudo-header alone: the sender left the rest
 * to hardware that never saw the packet (CHECKSUM_PARTIAL), or it is right by chance. */
static __always_inline int looks_unfinished(const struct packet *p)
{
	const __u8 *ip = p->data + ETH_LEN, *field;
	__u64 sum = (__u64)LOAD32(ip + 12) + LOAD32(ip + 16) + bpf_htons(ip[9]) + bpf_htons(p->total - IP4_LEN);

	if (LOAD16(ip + 6) & bpf_htons(FRAGMENT))
		return 0;
	if (ip[9] == IPPROTO_TCP)
		field = ip + IP4_LEN + 16;
	else if (ip[9] == IPPROTO_UDP)
		field = ip + IP4_LEN + 6;
	else
		return 0;
	return field + 2 <= p->end && LOAD16(field) == fold(sum);
}

/* tables::hash::flow5. False if the ports are not there. */
static __always_inline int flow_hash(const struct packet *p, __u32 *hash)
{
	const __u8 *ip = p->data + ETH_LEN;
	__u64 a = (__u64)bpf_ntohl(LOAD32(ip + 12)) << 32 | bpf_ntohl(LOAD32(ip + 16));
	__u64 b = (__u64)ip[9] << 32, h;
	int has_ports = ip[9] == IPPROTO_TCP || ip[9] == IPPROTO_UDP || ip[9] == IPPROTO_SCTP || ip[9] == IPPROTO_UDPLITE;

	if (has_ports && !(LOAD16(ip + 6) & bpf_htons(FRAGMENT))) {
		if (ip + IP4_LEN + 4 > p->end)
			return 0;
		b |= bpf_ntohl(LOAD32(ip + IP4_LEN));
	}
	h = (a ^ b * 0xd6e8feb86659fd93ull) * 0x9e3779b97f4a7c15ull;
	h = (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
	*hash = h >> 32;
	return 1;
}

/* ip4-rewrite: sends the packet by its adjacency, if there is nothing else to be done. */
static __always_inline int rewrite(const struct packet *p, __u32 number)
{
	struct line *adjacency = bpf_map_lookup_elem(&adjacencies, &number);
	__u8 *ip = p->data + ETH_LEN;
	__u32 tx_if, lane, sum;
	struct counters *sent;

	/* Of any other kind than rewrite the fast MTU is 0. */
	if (!adjacency || p->total > ADJACENCY_FAST_MTU(load(adjacency, ADJACENCY_FAST_MTU_WORD)))
		return to_graph(p);
	tx_if = ADJACENCY_TX_IF(load(adjacency, ADJACENCY_TX_IF_WORD));
	lane = word(&interfaces, tx_if, INTERFACE_XDP_SEND_WORD);
	sent = bpf_map_lookup_elem(&counters, &tx_if);
	if (!sent || !INTERFACE_XDP_SEND(lane))
		return to_graph(p);
	if (p->len != (__u32)(p->end - p->data) && !INTERFACE_XDP_SEND_LONG(lane))
		return to_graph(p);
	/* RFC 1624: the time to live is the upper byte of its word. */
	sum = bpf_ntohs(LOAD16(ip + 10)) + 0x0100;
	*(__u16 *)(ip + 10) = bpf_htons(sum + (sum >= 0xffff));
	ip[8]--;
	*(__u32 *)p->data = load(adjacency, ADJACENCY_HEADER_WORD);
	*(__u32 *)(p->data + 4) = load(adjacency, ADJACENCY_HEADER_WORD + 1);
	*(__u32 *)(p->data + 8) = load(adjacency, ADJACENCY_HEADER_WORD + 2);
	*(__u16 *)(p->data + 12) = load(adjacency, ADJACENCY_HEADER_WORD + 3);
	if (bpf_redirect_map(&egress, tx_if, XDP_DROP) != XDP_REDIRECT)
		return drop(p, DROP_GONE);
	received(p);
	sent->tx_packets++;
	sent->tx_bytes += p->len;
	return XDP_REDIRECT;
}

/* ip4-input and ip4-lookup. */
static __always_inline int forward(const struct packet *p)
{
	const __u8 *ip = p->data + ETH_LEN;
	__u32 group = p->entry & ENTRY_GROUP, hash = 0, adjacency;

	if (!is_plain(p))
		return to_graph(p);
	if (fold((__u64)LOAD32(ip) + LOAD32(ip + 4) + LOAD32(ip + 8) + LOAD32(ip + 12) + LOAD32(ip + 16)) != 0xffff)
		return drop(p, DROP_BAD_CHECKSUM);
	/* The graph looks closer, and tells the operator. */
	if ((p->counters->redirected + p->counters->rx_packets) % SAMPLE == 0 && looks_unfinished(p))
		return to_graph(p);
	if ((p->entry & ENTRY_MULTI) && !flow_hash(p, &hash))
		return to_graph(p);
	adjacency = word(&nexthop_groups, group, hash >> 28);
	if (adjacency >= FIRST_FREE)
		return rewrite(p, adjacency);
	if ((group < FIRST_FREE ? group : adjacency) == GROUP_BLACKHOLE)
		return drop(p, DROP_BLACKHOLE);
	return to_graph(p);
}

/* Whose packet it is. */
static __always_inline int route(struct packet *p)
{
	__u32 number = interface, end_and_mode, mode, dst, group;
	struct line *line = bpf_map_lookup_elem(&interfaces, &number);
	const __u8 *ip = p->data + ETH_LEN;
	__u64 own;

	if (!line)
		return to_kernel(p);
	/* Mode, end of the address and whether there are features are one word. */
	end_and_mode = load(line, INTERFACE_MODE_WORD);
	mode = INTERFACE_MODE(end_and_mode);
	own = load(line, INTERFACE_MAC_WORD) | (__u64)INTERFACE_MAC_END(end_and_mode) << 32;
	if (mode == MODE_L2)
		return to_graph(p);
	if (mode != MODE_ROUTED && mode != MODE_UNADDRESSED)
		return to_kernel(p);
	if (ip > p->end)
		return to_kernel(p);
	if (mac(p->data) != own)
		return to_kernel(p);
	if (LOAD16(p->data + 12) != bpf_htons(ETHERTYPE_IP4))
		return to_kernel(p);
	if (ip + IP4_LEN > p->end || ip[0] >> 4 != IP4_VERSION)
		return to_graph(p);
	if ((ip[0] & 15) > IP4_IHL)
		return to_kernel(p);
	dst = bpf_ntohl(LOAD32(ip + 16));
	if (is_group(dst) || is_dhcp_reply(ip, p->end, own))
		return to_kernel(p);
	p->entry = entry_of(dst);
	group = p->entry & ENTRY_GROUP;
	if (group == GROUP_LOCAL || group == GROUP_BROADCAST || group == GROUP_PUNT)
		return to_kernel(p);
	/* Features are the graph's. */
	if (INTERFACE_FEATURED(end_and_mode) || !INTERFACE_XDP_FORWARD(load(line, INTERFACE_XDP_FORWARD_WORD)))
		return to_graph(p);
	p->len = bpf_xdp_get_buff_len(p->ctx);
	p->total = bpf_ntohs(LOAD16(ip + 2));
	return forward(p);
}

SEC("xdp.frags")
int parshall_router(struct xdp_md *ctx)
{
	__u32 number = interface;
	struct packet p = {
		.ctx = ctx,
		.data = (void *)(long)ctx->data,
		.end = (void *)(long)ctx->data_end,
		.counters = bpf_map_lookup_elem(&counters, &number),
	};

	return p.counters ? route(&p) : XDP_ABORTED;
}

char _license[] SEC("license") = "Apache-2.0";
