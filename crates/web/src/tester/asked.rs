//! What a load test is asked for, as arguments of `parshall loadtest`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use utoipa::ToSchema;

use super::{PROFILE, REPORT, RESULT};

/// A load test, in the words of `parshall loadtest`.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asked {
    /// Port to send by, one for each direction: `live:IF`, `af_xdp:IF`, `memif:PATH,…`.
    tx: Vec<String>,
    /// Port that receives what the port of the same place in `tx` sends: `sink:IF`, `af_xdp:IF`,
    /// `memif:PATH,…`.
    rx: Vec<String>,
    /// Name of a built-in profile; `bench` if there is no other.
    profile: Option<String>,
    /// A compiled profile, YAML or JSON, in place of a name.
    #[serde(default)]
    pub(super) profile_text: Option<String>,
    /// Settings of the profile: `KEY=VALUE`.
    #[serde(default)]
    tunable: Vec<String>,
    /// Source Ethernet address, one for each direction.
    #[serde(default)]
    src_mac: Vec<String>,
    /// Destination Ethernet address, one for each direction.
    #[serde(default)]
    dst_mac: Vec<String>,
    /// Other options by their long names without dashes, such as `rate` or `duration`.
    #[serde(default)]
    options: BTreeMap<String, String>,
}

/// Options that may be given. The others write files, run commands, or say how the command talks.
const OPTIONS: [&str; 17] = [
    "budget",
    "cores",
    "cpu",
    "direction",
    "duration",
    "flow-id-base",
    "hold",
    "latency-rate",
    "line-rate",
    "loss",
    "ramp",
    "rate",
    "search",
    "steps",
    "trial",
    "warmup",
    "warmup-rate",
];

impl Asked {
    /// Checks what the command itself would let pass, but only its own user may ask for: the
    /// machine's files, and programs.
    pub fn check(&self) -> Result<(), String> {
        for port in self.tx.iter().chain(&self.rx) {
            let kind = port.split_once(':').map_or("", |(kind, _)| kind);
            if !["live", "sink", "af_xdp", "memif"].contains(&kind) {
                return Err(format!(
                    "port `{port}`: a load test of the page has ports live:IF, sink:IF, af_xdp:IF and memif:PATH,..."
                ));
            }
        }
        let words = |port: &String| {
            port.split(',')
                .any(|word| word.trim().starts_with("secret-file"))
        };
        if self.tx.iter().chain(&self.rx).any(words) {
            return Err("`secret-file=`: the page reads no files; use `parshall loadtest`".into());
        }
        match (&self.profile, &self.profile_text) {
            (Some(_), Some(_)) => {
                return Err("both `profile` and `profile_text` are given: leave one out".into());
            }
            (Some(name), _) if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => {
                return Err(format!(
                    "profile `{name}`: here it is the name of a built-in one; give the text of another as `profile_text`"
                ));
            }
            _ => {}
        }
        match self
            .options
            .keys()
            .find(|name| !OPTIONS.contains(&&***name))
        {
            Some(name) => Err(format!(
                "option `{name}` is not known here; there are {}",
                OPTIONS.join(", ")
            )),
            None if self.tx.is_empty() || self.rx.is_empty() => {
                Err("name a port to send by and one to receive by: `tx` and `rx`".into())
            }
            None => Ok(()),
        }
    }

    /// The arguments, with the test's files in `directory`. A value is part of its option's
    /// argument, so none can become another option.
    pub fn arguments(&self, directory: &Path) -> Vec<String> {
        let file = |name| directory.join(name).display().to_string();
        let profile = match &self.profile_text {
            Some(_) => Some(file(PROFILE)),
            None => self.profile.clone(),
        };
        let repeated = [
            ("tx", &self.tx),
            ("rx", &self.rx),
            ("tunable", &self.tunable),
            ("src-mac", &self.src_mac),
            ("dst-mac", &self.dst_mac),
        ];
        let repeated = repeated
            .iter()
            .flat_map(|(name, values)| values.iter().map(move |value| (*name, value)));
        let options = self.options.iter().map(|(name, value)| (&**name, value));
        let profile = profile.as_ref().map(|profile| ("profile", profile));
        let mut arguments = vec!["loadtest".to_owned()];
        arguments.extend(
            repeated
                .chain(profile)
                .chain(options)
                .map(|(name, value)| format!("--{name}={value}")),
        );
        arguments.push("--progress=json".into());
        arguments.push(format!("--json={}", file(RESULT)));
        arguments.push(format!("--output={}", file(REPORT)));
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Asked {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_value_never_becomes_an_option() {
        let asked = read(
            r#"{"tx": ["live:a"], "rx": ["sink:b"], "profile": "imix", "tunable": ["--json=/x"],
            "options": {"rate": "--output=/y", "search": "max-rate"}}"#,
        );
        asked.check().unwrap();
        assert_eq!(
            asked.arguments(Path::new("/d")).join(" "),
            "loadtest --tx=live:a --rx=sink:b --tunable=--json=/x --profile=imix --rate=--output=/y \
             --search=max-rate --progress=json --json=/d/result.json --output=/d/report.html"
        );
    }

    #[test]
    fn files_and_programs_are_refused() {
        for (json, why) in [
            (
                r#"{"tx": ["pcap:/etc/passwd"], "rx": []}"#,
                "port `pcap:/etc/passwd`",
            ),
            (r#"{"tx": [], "rx": ["eth0"]}"#, "port `eth0`"),
            (
                r#"{"tx": [], "rx": [], "profile": "/etc/x.py"}"#,
                "the name of a built-in one",
            ),
            (
                r#"{"tx": [], "rx": [], "profile": "bench", "profile_text": ""}"#,
                "leave one out",
            ),
            (
                r#"{"tx": [], "rx": [], "options": {"power-meter": "true"}}"#,
                "option `power-meter` is not known",
            ),
            (
                r#"{"tx": [], "rx": [], "options": {"trex": "/x"}}"#,
                "option `trex` is not known",
            ),
            (
                r#"{"tx": ["memif:@a,secret-file=/etc/shadow"], "rx": ["memif:@b"]}"#,
                "the page reads no files",
            ),
            (r#"{"tx": ["live:a"], "rx": []}"#, "one to receive by"),
        ] {
            let said = read(json).check().unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }
}
