//! Facts about the machine: its processor and what is on its PCI bus.

pub mod cpu;
pub mod pci;
