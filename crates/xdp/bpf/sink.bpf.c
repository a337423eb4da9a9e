/* The receiving end of a load test: counts and drops what belongs to a stream, leaves the rest to
 * the kernel. */
#include "common.bpf.h"

#define MATCHES 32

/* Host byte order; ranges are inclusive; zero in length, protocol or a port means any. */
struct match {
	__u32 src_min, src_max;
	__u32 dst_min, dst_max;
	__u16 length;
	__u16 sport, dport;
	__u16 protocol;
};

struct table {
	__u32 count;
	__u32 reserved;
	struct match match[MATCHES];
};

struct packet {
	__u32 src, dst;
	__u16 length, sport, dport;
	__u8 protocol;
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

static __always_inline int parse(struct xdp_md *ctx, struct packet *p)
{
	const __u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const __u8 *ip = data + ETH_LEN, *l4 = ip + IP4_LEN;

	if (l4 > end || LOAD16(data + 12) != bpf_htons(ETHERTYPE_IP4) ||
	    ip[0] != (IP4_VERSION << 4 | IP4_IHL))
		return 0;
	p->length = bpf_ntohs(LOAD16(ip + 2));
	p->protocol = ip[9];
	p->src = bpf_ntohl(LOAD32(ip + 12));
	p->dst = bpf_ntohl(LOAD32(ip + 16));
	p->sport = p->dport = 0;
	/* Only the first fragment has ports. */
	if (l4 + 4 <= end && !(LOAD16(ip + 6) & bpf_htons(0x1fff))) {
		p->sport = bpf_ntohs(LOAD16(l4));
		p->dport = bpf_ntohs(LOAD16(l4 + 2));
	}
	return 1;
}

static __always_inline int matches(const struct match *m, const struct packet *p)
{
	return p->src >= m->src_min && p->src <= m->src_max && p->dst >= m->dst_min &&
	       p->dst <= m->dst_max && (!m->length || m->length == p->length) &&
	       (!m->protocol || m->protocol == p->protocol) && (!m->sport || m->sport == p->sport) &&
	       (!m->dport || m->dport == p->dport);
}

static __always_inline __u32 stream_of(struct xdp_md *ctx)
{
	struct packet p;
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
