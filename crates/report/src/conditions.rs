//! The conditions of a measurement, by which others can be compared with it.

use serde::{Deserialize, Serialize};

/// What a measurement ran on and how fast that was at the moment. Keys are kept as those of the
/// results are; all but the first two are newer than some files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// Processor time that the hypervisor took, in percent of all processor time.
    pub steal_percent: f64,
    /// TSC cycles of an addition that needs the one before, before and after; null if not known.
    pub cycles_per_add: Option<(f64, f64)>,
    /// What governs the processors' frequency, by name; `none` if nothing does that we could see.
    #[serde(default)]
    pub governor: String,
    /// Packets a second that the generator reached when it sent as fast as it could; null if it
    /// never did.
    #[serde(default)]
    pub ceiling_pps: Option<f64>,
    /// Packets that were due and that the generator did not send; null if nothing was due.
    #[serde(default)]
    pub unsent: Option<u64>,
    /// Processors that the generator was bound to; empty: none.
    #[serde(default)]
    pub generator_cpus: Vec<usize>,
    /// Processors that the device's workers were bound to; empty: none, or not known.
    #[serde(default)]
    pub device_cpus: Vec<usize>,
    /// Why what is null or empty here is so, where the result knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Ports and the mode each ran in, where the result does not have them elsewhere.
    #[serde(default)]
    pub ports: Vec<PortMode>,
}

/// A port of a device under test or of the generator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PortMode {
    /// Its user: `generator`, `kernel`, `parshall` ...
    pub user: String,
    /// Interface name or a pattern of names.
    pub name: String,
    /// Driver or kind: `veth`, `memif`.
    pub driver: String,
    /// Mode it ran in: `zero-copy`, `driver copy`, `generic`, `XDP live frames`, `kernel
    /// forwarding` ...
    pub mode: String,
}

/// Steal above this disturbs a measurement, in percent.
const STEAL: f64 = 5.0;
/// Change of a processor's speed that disturbs a measurement, as a share.
const SPEED: f64 = 0.1;

impl Conditions {
    /// Why a measurement under them does not count; None if it does.
    pub fn disturbed(&self) -> Option<String> {
        if self.steal_percent > STEAL {
            let steal = self.steal_percent;
            return Some(format!(
                "the hypervisor took {steal:.1} % of the processors"
            ));
        }
        let (before, after) = self.cycles_per_add?;
        let is_steady = before.max(after) <= before.min(after) * (1.0 + SPEED);
        (!is_steady).then(|| {
            format!("the processor's speed changed: an addition took {before:.2}, then {after:.2} cycles")
        })
    }

    /// Names and values for people; of what is not known there is no value.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let cpus = |cpus: &[usize]| match cpus {
            [] => "not bound".to_owned(),
            some => some
                .iter()
                .map(usize::to_string)
                .collect::<Vec<_>>()
                .join(", "),
        };
        let port = |port: &PortMode| format!("{} ({})", port.name, port.mode);
        let steal = self.steal_percent;
        let facts = [
            ("generator's processors", Some(cpus(&self.generator_cpus))),
            (
                "device's processors",
                (!self.device_cpus.is_empty()).then(|| cpus(&self.device_cpus)),
            ),
            (
                "ports",
                (!self.ports.is_empty())
                    .then(|| self.ports.iter().map(port).collect::<Vec<_>>().join(", ")),
            ),
            (
                "generator's ceiling",
                self.ceiling_pps.map(|pps| format!("{:.3} Mpps", pps / 1e6)),
            ),
            ("packets not sent", self.unsent.map(|n| n.to_string())),
            (
                "steal",
                Some(format!("{steal:.1} % of the processors' time")),
            ),
            (
                "an addition's TSC cycles",
                self.cycles_per_add
                    .map(|(before, after)| format!("{before:.2} before, {after:.2} after")),
            ),
            (
                "frequency governor",
                Some(self.governor.clone()).filter(|g| !g.is_empty()),
            ),
            ("disturbed", self.disturbed()),
        ];
        let known = facts
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        known.collect()
    }

    /// The facts as lines of text.
    pub fn text(&self) -> String {
        let line = |(name, value): (&str, String)| format!("  {name}: {value}\n");
        self.facts().into_iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_disturbs_is_named() {
        let said = |steal_percent, cycles_per_add| {
            let conditions = Conditions {
                steal_percent,
                cycles_per_add,
                ..Conditions::default()
            };
            conditions.disturbed()
        };
        assert_eq!(said(1.0, Some((1.0, 1.09))), None);
        assert_eq!(said(1.0, None), None);
        assert!(said(6.0, None).unwrap().contains("6.0 %"));
        for speed in [(1.0, 1.2), (1.2, 1.0)] {
            assert!(said(0.0, Some(speed)).unwrap().contains("speed changed"));
        }
    }

    /// Files of before most keys were there are read, and what they do not have is not shown.
    #[test]
    fn older_files_are_read() {
        let old = r#"{"steal_percent": 0.5, "cycles_per_add": [1.0, 1.0]}"#;
        let conditions: Conditions = serde_json::from_str(old).unwrap();
        assert_eq!((conditions.unsent, conditions.ceiling_pps), (None, None));
        let text = conditions.text();
        assert!(
            text.contains("  steal: 0.5 % of the processors' time\n"),
            "{text}"
        );
        assert!(
            !text.contains("not sent") && !text.contains("governor"),
            "{text}"
        );
    }
}
