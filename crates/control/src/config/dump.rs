//! A configuration as text.

use super::model::{Config, State, SubInterface};
use super::{language, yaml};

impl Config {
    /// The text of a configuration: [`Config::parse`] reads it as one that means the same. Secrets
    /// are in it.
    pub fn dump(&self) -> String {
        let mut config = self.clone();
        let interfaces = config.interfaces.values_mut();
        for sub in interfaces.flat_map(|interface| interface.sub_interfaces.values_mut()) {
            // One without any field would be refused.
            if *sub == SubInterface::default() {
                sub.state = Some(State::Up);
            }
        }
        // Plain data with text as keys can be nothing but JSON.
        let mut json = serde_json::to_value(&config).unwrap_or_default();
        for (name, port) in &config.ports {
            let memif = port.memif.as_ref();
            if let Some(secret) = memif.and_then(|memif| memif.secret.as_ref()) {
                json["ports"][name]["memif"]["secret"] = secret.reveal().into();
            }
        }
        let nothing = serde_json::Map::new();
        let object = json.as_object().unwrap_or(&nothing);
        yaml::write(&language::print(object, language::DOCUMENT))
    }
}
