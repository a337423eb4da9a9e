//! The processor, from /proc/cpuinfo.

use std::fmt;
use std::fs;
use std::io;

use serde::Serialize;

/// Capabilities worth showing: the kernel's names, and the usual ones.
const FLAGS: &[(&str, &str)] = &[
    ("pni", "sse3"),
    ("pclmulqdq", "pclmulqdq"),
    ("ssse3", "ssse3"),
    ("sse4_1", "sse41"),
    ("sse4_2", "sse42"),
    ("avx", "avx"),
    ("rdrand", "rdrand"),
    ("avx2", "avx2"),
    ("bmi2", "bmi2"),
    ("avx512f", "avx512f"),
    ("rdseed", "rdseed"),
    ("aes", "aes"),
    ("sha_ni", "sha"),
    ("vaes", "vaes"),
    ("vpclmulqdq", "vpclmulqdq"),
    ("avx512_vnni", "avx512_vnni"),
    ("avx512_bitalg", "avx512_bitalg"),
    ("avx512_vpopcntdq", "avx512_vpopcntdq"),
    ("fma", "fma"),
    ("movbe", "movbe"),
    ("popcnt", "popcnt"),
    ("f16c", "f16c"),
    ("bmi1", "bmi1"),
    ("abm", "lzcnt"),
    ("constant_tsc", "constant_tsc"),
    ("nonstop_tsc", "invariant_tsc"),
    ("asimd", "asimd"),
    ("crc32", "crc32"),
    ("hypervisor", "hypervisor"),
];

/// The output of `show cpu`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Cpu {
    /// The maker's name for it.
    pub model: String,
    /// Family, model and stepping.
    pub family: Option<(u32, u32, u32)>,
    /// The features that matter here.
    pub flags: Vec<&'static str>,
    /// Clock of the first processor as the kernel sees it, in GHz.
    pub frequency: Option<f64>,
    /// Processors that are on line.
    pub processors: usize,
}

impl Cpu {
    /// Reads /proc/cpuinfo.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read() -> io::Result<Cpu> {
        Ok(Self::parse(&fs::read_to_string("/proc/cpuinfo")?))
    }

    fn parse(text: &str) -> Cpu {
        let field = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(':'));
            lines
                .find(|(key, _)| key.trim() == name)
                .map(|(_, value)| value.trim())
        };
        let number = |name| field(name).and_then(|value| value.parse().ok());
        let flags: Vec<&str> = field("flags")
            .or(field("Features"))
            .unwrap_or_default()
            .split(' ')
            .collect();
        Cpu {
            model: field("model name")
                .or(field("CPU part"))
                .unwrap_or("unknown")
                .to_owned(),
            family: number("cpu family")
                .zip(number("model"))
                .zip(number("stepping"))
                .map(|((f, m), s)| (f, m, s)),
            flags: FLAGS
                .iter()
                .filter(|(name, _)| flags.contains(name))
                .map(|(_, shown)| *shown)
                .collect(),
            frequency: field("cpu MHz")
                .and_then(|mhz| mhz.parse().ok())
                .map(|mhz: f64| mhz / 1000.0),
            processors: text
                .lines()
                .filter(|line| line.starts_with("processor"))
                .count(),
        }
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |name: &str, value: String| writeln!(f, "{:<26}{value}", format!("{name}:"));
        line("Model name", self.model.clone())?;
        if let Some((family, model, stepping)) = self.family {
            line(
                "Family",
                format!("{family:#04x} model {model:#04x} stepping {stepping:#x}"),
            )?;
        }
        line("Flags", self.flags.join(" "))?;
        if let Some(frequency) = self.frequency {
            line("Frequency", format!("{frequency:.4} GHz"))?;
        }
        line("Processors", self.processors.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_prints_is_read() {
        let text = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nstepping\t: 1\n\
                    cpu MHz\t\t: 2595.200\nflags\t\t: fpu pni avx2 sha_ni\n\nprocessor\t: 1\n";
        let cpu = Cpu::parse(text);
        assert_eq!(
            (cpu.model.as_str(), cpu.processors, cpu.family),
            ("AMD EPYC", 2, Some((25, 17, 1)))
        );
        let shown = cpu.to_string();
        assert!(
            shown.starts_with("Model name:               AMD EPYC\n"),
            "{shown}"
        );
        assert!(
            shown.contains("Flags:                    sse3 avx2 sha\n"),
            "{shown}"
        );
        assert!(shown.contains("2.5952 GHz"), "{shown}");
    }

    #[test]
    fn what_is_not_there_is_not_shown() {
        let nothing = "Model name:               unknown\nFlags:                    \nProcessors:               0\n";
        for text in [
            "",
            ":",
            "model name",
            "flags:\ncpu MHz: fast\n",
            "cpu family: 6\n",
        ] {
            assert_eq!(Cpu::parse(text).to_string(), nothing, "{text:?}");
        }
    }
}
