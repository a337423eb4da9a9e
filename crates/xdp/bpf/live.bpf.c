/* The generator: run over live frames (BPF_PROG_TEST_RUN), it turns each into the next packet that
 * is due on one of two ways, and drops it if none is. If both are behind they take turns, packet by
 * packet.
 *
 * The kernel recycles the frames, and whoever received one may have written into it. So the
 * beginning of every frame is written anew; what lies behind it is the same in all streams and is
 * left alone.
 *
 * One thread runs this program, on one CPU: plain stores are enough. */
#include "common.bpf.h"
#include "times.bpf.h"

#define WAYS 2
#define STREAMS 16
#define VARS 4
#define ORDER 4096
#define NARROW 60
#define WIDE 124
#define HEAD 128
#define MARK 16
#define NSEC_PER_SEC 1000000000ull
/* Rates that are none: no schedule; a stop, with its number in the bits below. */
#define UNPACED (1ull << 62)
#define STOPPED (1ull << 63)

enum op { INC, DEC, RANDOM };

struct var {
	__u32 value;
	__u32 min;
	__u32 max;
	__u32 step;
	__u32 seed;
	__u16 at;
	__u8 width;
	__u8 op;
};

struct stream {
	__u64 packets;
	__u64 bytes;
	__u32 len;
	__u32 vars;
	/* Where the IPv4 header is whose checksum must be kept right; 0: none. */
	__u32 ip4_at;
	/* Where the packet's number and time are (see put_mark); 0: it has none. */
	__u32 mark_at;
	struct var var[VARS];
	/* The frame's beginning; it holds the variables' latest values. */
	__u8 head[HEAD];
};

/* What goes out of one interface. */
struct way {
	/* Written by userspace at any time. */
	__u64 rate;
	__u64 burst;
	/* The schedule: packets asked for, of these given up, and allowed now:
	 * due = sent + lost + credit. */
	__u64 due;
	__u64 lost;
	__u64 credit;
	/* Time of the last look at the clock, and what was left below one packet (10^-9 packets). */
	__u64 last;
	__u64 rest;
	/* The last stop that the program has seen. */
	__u64 stopped;
	/* When so many packets have been asked for, no more are; 0: no end. */
	__u64 end;
	__u32 ifindex;
	/* Which stream each packet belongs to, round and round. */
	__u32 position;
	__u32 order_len;
	__u32 reserved;
	__u8 order[ORDER];
	struct stream stream[STREAMS];
	/* When it last let packets go; 0: not since the start. */
	__u64 let_go;
	/* How far apart the schedule let packets go: those of one look at the clock, 0. */
	struct times gaps;
};

struct live {
	__u32 ways;
	/* The way whose turn it is, in the lowest bit. */
	__u32 turn;
	/* Bytes of the frames that come in. */
	__u32 frame_len;
	/* The beginning is WIDE, not NARROW. */
	__u32 wide;
	/* The kernel's clock when that of the marks was 0. */
	__u64 epoch;
	struct way way[WAYS];
};

struct live live;

/* Packets go now, one or more. */
static __always_inline void note_gaps(struct way *w, __u64 now, __u64 packets)
{
	if (w->let_go)
		note_time(&w->gaps, now - w->let_go);
	if (packets > 1) {
		w->gaps.min = 1;
		w->gaps.bucket[0] += packets - 1;
	}
	w->let_go = now;
}

/* Looks at the clock and adds what became due since the last look. */
static __always_inline void accrue(struct way *w, __u64 rate)
{
	__u64 now = bpf_ktime_get_ns(), parts, packets, credit;
	__u64 burst = *(volatile __u64 *)&w->burst;

	if (!w->last) {
		w->last = now;
		w->let_go = 0;
	}
	parts = w->rest + (now - w->last) * rate;
	w->last = now;
	packets = parts / NSEC_PER_SEC;
	w->rest = parts % NSEC_PER_SEC;
	if (w->end && packets > w->end - w->due)
		packets = w->end - w->due;
	w->due += packets;
	credit = w->credit + packets;
	if (credit > burst) {
		w->lost += credit - burst;
		credit = burst;
	}
	w->credit = credit;
	if (credit)
		note_gaps(w, now, credit);
}

/* Gives up what is left of the schedule: nothing of it is sent when the way starts again. */
static __always_inline void stop(struct way *w, __u64 number)
{
	if (w->stopped == number)
		return;
	w->lost += w->credit;
	w->credit = 0;
	w->rest = 0;
	/* The next look at the clock is a start. */
	w->last = 0;
	/* A full barrier: whoever sees it sees all counters. */
	__sync_lock_test_and_set(&w->stopped, number);
}

/* May one packet go now? The clock is read only when the credit is used up. */
static __always_inline int is_due(struct way *w)
{
	__u64 rate = *(volatile __u64 *)&w->rate;

	if (rate & STOPPED) {
		stop(w, rate);
		return 0;
	}
	if (rate == UNPACED) {
		if (w->end && w->due >= w->end)
			return 0;
		w->due++;
		/* A schedule that follows starts with its first look at the clock. */
		w->last = 0;
		return 1;
	}
	if (!w->credit)
		accrue(w, rate);
	if (!w->credit)
		return 0;
	w->credit--;
	return 1;
}

/* The way whose packet goes now; 0: none. */
static __always_inline struct way *next_way(void)
{
	struct way *w = &live.way[live.turn & (WAYS - 1)];
	struct way *other = &live.way[~live.turn & (WAYS - 1)];

	if (is_due(w)) {
		if (live.ways > 1)
			live.turn++;
		return w;
	}
	if (live.ways > 1 && is_due(other))
		return other;
	return 0;
}

static __always_inline __u32 next_stream(struct way *w)
{
	__u32 position = w->position;
	__u32 stream = w->order[position & (ORDER - 1)];

	w->position = ++position < w->order_len ? position : 0;
	return stream & (STREAMS - 1);
}

/* s = s * 214013 + 2531011; 15 bits a draw, so 30 in two. */
static __always_inline __u32 draw(struct var *v)
{
	__u32 seed = v->seed * 214013 + 2531011;
	__u32 value = (seed >> 16) & 0x7fff;

	if (v->width == 4) {
		seed = seed * 214013 + 2531011;
		value = (value << 16) + ((seed >> 16) & 0x7fff);
	}
	v->seed = seed;
	return value;
}

static __always_inline void step(struct var *v)
{
	if (v->op == RANDOM) {
		__u64 span = (__u64)v->max - v->min + 1;

		v->value = v->min + draw(v) % span;
	} else if (v->op == INC) {
		__u32 left = v->max - v->value;

		v->value = left >= v->step ? v->value + v->step : v->min + (v->step - left - 1);
	} else {
		__u32 left = v->value - v->min;

		v->value = left >= v->step ? v->value - v->step : v->max - (v->step - left - 1);
	}
}

/* The `len` bytes of the head from `at` on; 0: they are not all in it.
 *
 * The offset is opaque to the compiler, so that it compares the very register that it adds. It may
 * otherwise merge this comparison with another one and make it of a copy, which is no bound to the
 * verifiers of Linux 6.1 and 6.12. */
static __always_inline __u8 *part(__u8 *head, __u64 at, __u32 len)
{
	asm volatile("" : "+r"(at));
	return at <= HEAD - len ? head + at : 0;
}

static __always_inline void put(__u8 *head, struct var *v)
{
	__u8 *p = part(head, v->at, 4);

	if (!p)
		return;
	if (v->width == 1)
		*p = v->value;
	else if (v->width == 2)
		*(__u16 *)p = bpf_htons(v->value);
	else
		*(__u32 *)p = bpf_htonl(v->value);
}

/* A mark has the packet's number in bytes 4 to 7 and its time in nanoseconds in the last 8, both
 * little-endian. The number of the next packet stays in the head. */
static __always_inline void put_mark(__u8 *head, __u32 at)
{
	__u8 *p = part(head, at, MARK);

	if (p)
		*(__u64 *)(p + 8) = bpf_ktime_get_ns() - live.epoch;
}

static __always_inline void count_mark(__u8 *head, __u32 at)
{
	__u8 *p = part(head, at, MARK);

	if (p)
		*(__u32 *)(p + 4) += 1;
}

static __always_inline void fix_checksum(__u8 *head, __u32 at)
{
	__u8 *ip = at ? part(head, at, IP4_LEN) : 0;
	__u64 sum;

	if (!ip)
		return;
	*(__u16 *)(ip + 10) = 0;
	sum = (__u64)LOAD32(ip) + LOAD32(ip + 4) + LOAD32(ip + 8) + LOAD32(ip + 12) + LOAD32(ip + 16);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	*(__u16 *)(ip + 10) = ~sum;
}

static __always_inline int write_head(struct xdp_md *ctx, const __u8 *head)
{
	__u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	int i;

	if (data + NARROW > end)
		return 0;
#pragma unroll
	for (i = 0; i < NARROW; i += 4)
		*(__u32 *)(data + i) = LOAD32(head + i);
	if (!live.wide)
		return 1;
	if (data + WIDE > end)
		return 0;
#pragma unroll
	for (i = NARROW; i < WIDE; i += 4)
		*(__u32 *)(data + i) = LOAD32(head + i);
	return 1;
}

SEC("xdp")
int parshall_live(struct xdp_md *ctx)
{
	struct way *w = next_way();
	struct stream *s;
	int i, surplus;

	if (!w)
		return XDP_DROP;
	s = &w->stream[next_stream(w)];
	for (i = 0; i < VARS; i++) {
		if (i >= s->vars)
			break;
		if (s->var[i].op == RANDOM)
			step(&s->var[i]);
		put(s->head, &s->var[i]);
		if (s->var[i].op != RANDOM)
			step(&s->var[i]);
	}
	if (s->vars)
		fix_checksum(s->head, s->ip4_at);
	if (s->mark_at)
		put_mark(s->head, s->mark_at);
	if (!write_head(ctx, s->head))
		return XDP_ABORTED;
	if (s->mark_at)
		count_mark(s->head, s->mark_at);
	surplus = live.frame_len - s->len;
	if (surplus && bpf_xdp_adjust_tail(ctx, -surplus))
		return XDP_ABORTED;
	s->packets++;
	s->bytes += s->len;
	return bpf_redirect(w->ifindex, 0);
}

char _license[] SEC("license") = "Apache-2.0";
