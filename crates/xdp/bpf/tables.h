/* The tables' layouts, written by `tables::layout`; a test compares. Fields are read out of their word:
 * X_WORD is the number of the word in its line, X(word) the value. */
#ifndef PARSHALL_TABLES_H
#define PARSHALL_TABLES_H

#define LINE_WORDS 16
#define FIRST_FREE 16
#define ENTRY_EXT 0x80000000u
#define ENTRY_MULTI 0x40000000u
#define ENTRY_GROUP 0x3fffffffu
#define IP6_LEAF 0x40000000u
#define IP6_BYTE(word) ((word) >> 26 & 15)
#define IP6_INDEX 0x3ffffffu
#define IP6_RANGES 8
#define OUTER_TAGS_LINES 8
#define TUNNEL_USED 0x80000000u
#define TUNNEL_STEPS 32
#define TUNNEL_FACTOR 0x9e3779b1u
#define TRANSLATED_LINES 512
#define TRANSLATED_TCP_LINE 1
#define TRANSLATED_UDP_LINE 129
#define TRANSLATED_ECHO_LINE 257
#define GROUP_NO_ROUTE 0
#define GROUP_LOCAL 1
#define GROUP_BROADCAST 2
#define GROUP_PUNT 3
#define GROUP_BLACKHOLE 4
#define GROUP_UNREACHABLE 5
#define GROUP_PROHIBIT 6
#define MODE_DOWN 0
#define MODE_ROUTED 1
#define MODE_UNADDRESSED 2
#define MODE_HOST 3
#define MODE_L2 4
#define KIND_FREE 0
#define KIND_REWRITE 1
#define KIND_GLEAN 2
#define KIND_INCOMPLETE 3
#define KIND_DROP 4
#define KIND_SPECIAL 5
#define INTERFACE_MAC_WORD 0
#define INTERFACE_MAC(word) ((word) >> 0 & 0xffffffff)
#define INTERFACE_MAC_END_WORD 1
#define INTERFACE_MAC_END(word) ((word) >> 0 & 0xffff)
#define INTERFACE_MODE_WORD 1
#define INTERFACE_MODE(word) ((word) >> 16 & 0x7fff)
#define INTERFACE_FEATURED_WORD 1
#define INTERFACE_FEATURED(word) ((word) >> 31 & 0x1)
#define INTERFACE_MTU_WORD 2
#define INTERFACE_MTU(word) ((word) >> 0 & 0xffff)
#define INTERFACE_PEER_WORD 2
#define INTERFACE_PEER(word) ((word) >> 16 & 0xffff)
#define INTERFACE_XDP_FORWARD_WORD 3
#define INTERFACE_XDP_FORWARD(word) ((word) >> 0 & 0x1)
#define INTERFACE_XDP_SEND_WORD 3
#define INTERFACE_XDP_SEND(word) ((word) >> 1 & 0x1)
#define INTERFACE_XDP_SEND_LONG_WORD 3
#define INTERFACE_XDP_SEND_LONG(word) ((word) >> 2 & 0x1)
#define INTERFACE_FEATURES_IN_WORD 4
#define INTERFACE_FEATURES_IN(word) ((word) >> 0 & 0xffffffff)
#define INTERFACE_FEATURES_OUT_WORD 5
#define INTERFACE_FEATURES_OUT(word) ((word) >> 0 & 0xffffffff)
#define INTERFACE_FEATURES_INTERFACE_OUT_WORD 6
#define INTERFACE_FEATURES_INTERFACE_OUT(word) ((word) >> 0 & 0xffffffff)
#define INTERFACE_PARENT_WORD 7
#define INTERFACE_PARENT(word) ((word) >> 0 & 0xffff)
#define INTERFACE_OUTER_TAG_WORD 7
#define INTERFACE_OUTER_TAG(word) ((word) >> 16 & 0xffff)
#define INTERFACE_INNER_TAG_WORD 8
#define INTERFACE_INNER_TAG(word) ((word) >> 0 & 0xffff)
#define INTERFACE_TAGS_WORD 8
#define INTERFACE_TAGS(word) ((word) >> 16 & 0x3)
#define INTERFACE_TAGS_FURTHER_WORD 8
#define INTERFACE_TAGS_FURTHER(word) ((word) >> 18 & 0x1)
#define INTERFACE_L2_WHAT_WORD 9
#define INTERFACE_L2_WHAT(word) ((word) >> 0 & 0xffff)
#define INTERFACE_L2_NUMBER_WORD 9
#define INTERFACE_L2_NUMBER(word) ((word) >> 16 & 0xffff)
#define ADJACENCY_KIND_WORD 0
#define ADJACENCY_KIND(word) ((word) >> 0 & 0xffff)
#define ADJACENCY_TX_IF_WORD 0
#define ADJACENCY_TX_IF(word) ((word) >> 16 & 0xffff)
#define ADJACENCY_MTU_WORD 1
#define ADJACENCY_MTU(word) ((word) >> 0 & 0xffff)
#define ADJACENCY_FAST_MTU_WORD 1
#define ADJACENCY_FAST_MTU(word) ((word) >> 16 & 0xffff)
#define ADJACENCY_HEADER_WORD 2
#define ADJACENCY_HEADER(word) ((word) >> 0 & 0xffffffff)
#define ADJACENCY_NEXT_HOP_WORD 6
#define ADJACENCY_NEXT_HOP(word) ((word) >> 0 & 0xffffffff)
#define ADJACENCY_SOURCE_WORD 10
#define ADJACENCY_SOURCE(word) ((word) >> 0 & 0xffffffff)
#define ADJACENCY_HEADER_END_WORD 14
#define ADJACENCY_HEADER_END(word) ((word) >> 0 & 0xffffffff)
#define TUNNEL_LAST_WORD 0
#define TUNNEL_LAST(word) ((word) >> 0 & 0xffffffff)
#define TUNNEL_FIRST_WORD 1
#define TUNNEL_FIRST(word) ((word) >> 0 & 0xffffffff)
#define TUNNEL_NEXT_WORD 2
#define TUNNEL_NEXT(word) ((word) >> 0 & 0xffffffff)
#define TUNNEL_VNI_WORD 3
#define TUNNEL_VNI(word) ((word) >> 0 & 0xffffffff)
#define TUNNEL_REMOTE_WORD 4
#define TUNNEL_REMOTE(word) ((word) >> 0 & 0xffffffff)
#define TUNNEL_LOCAL_WORD 8
#define TUNNEL_LOCAL(word) ((word) >> 0 & 0xffffffff)

#endif
