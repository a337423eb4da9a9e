//! Ethernet addresses in JSON: their six bytes.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use router::change::Mac;

pub fn serialize<S: Serializer>(mac: &Option<Mac>, to: S) -> Result<S::Ok, S::Error> {
    mac.map(|mac| mac.0).serialize(to)
}

pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Mac>, D::Error> {
    Ok(Option::<[u8; 6]>::deserialize(from)?.map(Mac))
}
