//! Packet formats, one file a protocol; checksums, pcap, packet crafting.
