//! Netlink mirror of the kernel, configuration, API, command line.
