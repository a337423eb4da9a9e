use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use testbed::Directory;

/// A library with the same door as T-Rex's. The profile's function `say` gives what is printed.
const LIBRARY: &str = "
class Stream:
    def __init__(self, what): self.what = what
    def to_json(self): return self.what
class STLProfile:
    @staticmethod
    def load_py(path, direction, port_id, **settings):
        names = {}
        exec(open(path).read(), names)
        STLProfile.said = names['say'](settings)
        return STLProfile()
    def get_streams(self): return [Stream(self.said)]
";

/// A directory with the library and the profile `text`, which anybody may read, and the command
/// that compiles it. None without Python, which is said in the name of the test.
fn prepared(test: &str, text: &str, tunables: &str, limit: u32) -> Option<(Directory, Command)> {
    let directory = Directory::new();
    let package = directory.path().join("trex/stl");
    fs::create_dir_all(&package).unwrap();
    fs::write(package.join("api.py"), LIBRARY).unwrap();
    let file = directory.path().join("mine.py");
    fs::write(&file, text).unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let tunables = Tunables::parse(tunables).unwrap();
    let mut python = command(&file, Way::Out, &tunables, limit);
    // The system's own, which every user may run.
    python.env("PATH", "/usr/bin:/bin");
    if !Path::new("/usr/bin/python3").exists() {
        testbed::skip(test, "needs /usr/bin/python3");
        return None;
    }
    add_library(&mut python, Some(directory.path()), Vec::new()).unwrap();
    Some((directory, python))
}

/// Runs it as who runs the test.
fn run(python: &mut Command) -> Result<String, String> {
    super::run(python, |_| None)
}

#[test]
fn nothing_of_the_current_directory_runs() {
    let text = "def say(settings): return 'fine'";
    let Some((directory, mut python)) =
        prepared("nothing_of_the_current_directory_runs", text, "", 60)
    else {
        return;
    };
    let here = Directory::new();
    for module in ["json", "signal", "trex", "pwd", "sitecustomize"] {
        let file = here.path().join(module).with_extension("py");
        fs::write(file, "raise SystemExit('it ran')").unwrap();
    }
    python.current_dir(here.path());
    assert_eq!(run(&mut python), Ok("[\"fine\"]".to_owned()));
    // An empty place in the user's own path is the current directory too.
    let places = env::split_paths(":/nowhere::").collect();
    add_library(&mut python, Some(directory.path()), places).unwrap();
    assert_eq!(run(&mut python), Ok("[\"fine\"]".to_owned()));
}

#[test]
fn settings_have_types() {
    let text = "def say(settings): return settings";
    let settings = "n=64,m=-3,d=0.5,x=0x1f,q='12',w=\"0x1\",t=imix,a=10.0.0.1,z=0xyz,one='";
    let Some((_directory, mut python)) = prepared("settings_have_types", text, settings, 60) else {
        return;
    };
    let said: serde_json::Value = serde_json::from_str(&run(&mut python).unwrap()).unwrap();
    let wanted = serde_json::json!([{
        "n": 64, "m": -3, "d": 0.5, "x": 31, "q": "12", "w": "0x1", "t": "imix",
        "a": "10.0.0.1", "z": "0xyz", "one": "'",
    }]);
    assert_eq!(said, wanted);
}

#[test]
fn the_users_own_path_stays() {
    let text = "import mine_too\ndef say(settings): return mine_too.WORD";
    let Some((directory, mut python)) = prepared("the_users_own_path_stays", text, "", 60) else {
        return;
    };
    let error = run(&mut python).unwrap_err();
    assert!(error.contains("No module named 'mine_too'"), "{error}");
    let own = Directory::new();
    fs::write(own.path().join("mine_too.py"), "WORD = 'own'").unwrap();
    let places = vec![own.path().to_owned()];
    add_library(&mut python, Some(directory.path()), places).unwrap();
    assert_eq!(run(&mut python), Ok("[\"own\"]".to_owned()));
}

#[test]
fn a_module_that_the_library_needs_is_named() {
    let Some((directory, mut python)) =
        prepared("a_module_that_the_library_needs_is_named", "", "", 60)
    else {
        return;
    };
    let library = directory.path().join("trex/stl/api.py");
    fs::write(library, "import no_such_module").unwrap();
    let error = run(&mut python).unwrap_err();
    assert!(error.contains("'no_such_module'"), "{error}");
    assert!(!error.contains("no T-Rex library"), "{error}");
}

#[test]
fn a_profile_that_never_ends_is_ended() {
    let text = "while True: pass";
    let Some((_directory, mut python)) =
        prepared("a_profile_that_never_ends_is_ended", text, "", 1)
    else {
        return;
    };
    let error = run(&mut python).unwrap_err();
    assert!(error.contains("takes too long"), "{error}");
}

/// Environment with sudo's variables, in this order: user, group.
fn sudo(ids: [Option<&'static str>; 2]) -> impl Fn(&str) -> Option<OsString> {
    move |name| match name {
        "SUDO_UID" => ids[0].map(Into::into),
        "SUDO_GID" => ids[1].map(Into::into),
        _ => None,
    }
}

#[test]
fn sudo_names_who_called_or_is_refused() {
    let of = |ids| caller(sudo(ids));
    assert_eq!(of([Some("1000"), Some("100")]), Ok(Some((1000, 100))));
    assert_eq!(of([None, None]), Ok(None));
    for (ids, why) in [
        ([Some("1000"), None], "SUDO_GID is not set"),
        ([None, Some("100")], "SUDO_UID is not set"),
        ([Some("x"), Some("100")], "SUDO_UID=x is not a number"),
        ([Some("1000"), Some("")], "SUDO_GID= is not a number"),
        ([Some("-1"), Some("100")], "SUDO_UID=-1 is not a number"),
    ] {
        let error = of(ids).unwrap_err();
        assert!(error.starts_with(why), "{ids:?}: {error}");
    }
}

#[test]
fn under_sudo_it_runs_as_the_caller() {
    let test = "under_sudo_it_runs_as_the_caller";
    if !rustix::process::getuid().is_root() {
        return testbed::skip(test, "needs root");
    }
    let text = "import os\ndef say(settings): return [os.getresuid(), os.getresgid(), os.getgroups(), os.path.expanduser('~') != '/root']";
    let Some((_directory, mut python)) = prepared(test, text, "", 60) else {
        return;
    };
    let error = super::run(&mut python, sudo([Some("65534"), None])).unwrap_err();
    assert!(error.starts_with("SUDO_GID is not set"), "{error}");
    let said = super::run(&mut python, sudo([Some("65534"), Some("65533")]));
    let wanted = "[[[65534, 65534, 65534], [65533, 65533, 65533], [], true]]";
    assert_eq!(said, Ok(wanted.to_owned()));
}
