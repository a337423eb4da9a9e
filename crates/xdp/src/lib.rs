//! What runs in the kernel: XDP programs, loader, maps, map-backed memory.
