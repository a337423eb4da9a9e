//! Ports: af_xdp, memif, tap, ring, pcap, null, and wrappers over any port.
