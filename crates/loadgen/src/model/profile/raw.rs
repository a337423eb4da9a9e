//! The instructions of a compiled profile as they are written in the file.

use serde::Deserialize;
use serde_json::Value;

/// A name, which may also be a number in the file.
#[derive(Deserialize)]
#[serde(try_from = "Value")]
pub(super) struct Name(pub String);

impl TryFrom<Value> for Name {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        match value {
            Value::String(name) => Ok(Self(name)),
            Value::Number(number) => Ok(Self(number.to_string())),
            other => Err(format!("{other} is not a name: neither text nor a number")),
        }
    }
}

fn yes() -> bool {
    true
}

fn one() -> u64 {
    1
}

#[derive(Deserialize)]
pub(super) struct RawVariable {
    pub name: Name,
    pub size: u8,
    pub op: String,
    pub init_value: Option<u64>,
    pub min_value: Option<u64>,
    pub max_value: Option<u64>,
    pub value_list: Option<Vec<u64>>,
    #[serde(default = "one")]
    pub step: u64,
    pub next_var: Option<Name>,
    #[serde(default = "yes")]
    pub split_to_cores: bool,
}

#[derive(Deserialize)]
pub(super) struct RawRandom {
    pub name: Name,
    pub size: u8,
    pub limit: u64,
    pub seed: Option<u32>,
    #[serde(default)]
    pub min_value: u64,
    pub max_value: u64,
    pub next_var: Option<Name>,
    #[serde(default = "yes")]
    pub split_to_cores: bool,
}

#[derive(Deserialize)]
pub(super) struct RawTuple {
    pub name: Name,
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
    pub name: Name,
    pub pkt_offset: usize,
    #[serde(default)]
    pub add_value: i64,
    #[serde(default = "yes")]
    pub is_big_endian: bool,
}

#[derive(Deserialize)]
pub(super) struct RawMask {
    pub name: Name,
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
    pub name: Name,
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
