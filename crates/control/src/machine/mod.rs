//! Facts about the machine: its processor, its network devices and what is on its PCI bus.

pub mod cpu;
pub mod hardware;
pub mod pci;
