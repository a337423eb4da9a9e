//! Profiles in all kinds of files.

use std::fs;
use std::path::Path;
use std::time::Duration;

use loadgen::model::profile::{self, Tunables, Way};
use testbed::{Directory, Spawn};

const PROFILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/profiles");

fn open(file: &Path) -> Result<Vec<loadgen::model::stream::Stream>, String> {
    let name = file.display().to_string();
    profile::open(&name, Way::Out, &Tunables::default()).map_err(|e| e.to_string())
}

#[test]
fn yaml_says_the_same_as_json() {
    let directory = Directory::new();
    let mut count = 0;
    for entry in fs::read_dir(PROFILES).unwrap() {
        let json = entry.unwrap().path();
        let value: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
        let yaml = directory.path().join("profile.yaml");
        fs::write(&yaml, serde_saphyr::to_string(&value).unwrap()).unwrap();
        assert_eq!(open(&yaml), open(&json), "{}", json.display());
        count += 1;
    }
    assert!(count > 20, "{count}");
}

/// The console's YAML has name and next beside the stream, not in it.
#[test]
fn a_stream_may_lie_one_level_deeper() {
    let directory = Directory::new();
    let file = directory.path().join("a.yml");
    let text = "
- name: first
  next: second
  stream:
    mode: {type: single_burst, total_pkts: 3, rate: {type: pps, value: 10}}
    packet: {binary: AAAAAQAAAAAAAgAACAA=}
- name: second
  stream:
    self_start: false
    mode: {type: single_burst, total_pkts: 1, rate: {type: pps, value: 10.5}}
    packet: {binary: AAAAAQAAAAAAAgAACAA=}
";
    fs::write(&file, text).unwrap();
    let streams = open(&file).unwrap();
    assert_eq!((streams.len(), streams[0].next), (2, Some(1)));
    fs::write(&file, text.replace("next: second", "next: third")).unwrap();
    let error = open(&file).unwrap_err();
    assert!(
        error.ends_with("stream `first`: next `third`: no such stream"),
        "{error}"
    );
    fs::write(&file, text.replace("- name", "- {name")).unwrap();
    let error = open(&file).unwrap_err();
    assert!(
        error.contains("not a YAML list") && !error.contains('\n'),
        "{error}"
    );
}

#[test]
fn files_that_are_not_there_or_cut_off() {
    let directory = Directory::new();
    for kind in ["json", "yaml", "pcap", "py"] {
        let error = open(&directory.path().join("none").with_extension(kind)).unwrap_err();
        assert!(error.contains("none.") && !error.contains('\n'), "{error}");
    }
    let cut = directory.path().join("cut.pcap");
    fs::write(&cut, [0xd4, 0xc3, 0xb2, 0xa1, 2, 0]).unwrap();
    let error = open(&cut).unwrap_err();
    assert!(
        error.contains("cut.pcap: the pcap file ends in the middle"),
        "{error}"
    );
}

/// A library with the same door as T-Rex's: what is tested is how it is called.
const LIBRARY: &str = "
import importlib.util
class STLProfile:
    def __init__(self, streams): self.streams = streams
    def get_streams(self): return self.streams
    @staticmethod
    def load_py(path, direction, port_id, **settings):
        spec = importlib.util.spec_from_file_location('profile', path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return STLProfile(module.streams(direction, settings))
";

const PROFILE: &str = "
class Stream:
    def __init__(self, name): self.name = name
    def to_json(self):
        return {'name': self.name, 'mode': {'type': 'continuous', 'rate': {'type': 'pps', 'value': 5}},
                'packet': {'binary': 'AAAAAQAAAAAAAgAACAA='}}
def streams(direction, settings):
    print('a word of its own')
    return [Stream('%d %s' % (direction, settings['size']))]
";

#[test]
fn a_program_is_compiled_by_the_library() {
    let test = "a_program_is_compiled_by_the_library";
    let python = Spawn::new("python3")
        .args(["-c", ""])
        .output(Duration::from_secs(20));
    if !python.is_ok_and(|output| output.status.success()) {
        return testbed::skip(test, "needs python3");
    }
    let directory = Directory::new();
    let file = directory.path().join("mine.py");
    fs::write(&file, PROFILE).unwrap();
    let name = file.display().to_string();
    let error = open(&file).unwrap_err();
    assert!(
        error.contains("no T-Rex library") && error.contains("--trex"),
        "{error}"
    );
    let package = directory
        .path()
        .join("automation/trex_control_plane/interactive/trex/stl");
    let settings = Tunables::default().with("size", 64);
    let with = |settings: &Tunables| {
        profile::open_with(&name, Way::Back, settings, Some(directory.path()))
    };
    let error = with(&settings).unwrap_err().to_string();
    assert!(error.contains("there is no T-Rex library in"), "{error}");
    fs::create_dir_all(&package).unwrap();
    fs::write(package.join("api.py"), LIBRARY).unwrap();
    let streams = with(&settings).unwrap();
    assert_eq!((streams.len(), streams[0].name.as_str()), (1, "1 64"));
    // The library by its other name, as Python's package index has it.
    let old = Directory::new();
    let package = old.path().join("trex_stl_lib");
    fs::create_dir(&package).unwrap();
    fs::write(package.join("api.py"), LIBRARY).unwrap();
    let by_old = profile::open_with(&name, Way::Back, &settings, Some(old.path()));
    assert_eq!(by_old.unwrap(), streams);
    let error = with(&Tunables::default()).unwrap_err().to_string();
    assert!(
        error.contains("KeyError: 'size'") && !error.contains('\n'),
        "{error}"
    );
}
