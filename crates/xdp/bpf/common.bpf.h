/* What the programs share: map definitions, byte order, headers. */
#ifndef PARSHALL_COMMON_BPF_H
#define PARSHALL_COMMON_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* The AF_XDP sockets that a program can give packets to, by queue of its device. */
#define AF_XDP_SOCKETS(name)                          \
	struct {                                      \
		__uint(type, BPF_MAP_TYPE_XSKMAP);    \
		__type(key, __u32);                   \
		__type(value, __u32);                 \
		__uint(max_entries, 256);             \
	} name SEC(".maps")

#define ETH_LEN 14
#define ETHERTYPE_IP4 0x0800
#define ETHERTYPE_IP6 0x86dd
#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_SERVICE_VLAN 0x88a8
#define TAG_LEN 4
#define IP4_LEN 20
#define IP4_VERSION 4
#define IP4_IHL 5
#define IP6_LEN 40
#define IP6_VERSION 6
#define UDP_LEN 8
#define VXLAN_LEN 8

/* Packet and map memory may be read unaligned where BPF runs (x86-64, arm64). */
#define LOAD16(p) (*(const __u16 *)(p))
#define LOAD32(p) (*(const __u32 *)(p))
#define LOAD64(p) (*(const __u64 *)(p))

#endif
