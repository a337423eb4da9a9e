/* The router's program on a device: it forwards what it can, gives what the router must do to the
 * graph, and leaves the rest to the kernel.
 *
 * The kernel keeps: everything while the interface is down, VLAN-tagged frames, but for those whose
 * outer tag a sub-interface of ours has, frames that are not for the interface's own address,
 * everything that is neither IPv4 nor IPv6, IPv4 with options and IPv6 with hop-by-hop
 * options (the kernel is the slow path), multicast and limited broadcast, addresses that are good
 * on their link only, what a DHCP server answers to the interface's own client (its destination is
 * an address that nobody has yet), and destinations whose next-hop group says local or punt, but for
 * the packets of a VXLAN tunnel of ours, and those that may be translated.
 *
 * All else is the router's. Where the interface's line says so, the program forwards as the graph's
 * stages input, lookup and rewrite of either family do, out of the same tables; whatever needs more than
 * that, and all that is broken in another way than its checksum, goes to the graph by the AF_XDP
 * socket of the queue.
 *
 * Every port runs its own instance, with its own sockets; tables, counters and ways out are
 * shared. */
#include "common.bpf.h"
#include "tables.h"

#include <linux/in.h>

/* VLAN identifier in a tag. */
#define VLAN 0xfff
#define DHCP_CLIENT 68
#define DHCP_CHADDR 28
/* Destination of VXLAN, and the flag in its first byte that there is a network identifier (RFC 7348). */
#define VXLAN_PORT 4789
#define VXLAN_VNI 0x08
/* More Fragments and the offset, in the fragment word. */
#define FRAGMENT 0x3fff
/* Where the fields of an IPv6 header are. */
#define IP6_HOP_LIMIT 7
#define IP6_SRC 8
#define IP6_DST 24
#define FLOW_LABEL 0xfffff
/* Its next header: hop-by-hop options. */
#define HOP_BY_HOP 0
/* Shortest Ethernet frame without its checksum: shorter packets are padded to it. */
#define SHORTEST 60
/* ICMP: where what it is about begins, and the types of echoes and errors. */
#define ICMP_LEN 8
#define ICMP_ECHO_REPLY 0
#define ICMP_UNREACHABLE 3
#define ICMP_ECHO_REQUEST 8
#define ICMP_TIME_EXCEEDED 11
#define ICMP_PARAMETER_PROBLEM 12
/* One packet in this many is looked at for an unfinished checksum. */
#define SAMPLE 64

/* One cache line of a table. */
struct line {
	__u32 word[LINE_WORDS];
};

/* Why the program drops; `DROPS` of router.rs in its order. */
enum drop {
	DROP_IP4_BAD_CHECKSUM,
	DROP_IP4_BLACKHOLE,
	DROP_IP4_GONE,
	DROP_IP6_BLACKHOLE,
	DROP_IP6_GONE,
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
TABLE(ip6_first, 1 << 12);
TABLE(ip6_pages, 16);
TABLE(ip6_leaves, 1);
TABLE(nexthop_groups, 16);
TABLE(adjacencies, 16);
TABLE(interfaces, 1);
TABLE(outer_tags, OUTER_TAGS_LINES);
TABLE(tunnels, 1);
TABLE(translated, TRANSLATED_LINES);

AF_XDP_SOCKETS(xsks);

/* By interface, as many as the loader says. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct counters);
	__uint(max_entries, 1);
} counters SEC(".maps");

/* The devices to send by, by number of the interface. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
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

/* A look-up never takes more steps: each node begins behind the one before, at bytes 2 to 15. */
#define IP6_STEPS 14

/* The 32 bits of an address from a byte on, 0 to 15; zeros behind its end. */
static __always_inline __u32 window(__u64 high, __u64 low, __u32 byte)
{
	__u32 shift = byte * 8;

	if (byte >= 8)
		return low << (shift - 64) >> 32;
	return (byte ? high << shift | low >> (64 - shift) : high) >> 32;
}

/* 1 if a range that begins at start begins at bits or before, without a branch: the verifier would
 * follow each of 128 ways through a leaf. */
static __always_inline __u32 begins(__u64 start, __u64 bits)
{
	__u64 difference = bits - start;

	/* So that the compiler makes no comparison of it. */
	asm volatile("" : "+r"(difference));
	return 1 - (difference >> 63);
}

/* The trie of `tables::ip6`: the first two bytes choose a word, which is an entry or names a node. A
 * page has a word for each value of a byte, a leaf one for each of 8 ranges of 32 bits. */
static __always_inline __u32 entry6_of(const __u8 *dst)
{
	__u64 high = (__u64)bpf_ntohl(LOAD32(dst)) << 32 | bpf_ntohl(LOAD32(dst + 4));
	__u64 low = (__u64)bpf_ntohl(LOAD32(dst + 8)) << 32 | bpf_ntohl(LOAD32(dst + 12));
	__u32 found = word(&ip6_first, high >> 52, high >> 48);

	for (int step = 0; step < IP6_STEPS && (found & ENTRY_EXT); step++) {
		__u32 bits = window(high, low, IP6_BYTE(found)), index = found & IP6_INDEX;

		if (found & IP6_LEAF) {
			struct line *leaf = bpf_map_lookup_elem(&ip6_leaves, &index);
			__u32 range = 0;

			if (!leaf)
				return 0;
			for (int start = 0; start < IP6_RANGES - 1; start++)
				range += begins(load(leaf, start), bits);
			range &= IP6_RANGES - 1;
			/* So that the verifier sees the bound. */
			asm volatile("" : "+r"(range));
			found = load(leaf, LINE_WORDS - IP6_RANGES + range);
		} else {
			found = word(&ip6_pages, index << 4 | bits >> 28, bits >> 24);
		}
	}
	return found & ENTRY_EXT ? 0 : found;
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
	/* Of the IP packet, header included. */
	__u32 total;
	/* FIB entry of the destination. */
	__u32 entry;
	/* IPv6, not IPv4. */
	int is_ip6;
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

/* The frame is as long as its packet, or padded. */
static __always_inline int fits(const struct packet *p)
{
	__u32 framed = ETH_LEN + p->total;

	return framed == p->len || (framed < p->len && p->len <= SHORTEST);
}

/* The header is that of an ordinary packet, its checksum aside. Its first 20 bytes are there. */
static __always_inline int is_plain4(const struct packet *p)
{
	const __u8 *ip = p->data + ETH_LEN;

	if (ip[0] != (IP4_VERSION << 4 | IP4_IHL) || ip[8] <= 1)
		return 0;
	if (p->total < IP4_LEN || !fits(p))
		return 0;
	/* Addresses that no packet on a wire may have: first byte 0, 127 or above 223. */
	return (__u8)(ip[12] - 1) < 223 && ip[12] != 127 && (__u8)(ip[16] - 1) < 223 && ip[16] != 127;
}

/* The TCP or UDP checksum field holds the sum of the pseudo-header alone: the sender left the rest
 * to hardware that never saw the packet (CHECKSUM_PARTIAL), or it is right by chance. */
static __always_inline int is_partial(const struct packet *p, const __u8 *segment, __u8 proto, __u32 length, __u64 addresses)
{
	__u64 sum = addresses + bpf_htons(proto) + bpf_htons(length);
	const __u8 *field;

	if (proto == IPPROTO_TCP)
		field = segment + 16;
	else if (proto == IPPROTO_UDP)
		field = segment + 6;
	else
		return 0;
	return field + 2 <= p->end && LOAD16(field) == fold(sum);
}

static __always_inline int looks_unfinished4(const struct packet *p)
{
	const __u8 *ip = p->data + ETH_LEN;

	if (LOAD16(ip + 6) & bpf_htons(FRAGMENT))
		return 0;
	return is_partial(p, ip + IP4_LEN, ip[9], p->total - IP4_LEN, (__u64)LOAD32(ip + 12) + LOAD32(ip + 16));
}

/* The sum of both addresses of an IPv6 header, not folded. */
static __always_inline __u64 addresses6(const __u8 *ip)
{
	__u64 sum = 0;

	for (int at = IP6_SRC; at < IP6_LEN; at += 4)
		sum += LOAD32(ip + at);
	return sum;
}

static __always_inline int looks_unfinished6(const struct packet *p)
{
	const __u8 *ip = p->data + ETH_LEN;

	return is_partial(p, ip + IP6_LEN, ip[6], p->total - IP6_LEN, addresses6(ip));
}

/* The graph looks at some packets closer, and tells the operator. */
static __always_inline int is_sample(const struct packet *p)
{
	return (p->counters->redirected + p->counters->rx_packets) % SAMPLE == 0;
}

static __always_inline int has_ports(__u8 proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == IPPROTO_SCTP || proto == IPPROTO_UDPLITE;
}

/* tables::hash::flow5. False if the ports are not there. */
static __always_inline int flow_hash4(const struct packet *p, __u32 *hash)
{
	const __u8 *ip = p->data + ETH_LEN;
	__u64 a = (__u64)bpf_ntohl(LOAD32(ip + 12)) << 32 | bpf_ntohl(LOAD32(ip + 16));
	__u64 b = (__u64)ip[9] << 32, h;

	if (has_ports(ip[9]) && !(LOAD16(ip + 6) & bpf_htons(FRAGMENT))) {
		if (ip + IP4_LEN + 4 > p->end)
			return 0;
		b |= bpf_ntohl(LOAD32(ip + IP4_LEN));
	}
	h = (a ^ b * 0xd6e8feb86659fd93ull) * 0x9e3779b97f4a7c15ull;
	h = (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
	*hash = h >> 32;
	return 1;
}

/* tables::hash::flow6. False if the ports are not there. */
static __always_inline int flow_hash6(const struct packet *p, __u32 *hash)
{
	const __u8 *ip = p->data + ETH_LEN, *src = ip + IP6_SRC, *dst = ip + IP6_DST;
	__u64 a = (__u64)(bpf_ntohl(LOAD32(src + 8)) ^ bpf_ntohl(LOAD32(dst + 12))) << 32 |
		  (bpf_ntohl(LOAD32(src + 12)) ^ bpf_ntohl(LOAD32(dst + 8)));
	__u64 b = (__u64)(bpf_ntohl(LOAD32(src)) ^ bpf_ntohl(LOAD32(dst + 4))) << 32 |
		  (bpf_ntohl(LOAD32(src + 4)) ^ bpf_ntohl(LOAD32(dst)));
	__u64 c = (__u64)(bpf_ntohl(LOAD32(ip)) & FLOW_LABEL) << 40 | (__u64)ip[6] << 32, h;

	if (has_ports(ip[6])) {
		if (ip + IP6_LEN + 4 > p->end)
			return 0;
		c |= bpf_ntohl(LOAD32(ip + IP6_LEN));
	}
	h = (a ^ c * 0xd6e8feb86659fd93ull) * 0x9e3779b97f4a7c15ull;
	h = (h ^ h >> 32 ^ b) * 0xd6e8feb86659fd93ull;
	h = (h ^ h >> 32) * 0x9e3779b97f4a7c15ull;
	*hash = h >> 32;
	return 1;
}

/* ip4-rewrite and ip6-rewrite: sends the packet by its adjacency, if there is nothing else to be
 * done. */
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
	if (p->is_ip6) {
		ip[IP6_HOP_LIMIT]--;
	} else {
		/* RFC 1624: the time to live is the upper byte of its word. */
		sum = bpf_ntohs(LOAD16(ip + 10)) + 0x0100;
		*(__u16 *)(ip + 10) = bpf_htons(sum + (sum >= 0xffff));
		ip[8]--;
	}
	*(__u32 *)p->data = load(adjacency, ADJACENCY_HEADER_WORD);
	*(__u32 *)(p->data + 4) = load(adjacency, ADJACENCY_HEADER_WORD + 1);
	*(__u32 *)(p->data + 8) = load(adjacency, ADJACENCY_HEADER_WORD + 2);
	*(__u16 *)(p->data + 12) = load(adjacency, ADJACENCY_HEADER_WORD + 3);
	if (bpf_redirect_map(&egress, tx_if, XDP_DROP) != XDP_REDIRECT)
		return drop(p, p->is_ip6 ? DROP_IP6_GONE : DROP_IP4_GONE);
	received(p);
	sent->tx_packets++;
	sent->tx_bytes += p->len;
	return XDP_REDIRECT;
}

/* The second half of ip4-lookup and ip6-lookup: the adjacency for the flow. */
static __always_inline int send(const struct packet *p, __u32 hash)
{
	__u32 group = p->entry & ENTRY_GROUP;
	__u32 adjacency = word(&nexthop_groups, group, hash >> 28);

	if (adjacency >= FIRST_FREE)
		return rewrite(p, adjacency);
	if ((group < FIRST_FREE ? group : adjacency) == GROUP_BLACKHOLE)
		return drop(p, p->is_ip6 ? DROP_IP6_BLACKHOLE : DROP_IP4_BLACKHOLE);
	return to_graph(p);
}

/* ip4-input and ip4-lookup. */
static __always_inline int forward4(struct packet *p)
{
	const __u8 *ip = p->data + ETH_LEN;
	__u32 hash = 0;

	p->total = bpf_ntohs(LOAD16(ip + 2));
	if (!is_plain4(p))
		return to_graph(p);
	if (fold((__u64)LOAD32(ip) + LOAD32(ip + 4) + LOAD32(ip + 8) + LOAD32(ip + 12) + LOAD32(ip + 16)) != 0xffff)
		return drop(p, DROP_IP4_BAD_CHECKSUM);
	if (is_sample(p) && looks_unfinished4(p))
		return to_graph(p);
	if ((p->entry & ENTRY_MULTI) && !flow_hash4(p, &hash))
		return to_graph(p);
	return send(p, hash);
}

/* ip6-input and ip6-lookup. */
static __always_inline int forward6(struct packet *p)
{
	const __u8 *ip = p->data + ETH_LEN;
	__u32 hash = 0;

	p->total = IP6_LEN + bpf_ntohs(LOAD16(ip + 4));
	if (ip[IP6_HOP_LIMIT] <= 1 || !fits(p))
		return to_graph(p);
	if (is_sample(p) && looks_unfinished6(p))
		return to_graph(p);
	if ((p->entry & ENTRY_MULTI) && !flow_hash6(p, &hash))
		return to_graph(p);
	return send(p, hash);
}

/* Who looks at a packet. */
enum owner {
	KERNEL,
	/* There is something wrong with it. */
	GRAPH,
	/* Its route says so. */
	ROUTE,
};

static __always_inline enum owner owner4(struct packet *p, __u64 own)
{
	const __u8 *ip = p->data + ETH_LEN;
	__u32 dst;

	if (ip + IP4_LEN > p->end || ip[0] >> 4 != IP4_VERSION)
		return GRAPH;
	if ((ip[0] & 15) > IP4_IHL)
		return KERNEL;
	dst = bpf_ntohl(LOAD32(ip + 16));
	if (is_group(dst) || is_dhcp_reply(ip, p->end, own))
		return KERNEL;
	p->entry = entry_of(dst);
	return ROUTE;
}

/* An address is neither multicast nor link-local, nor does it stand for something else, such as ::
 * and ::1. */
static __always_inline int is_plain6(const __u8 *address)
{
	return (__u8)(address[0] - 1) < 0xfd;
}

/* fe80::/10 (RFC 4291 section 2.5.6). */
static __always_inline int is_link_local(const __u8 *address)
{
	return address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
}

/* The upper 127 bits of an address are 0: it is :: or ::1. */
static __always_inline int is_zero_or_one(const __u8 *address)
{
	return !(LOAD32(address) | LOAD32(address + 4) | LOAD32(address + 8) | (LOAD32(address + 12) & bpf_htonl(~1)));
}

static __always_inline enum owner odd_addresses6(const __u8 *src, const __u8 *dst)
{
	/* Multicast or loopback source, loopback or unspecified destination: the graph counts them. */
	if (src[0] == 0xff || (is_zero_or_one(src) && src[15]) || is_zero_or_one(dst))
		return GRAPH;
	if (dst[0] == 0xff || is_link_local(dst) || is_link_local(src))
		return KERNEL;
	return is_zero_or_one(src) ? KERNEL : ROUTE;
}

static __always_inline enum owner owner6(struct packet *p)
{
	const __u8 *ip = p->data + ETH_LEN, *src = ip + IP6_SRC, *dst = ip + IP6_DST;
	enum owner owner = ROUTE;

	if (ip + IP6_LEN > p->end || ip[0] >> 4 != IP6_VERSION)
		return GRAPH;
	if (!is_plain6(src) || !is_plain6(dst))
		owner = odd_addresses6(src, dst);
	if (owner != ROUTE)
		return owner;
	if (ip[6] == HOP_BY_HOP)
		return KERNEL;
	p->is_ip6 = 1;
	p->entry = entry6_of(dst);
	return ROUTE;
}

/* The frame begins with the outer tag of one of the interface's sub-interfaces. */
static __always_inline int has_our_tag(const struct packet *p, __u32 number)
{
	__u32 vlan;

	if (LOAD16(p->data + 12) != bpf_htons(ETHERTYPE_VLAN) && LOAD16(p->data + 12) != bpf_htons(ETHERTYPE_SERVICE_VLAN))
		return 0;
	if (p->data + ETH_LEN + 4 > p->end)
		return 0;
	vlan = bpf_ntohs(LOAD16(p->data + ETH_LEN)) & VLAN;
	return word(&outer_tags, number * OUTER_TAGS_LINES + (vlan >> 9), vlan >> 5) >> (vlan & 31) & 1;
}

/* What a line of the table of tunnels holds from its network identifier on. */
struct tunnel {
	__u32 vni;
	__u32 remote[4];
	__u32 local[4];
};

/* The packet is of one of the router's tunnels: `tables::tunnels`. Its ends are in t, its UDP header is
 * at udp if it is long enough. */
static __always_inline int is_tunneled(const struct packet *p, const __u8 *udp, struct tunnel *t)
{
	const __u8 *vxlan = udp + UDP_LEN;
	__u32 number, vni;

	if (vxlan + VXLAN_LEN > p->end || LOAD16(udp + 2) != bpf_htons(VXLAN_PORT) || !(vxlan[0] & VXLAN_VNI))
		return 0;
	vni = bpf_ntohl(LOAD32(vxlan + 4)) >> 8;
	t->vni = vni | TUNNEL_USED;
	number = word(&tunnels, vni * TUNNEL_FACTOR >> 16 & word(&tunnels, 0, TUNNEL_LAST_WORD), TUNNEL_FIRST_WORD);
	for (int step = 0; step < TUNNEL_STEPS && number; step++) {
		struct line *line = bpf_map_lookup_elem(&tunnels, &number);
		__u32 other;

		if (!line)
			return 0;
		other = load(line, TUNNEL_VNI_WORD) ^ t->vni;
		for (int at = 0; at < 4; at++) {
			other |= load(line, TUNNEL_REMOTE_WORD + at) ^ t->remote[at];
			other |= load(line, TUNNEL_LOCAL_WORD + at) ^ t->local[at];
		}
		if (!other)
			return 1;
		number = load(line, TUNNEL_NEXT_WORD);
	}
	return 0;
}

static __always_inline int is_tunneled4(const struct packet *p)
{
	const __u8 *ip = p->data + ETH_LEN;
	__u32 mapped = bpf_htonl(0xffff);
	struct tunnel t = {
		.remote = { 0, 0, mapped, LOAD32(ip + 12) },
		.local = { 0, 0, mapped, LOAD32(ip + 16) },
	};

	if (ip[9] != IPPROTO_UDP || LOAD16(ip + 6) & bpf_htons(FRAGMENT))
		return 0;
	return is_tunneled(p, ip + IP4_LEN, &t);
}

static __always_inline int is_tunneled6(const struct packet *p)
{
	const __u8 *ip = p->data + ETH_LEN;
	struct tunnel t;

	if (ip[6] != IPPROTO_UDP)
		return 0;
	for (int at = 0; at < 4; at++) {
		t.remote[at] = LOAD32(ip + IP6_SRC + 4 * at);
		t.local[at] = LOAD32(ip + IP6_DST + 4 * at);
	}
	return is_tunneled(p, ip + IP6_LEN, &t);
}

/* A bit of the table of what is translated. */
static __always_inline __u32 translated_bit(__u32 line, __u32 bit)
{
	return word(&translated, line + (bit >> 9), bit >> 5) >> (bit & 31) & 1;
}

/* A port, or the identifier of an echo, is one whose packets are translated. */
static __always_inline int is_translated_port(__u8 proto, const __u8 *port, const __u8 *end)
{
	__u32 line = TRANSLATED_UDP_LINE;

	if (port + 2 > end)
		return 0;
	if (proto == IPPROTO_TCP)
		line = TRANSLATED_TCP_LINE;
	else if (proto == IPPROTO_ICMP)
		line = TRANSLATED_ECHO_LINE;
	return translated_bit(line, bpf_ntohs(LOAD16(port)));
}

/* The packet may be translated: `tables::translated`. An ICMP error is led by the source of the packet
 * that it is about. The host gets from the graph what is of no flow there. */
static __always_inline int is_translated(const struct packet *p)
{
	const __u8 *ip = p->data + ETH_LEN, *content = ip + IP4_LEN, *quoted = content + ICMP_LEN, *port;
	__u8 proto = ip[9];

	/* Of which some are, then of which all are. */
	if (!translated_bit(0, 256 + proto))
		return 0;
	/* A fragment tells no port, or goes the way of those that do not. */
	if (translated_bit(0, proto) || LOAD16(ip + 6) & bpf_htons(FRAGMENT))
		return 1;
	if (proto != IPPROTO_ICMP)
		return is_translated_port(proto, content + 2, p->end);
	if (quoted > p->end)
		return 0;
	if (content[0] == ICMP_ECHO_REQUEST || content[0] == ICMP_ECHO_REPLY)
		return is_translated_port(proto, content + 4, p->end);
	if (content[0] != ICMP_UNREACHABLE && content[0] != ICMP_TIME_EXCEEDED && content[0] != ICMP_PARAMETER_PROBLEM)
		return 0;
	if (quoted + IP4_LEN > p->end)
		return 0;
	proto = quoted[9];
	if (!translated_bit(0, 256 + proto))
		return 0;
	if (translated_bit(0, proto))
		return 1;
	/* Options in front of the ports: the graph finds out. */
	if (quoted[0] != (IP4_VERSION << 4 | IP4_IHL))
		return 1;
	port = quoted + IP4_LEN + (proto == IPPROTO_ICMP ? 4 : 0);
	return is_translated_port(proto, port, p->end);
}

/* Whose packet it is that is for an own address. Where something is translated, the device has a host
 * interface, by which the graph gives back what is the host's. */
static __always_inline int local(const struct packet *p, struct line *line)
{
	if (p->is_ip6)
		return is_tunneled6(p) ? to_graph(p) : to_kernel(p);
	if (INTERFACE_PEER(load(line, INTERFACE_PEER_WORD)) && is_translated(p))
		return to_graph(p);
	return is_tunneled4(p) ? to_graph(p) : to_kernel(p);
}

/* Whose packet it is. */
static __always_inline int route(struct packet *p)
{
	__u32 number = interface, end_and_mode, mode, group;
	struct line *line = bpf_map_lookup_elem(&interfaces, &number);
	enum owner owner;
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
	if (p->data + ETH_LEN > p->end)
		return to_kernel(p);
	if (has_our_tag(p, number))
		return to_graph(p);
	if (mac(p->data) != own)
		return to_kernel(p);
	if (LOAD16(p->data + 12) == bpf_htons(ETHERTYPE_IP4))
		owner = owner4(p, own);
	else if (LOAD16(p->data + 12) == bpf_htons(ETHERTYPE_IP6))
		owner = owner6(p);
	else
		return to_kernel(p);
	if (owner != ROUTE)
		return owner == KERNEL ? to_kernel(p) : to_graph(p);
	group = p->entry & ENTRY_GROUP;
	if (group == GROUP_LOCAL)
		return local(p, line);
	if (group == GROUP_BROADCAST || group == GROUP_PUNT)
		return to_kernel(p);
	/* Features are the graph's. */
	if (INTERFACE_FEATURED(end_and_mode) || !INTERFACE_XDP_FORWARD(load(line, INTERFACE_XDP_FORWARD_WORD)))
		return to_graph(p);
	p->len = bpf_xdp_get_buff_len(p->ctx);
	return p->is_ip6 ? forward6(p) : forward4(p);
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
