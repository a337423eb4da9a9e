/* The receiving end of a load test: counts and drops what belongs to a stream, leaves the rest to
 * the kernel. Of streams that measure latency it notes how long their packets took. */
#include <linux/in.h>

#include "common.bpf.h"
#include "times.bpf.h"

#define MATCHES 32
/* The trailer of packets that measure latency, its first byte, and where its time of sending is. */
#define TRAILER 16
#define TRAILER_MAGIC 0xab
#define TRAILER_TIME 8
/* VLAN tags that may stand before a packet. */
#define TAGS 2
/* Longest packet whose end is looked for, in bytes. */
#define LONGEST 0x3fff

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
	/* Bits of the matches whose packets measure latency. */
	__u32 measured;
	/* The kernel's clock when that of the trailers was 0. */
	__u64 epoch;
	struct match match[MATCHES];
	/* How long packets of each match took. Those that come by several CPUs at once may be
	 * missed. */
	struct times times[MATCHES];
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

static __always_inline int is_tag(__u16 kind)
{
	return kind == bpf_htons(ETHERTYPE_VLAN) || kind == bpf_htons(ETHERTYPE_SERVICE_VLAN);
}

static __always_inline int parse(struct xdp_md *ctx, struct packet *p)
{
	const __u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const __u8 *ip = data + ETH_LEN;
	__u16 kind;
	int tags;

	if (ip > end)
		return 0;
	kind = LOAD16(ip - 2);
	for (tags = 0; tags < TAGS && is_tag(kind); tags++) {
		ip += TAG_LEN;
		if (ip > end)
			return 0;
		kind = LOAD16(ip - 2);
	}
	if (kind == bpf_htons(ETHERTYPE_IP4))
		return parse_ip4(p, ip, end);
	return kind == bpf_htons(ETHERTYPE_IP6) && parse_ip6(p, ip, end);
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

/* Notes how long the packet took, if it says when it was sent. */
static __always_inline void measure(struct xdp_md *ctx, __u32 stream)
{
	__u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end, *trailer;
	__u64 len = ctx->data_end - ctx->data, now, sent;

	if (len < TRAILER || len > LONGEST)
		return;
	trailer = data + ((len - TRAILER) & LONGEST);
	if (trailer + TRAILER > end || *trailer != TRAILER_MAGIC)
		return;
	now = bpf_ktime_get_ns() - table.epoch;
	sent = LOAD64(trailer + TRAILER_TIME);
	/* Both clocks were read at the start, one after the other. */
	note_time(&table.times[stream & (MATCHES - 1)], now > sent ? now - sent : 0);
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
	if (stream == MATCHES)
		return XDP_PASS;
	if (table.measured >> stream & 1)
		measure(ctx, stream);
	return XDP_DROP;
}

char _license[] SEC("license") = "Apache-2.0";
