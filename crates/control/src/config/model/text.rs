//! Ethernet addresses as text.

use serde::{Deserialize, Deserializer, Serializer, de::Error};

use router::change::Mac;

use super::super::forms;

pub(super) fn serialize<S: Serializer>(mac: &Option<Mac>, to: S) -> Result<S::Ok, S::Error> {
    match mac {
        Some(mac) => to.collect_str(mac),
        None => to.serialize_none(),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Mac>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    text.map(|text| forms::mac(&text).ok_or_else(|| D::Error::custom("not an Ethernet address")))
        .transpose()
}
