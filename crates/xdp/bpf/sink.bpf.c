/* The receiving end of a load test: counts and drops what belongs to a stream, leaves the rest to
 * the kernel. */
#include <linux/in.h>

#include "common.bpf.h"

#define MATCHES 32

/* In host byte order; an IPv4 address is the last 32 bits. */
struct address {
	__u64 high, low;
};

/* Ranges are inclusive; zero in length, protocol or a port means any. */
struct match {
	struct address src_min, src_max;
	struct address dst_min, dst_max;
	/* As the header has it: the whole packet's in IPv4, without the header in IPv6. */
	__u16 length;
	__u16 sport, dport;
	__u8 protocol;
	__u8 version;
};

struct table {
	__u32 count;
	__u32 reserved;
	struct match match[MATCHES];
};

struct packet {
	struct address src, dst;
	__u16 length, sport, dport;
	__u8 protocol;
	__u8 version;
};

struct counters {
	__u64 packets;
	__u64 bytes;
};

struct table table;

/* One for each match, and the last for what matched none. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct counters);
	__uint(max_entries, MATCHES + 1);
} counters SEC(".maps");

static __always_inline void ports(struct packet *p, const __u8 *l4, const __u8 *end)
{
	if (l4 + 4 > end)
		return;
	p->sport = bpf_ntohs(LOAD16(l4));
	p->dport = bpf_ntohs(LOAD16(l4 + 2));
}

static __always_inline int parse_ip4(struct packet *p, const __u8 *ip, const __u8 *end)
{
	const __u8 *l4 = ip + IP4_LEN;

	if (l4 > end || ip[0] != (IP4_VERSION << 4 | IP4_IHL))
		return 0;
	p->version = IP4_VERSION;
	p->length = bpf_ntohs(LOAD16(ip + 2));
	p->protocol = ip[9];
	p->src.low = bpf_ntohl(LOAD32(ip + 12));
	p->dst.low = bpf_ntohl(LOAD32(ip + 16));
	/* Only the first fragment has ports. */
	if (!(LOAD16(ip + 6) & bpf_htons(0x1fff)))
		ports(p, l4, end);
	return 1;
}

static __always_inline struct address load_ip6(const __u8 *p)
{
	struct address a = { bpf_be64_to_cpu(LOAD64(p)), bpf_be64_to_cpu(LOAD64(p + 8)) };

	return a;
}

static __always_inline int parse_ip6(struct packet *p, const __u8 *ip, const __u8 *end)
{
	const __u8 *l4 = ip + IP6_LEN;

	if (l4 > end || ip[0] >> 4 != IP6_VERSION)
		return 0;
	p->version = IP6_VERSION;
	p->length = bpf_ntohs(LOAD16(ip + 4));
	p->protocol = ip[6];
	p->src = load_ip6(ip + 8);
	p->dst = load_ip6(ip + 24);
	/* Ports are not looked for behind an extension header. */
	if (p->protocol == IPPROTO_TCP || p->protocol == IPPROTO_UDP)
		ports(p, l4, end);
	return 1;
}

static __always_inline int parse(struct xdp_md *ctx, struct packet *p)
{
	const __u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const __u8 *ip = data + ETH_LEN;

	if (ip > end)
		return 0;
	if (LOAD16(data + 12) == bpf_htons(ETHERTYPE_IP4))
		return parse_ip4(p, ip, end);
	return LOAD16(data + 12) == bpf_htons(ETHERTYPE_IP6) && parse_ip6(p, ip, end);
}

static __always_inline int below(const struct address *a, const struct address *b)
{
	return a->high < b->high || (a->high == b->high && a->low < b->low);
}

static __always_inline int matches(const struct match *m, const struct packet *p)
{
	return m->version == p->version && !below(&p->src, &m->src_min) &&
	       !below(&m->src_max, &p->src) && !below(&p->dst, &m->dst_min) &&
	       !below(&m->dst_max, &p->dst) && (!m->length || m->length == p->length) &&
	       (!m->protocol || m->protocol == p->protocol) && (!m->sport || m->sport == p->sport) &&
	       (!m->dport || m->dport == p->dport);
}

static __always_inline __u32 stream_of(struct xdp_md *ctx)
{
	struct packet p = {};
	__u32 i;

	if (!parse(ctx, &p))
		return MATCHES;
	for (i = 0; i < MATCHES; i++) {
		if (i >= table.count)
			break;
		if (matches(&table.match[i], &p))
			return i;
	}
	return MATCHES;
}

SEC("xdp.frags")
int parshall_sink(struct xdp_md *ctx)
{
	__u32 stream = stream_of(ctx);
	struct counters *c = bpf_map_lookup_elem(&counters, &stream);

	if (!c)
		return XDP_ABORTED;
	c->packets++;
	c->bytes += bpf_xdp_get_buff_len(ctx);
	return stream == MATCHES ? XDP_PASS : XDP_DROP;
}

char _license[] SEC("license") = "Apache-2.0";
