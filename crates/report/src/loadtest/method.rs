//! What a search found, by its method.

use serde::Deserialize;
use serde_json::Value;

use loadgen::measure::search;
use loadgen::search::{Effort, binary, mlrsearch, rfc2544, soak};

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub enum Method {
    /// Bounds for each loss.
    Mlrsearch(mlrsearch::Found),
    /// A rate and its interval.
    MaxRate(search::Found),
    /// Bounds for one loss.
    Binary(binary::Found),
    /// Throughput, frame loss rate, back-to-back frames.
    Rfc2544(rfc2544::Found),
    /// The critical load.
    Soak(soak::Found),
}

impl Method {
    /// Reads the `result` of a method by its name. None of one that is not known here.
    ///
    /// # Errors
    /// The result is not one of this method.
    pub fn read(name: &str, result: &Value) -> Result<Option<Self>, String> {
        let found = match name {
            "mlrsearch" => Deserialize::deserialize(result).map(Self::Mlrsearch),
            "max-rate" => Deserialize::deserialize(result).map(Self::MaxRate),
            "binary" => Deserialize::deserialize(result).map(Self::Binary),
            "rfc2544" => Deserialize::deserialize(result).map(Self::Rfc2544),
            "soak" => Deserialize::deserialize(result).map(Self::Soak),
            _ => return Ok(None),
        };
        found.map(Some).map_err(|e| e.to_string())
    }

    /// The bounds that it found, one for each loss.
    pub fn bounds(&self) -> &[mlrsearch::Bounds] {
        match self {
            Self::Mlrsearch(found) => &found.goals,
            Self::Binary(found) => std::slice::from_ref(&found.bounds),
            Self::Rfc2544(found) => std::slice::from_ref(&found.throughput),
            Self::MaxRate(_) | Self::Soak(_) => &[],
        }
    }

    /// What it took, if that is known.
    pub fn effort(&self) -> Option<&Effort> {
        match self {
            Self::Mlrsearch(found) => Some(&found.effort),
            Self::Binary(found) => Some(&found.effort),
            Self::Rfc2544(found) => Some(&found.effort),
            Self::Soak(found) => Some(&found.effort),
            Self::MaxRate(_) => None,
        }
    }
}
