//! The router as a whole, in memory: nodes, state, golden files, random packets, printers.

mod add_a_node;
mod arp;
mod echo_count;
mod ecmp;
mod eth;
mod features;
mod features6;
mod forward;
mod fragment;
mod fuzz;
mod golden;
mod harness;
mod icmp4;
mod input;
mod interface_output;
mod ip6;
mod ip6_nodes;
mod live;
mod numbers;
mod oracle;
mod output;
mod picture;
mod show;
mod sound;
mod state;
mod vlan;
