//! The instructions of a compiled profile as they are written in the file.

use serde::Deserialize;

fn yes() -> bool {
    true
}

fn one() -> u64 {
    1
}

#[derive(Deserialize)]
pub(super) struct RawVariable {
    pub name: String,
    pub size: u8,
    pub op: String,
    pub init_value: Option<u64>,
    pub min_value: Option<u64>,
    pub max_value: Option<u64>,
    pub value_list: Option<Vec<u64>>,
    #[serde(default = "one")]
    pub step: u64,
    pub next_var: Option<String>,
    #[serde(default = "yes")]
    pub split_to_cores: bool,
}

#[derive(Deserialize)]
pub(super) struct RawRandom {
    pub name: String,
    pub size: u8,
    pub limit: u64,
    pub seed: Option<u32>,
    #[serde(default)]
    pub min_value: u64,
    pub max_value: u64,
    pub next_var: Option<String>,
    #[serde(default = "yes")]
    pub split_to_cores: bool,
}

#[derive(Deserialize)]
pub(super) struct RawTuple {
    pub name: String,
    pub ip_min: u32,
    pub ip_max: u32,
    pub port_min: u16,
    pub port_max: u16,
    #[serde(default)]
    pub limit_flows: u64,
    #[serde(default)]
    pub flags: u32,
}

#[derive(Deserialize)]
pub(super) struct RawWrite {
    pub name: String,
    pub pkt_offset: usize,
    #[serde(default)]
    pub add_value: i64,
    #[serde(default = "yes")]
    pub is_big_endian: bool,
}

#[derive(Deserialize)]
pub(super) struct RawMask {
    pub name: String,
    pub pkt_offset: usize,
    pub pkt_cast_size: u8,
    pub mask: u32,
    #[serde(default)]
    pub shift: i8,
    #[serde(default)]
    pub add_value: i32,
    #[serde(default = "yes")]
    pub is_big_endian: bool,
}

#[derive(Deserialize)]
pub(super) struct RawName {
    pub name: String,
}

#[derive(Deserialize)]
pub(super) struct RawOffset {
    pub pkt_offset: usize,
}

#[derive(Deserialize)]
pub(super) struct RawLayers {
    pub l2_len: usize,
    pub l3_len: usize,
    #[serde(default)]
    pub l4_type: u32,
}
