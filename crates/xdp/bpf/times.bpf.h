/* A histogram of times. */
#ifndef PARSHALL_TIMES_BPF_H
#define PARSHALL_TIMES_BPF_H

/* Times are kept to so many bits behind the leading one, in so many buckets. */
#define TIME_BITS 3
#define TIME_BUCKETS 512

/* In nanoseconds. The smallest is plus 1; 0: none. */
struct times {
	__u64 sum;
	__u64 min;
	__u64 max;
	__u64 bucket[TIME_BUCKETS];
};

/* Below 2^(TIME_BITS + 1) ns a bucket each, above 2^TIME_BITS for each power of two. */
static __always_inline __u32 bucket_of(__u64 ns)
{
	__u64 top = ns >> (TIME_BITS + 1);
	__u32 spare = 0;
	int step;

	/* The bits that `top` takes, by halves. */
#pragma unroll
	for (step = 32; step; step >>= 1) {
		if (top >> step) {
			spare += step;
			top >>= step;
		}
	}
	spare += top;
	return (spare << TIME_BITS) + (ns >> spare);
}

static __always_inline void note_time(struct times *t, __u64 ns)
{
	t->sum += ns;
	if (!t->min || ns < t->min - 1)
		t->min = ns + 1;
	if (ns > t->max)
		t->max = ns;
	t->bucket[bucket_of(ns) & (TIME_BUCKETS - 1)]++;
}

#endif
