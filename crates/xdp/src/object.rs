//! Built-in objects: parsed, tied to their maps, loaded.
//!
//! Parsing and relocation are aya-obj's. The rest is done here rather than by aya, because several
//! programs share the tables without a pin, because no attachment may outlive the process (aya
//! falls back to netlink, which does), and for live frames.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use aya_obj::programs::XdpAttachType;
use aya_obj::{EbpfSectionKind, Object, ProgramSection};

use crate::error::Error;
use crate::map::{MMAPABLE, Map};
use crate::sys::{self, MapSpec};

/// An ELF file in the binary, aligned as its parser needs it.
#[repr(align(8))]
pub(crate) struct Elf<const N: usize>(pub [u8; N]);

/// Gives the compiled object `$name` as a static slice.
macro_rules! elf {
    ($name:literal) => {{
        const BYTES: &[u8] = include_bytes!(concat!("../bpf/", $name, ".bpf.o"));
        static ELF: $crate::object::Elf<{ BYTES.len() }> =
            $crate::object::Elf(*include_bytes!(concat!("../bpf/", $name, ".bpf.o")));
        &ELF.0
    }};
}
pub(crate) use elf;

/// A program in the kernel, with the maps that were made for it.
#[derive(Debug)]
pub(crate) struct Loaded {
    fd: OwnedFd,
    maps: HashMap<String, Map>,
}

impl Loaded {
    /// Loads the object's program `name`. A map that is among `shared` is used, any other is made.
    pub fn new(elf: &[u8], name: &'static str, shared: &[(&str, &Map)]) -> Result<Self, Error> {
        let broken = |why: String| Error::Object { program: name, why };
        sys::unlimit_locked_memory();
        let mut object = Object::parse(elf).map_err(|e| broken(e.to_string()))?;
        let defined = std::mem::take(&mut object.maps);
        let mut maps = HashMap::new();
        for (map, definition) in &defined {
            if !shared.iter().any(|(shared, _)| shared == map) {
                maps.insert(map.clone(), create(map, definition)?);
            }
        }
        let fd = |map: &str| {
            let shared = shared
                .iter()
                .find(|(name, _)| *name == map)
                .map(|(_, map)| *map);
            shared
                .or_else(|| maps.get(map))
                .map(|map| map.as_fd().as_raw_fd())
        };
        let with_fds = defined
            .iter()
            .filter_map(|(map, definition)| Some((map.as_str(), fd(map)?, definition)));
        let text = object
            .functions
            .keys()
            .map(|(section, _)| *section)
            .collect();
        object
            .relocate_maps(with_fds, &text)
            .map_err(|e| broken(e.to_string()))?;
        object
            .relocate_calls(&text)
            .map_err(|e| broken(e.to_string()))?;
        let fd = load(&object, name)?;
        Ok(Self { fd, maps })
    }

    /// A map that was made for this program.
    ///
    /// # Panics
    /// If the source has no such map.
    pub fn map(&self, name: &str) -> &Map {
        self.maps
            .get(name)
            .unwrap_or_else(|| panic!("the program has a map {name}"))
    }

    /// Runs the program once on a packet that goes nowhere, and gives it back as it is then.
    pub fn run_once(&self, packet: &[u8]) -> Result<(crate::Verdict, Vec<u8>), Error> {
        let run = sys::run_once(self.fd.as_fd(), packet);
        let (verdict, packet) = run.map_err(Error::doing("running a program"))?;
        let verdict = match verdict {
            1 => crate::Verdict::Drop,
            2 => crate::Verdict::Pass,
            3 => crate::Verdict::Tx,
            4 => crate::Verdict::Redirect,
            _ => crate::Verdict::Aborted,
        };
        Ok((verdict, packet))
    }
}

impl AsFd for Loaded {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn create(name: &str, definition: &aya_obj::Map) -> Result<Map, Error> {
    let variables = definition.section_kind() == EbpfSectionKind::Bss;
    let spec = MapSpec {
        kind: definition.map_type(),
        key: definition.key_size(),
        value: definition.value_size(),
        entries: definition.max_entries(),
        flags: definition.map_flags() | if variables { MMAPABLE } else { 0 },
    };
    Map::new(spec, name.trim_start_matches('.'))
}

fn load(object: &Object, name: &'static str) -> Result<OwnedFd, Error> {
    let broken = |why: &str| Error::Object {
        program: name,
        why: why.to_owned(),
    };
    let program = object
        .programs
        .get(name)
        .ok_or_else(|| broken("it has no such program"))?;
    let function = object
        .functions
        .get(&program.function_key())
        .ok_or_else(|| broken("it has no code"))?;
    let flags = match program.section {
        ProgramSection::Xdp {
            frags,
            attach_type: XdpAttachType::Interface,
        } => {
            if frags {
                sys::XDP_HAS_FRAGS
            } else {
                0
            }
        }
        _ => return Err(broken("it is not an XDP program")),
    };
    let code = &function.instructions;
    match sys::prog_load(code, name, &object.license, flags, &mut []) {
        Ok(fd) => Ok(fd),
        Err(source) if source.raw_os_error() == Some(libc::EPERM) => Err(Error::Permission),
        Err(source) => Err(refused(object, code, name, flags, source)),
    }
}

/// Loads once more, for the verifier's log.
fn refused(
    object: &Object,
    code: &[aya_obj::generated::bpf_insn],
    program: &'static str,
    flags: u32,
    source: io::Error,
) -> Error {
    let mut log = vec![0; 1 << 20];
    // It fails as before; what it says is in the log.
    drop(sys::prog_load(
        code,
        program,
        &object.license,
        flags,
        &mut log,
    ));
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<&str> = log.trim_end_matches('\0').lines().rev().take(8).collect();
    let log = lines.into_iter().rev().collect::<Vec<_>>().join("; ");
    Error::Verifier {
        program,
        source,
        log,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Each kernel's verifier is another one: `make test-kernels ARGS=quick` runs this in several.
    #[test]
    fn every_program_of_every_object_loads() {
        if !testbed::root("every_program_of_every_object_loads") {
            return;
        }
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
        let mut refused = Vec::new();
        let mut loaded = Vec::new();
        for entry in std::fs::read_dir(directory).expect("is committed") {
            let path = entry.expect("is readable").path();
            if path.extension() != Some("o".as_ref()) {
                continue;
            }
            let elf = std::fs::read(&path).expect("is readable");
            let object = Object::parse(&elf).expect("is an object");
            for name in object.programs.into_keys() {
                match Loaded::new(&elf, name.clone().leak(), &[]) {
                    Ok(_) => loaded.push(name),
                    Err(e) => refused.push(e.to_string()),
                }
            }
        }
        assert!(refused.is_empty(), "{}", refused.join("\n"));
        loaded.sort();
        assert_eq!(
            loaded,
            [
                "parshall_full",
                "parshall_live",
                "parshall_recv",
                "parshall_router",
                "parshall_sink"
            ]
        );
    }
}
