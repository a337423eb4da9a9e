//! A configuration as text.

use serde_json::Value;

use super::model::{Config, State, SubInterface};
use super::{language, yaml};

impl Config {
    /// The text of a configuration: [`Config::parse`] reads it as one that means the same. Secrets
    /// are in it.
    pub fn dump(&self) -> String {
        let mut json = self.shown();
        for (name, port) in &self.ports {
            let memif = port.memif.as_ref();
            if let Some(secret) = memif.and_then(|memif| memif.secret.as_ref()) {
                json["ports"][name]["memif"]["secret"] = secret.reveal().into();
            }
        }
        text(&json)
    }

    /// The same without secrets, for people.
    pub fn text(&self) -> String {
        text(&self.shown())
    }

    /// The same for programs.
    pub fn shown(&self) -> Value {
        let mut config = self.clone();
        let interfaces = config.interfaces.values_mut();
        for sub in interfaces.flat_map(|interface| interface.sub_interfaces.values_mut()) {
            // One without any field would be refused.
            if *sub == SubInterface::default() {
                sub.state = Some(State::Up);
            }
        }
        // Plain data with text as keys can be nothing but JSON.
        serde_json::to_value(&config).unwrap_or_default()
    }
}

fn text(json: &Value) -> String {
    let nothing = serde_json::Map::new();
    let object = json.as_object().unwrap_or(&nothing);
    yaml::write(&language::print(object, language::DOCUMENT))
}
