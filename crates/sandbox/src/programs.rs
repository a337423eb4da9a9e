//! The programs that are run: whether one is there, and which package has it.

use crate::Error;

/// The Debian package of each program that is run.
const PACKAGES: &[(&str, &str)] = &[
    ("ip", "apt-get install iproute2"),
    ("ethtool", "apt-get install ethtool"),
    ("taskset", "apt-get install util-linux"),
    ("sh", "apt-get install dash"),
    ("iperf3", "apt-get install iperf3"),
    ("bird", "apt-get install bird2"),
    ("dpdk-testpmd", "apt-get install dpdk"),
];

/// The package that has a program, which may be given by its path.
pub fn package(program: &str) -> &'static str {
    let name = program.rsplit('/').next().unwrap_or_default();
    let found = PACKAGES.iter().find(|(known, _)| *known == name);
    found.map_or("no package known", |(_, package)| package)
}

/// The error of a program that cannot be started, with the package that has it.
pub(crate) fn missing(program: &str, source: std::io::Error) -> Error {
    Error::Missing {
        program: program.to_owned(),
        package: package(program),
        source,
    }
}

/// True if `program`, a name or a path, is found: a name in one of the directories of the search
/// path or in the system's own.
pub fn exists(program: &str) -> bool {
    if program.contains('/') {
        return std::path::Path::new(program).is_file();
    }
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':')
        .chain(["/usr/sbin", "/usr/lib/frr"])
        .any(|dir| std::path::Path::new(dir).join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_program_names_package() {
        let error = missing("ethtool", std::io::ErrorKind::NotFound.into());
        assert!(
            error.to_string().contains("apt-get install ethtool"),
            "{error}"
        );
    }

    #[test]
    fn programs_are_found() {
        assert!(exists("sh"));
        assert!(!exists("no-such-program-here"));
    }
}
