//! Names of IP protocols and of services, as IANA has assigned them
//! (<https://www.iana.org/assignments/protocol-numbers>, `service-names-port-numbers`), with the
//! aliases that `/etc/protocols` and `/etc/services` usually have. A configuration means the same
//! on every machine, so these files are not asked.

/// Lines of a number and its names.
const PROTOCOLS: &str = include_str!("protocols.txt");
const SERVICES: &str = include_str!("services.txt");

/// The number of a protocol.
pub(crate) fn protocol(name: &str) -> Option<u8> {
    find(PROTOCOLS, name)?.try_into().ok()
}

/// The port of a service.
pub(crate) fn service(name: &str) -> Option<u16> {
    find(SERVICES, name)
}

fn find(table: &str, name: &str) -> Option<u16> {
    let mut lines = table.lines().map(|line| line.split(' '));
    lines.find_map(|mut words| {
        let number = words.next()?.parse().ok()?;
        words.any(|word| word == name).then_some(number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_numbers() {
        for (name, number) in [
            ("tcp", 6),
            ("udp", 17),
            ("icmp", 1),
            ("ipv6-icmp", 58),
            ("ospf", 89),
        ] {
            assert_eq!(protocol(name), Some(number), "{name}");
        }
        for (name, port) in [
            ("www", 80),
            ("http", 80),
            ("https", 443),
            ("bgp", 179),
            ("ssh", 22),
        ] {
            assert_eq!(service(name), Some(port), "{name}");
        }
        assert_eq!((protocol("bogus"), service("80")), (None, None));
    }

    #[test]
    fn no_name_has_two_numbers() {
        for table in [PROTOCOLS, SERVICES] {
            let names = table.lines().flat_map(|line| line.split(' ').skip(1));
            let mut names: Vec<&str> = names.collect();
            names.sort_unstable();
            let all = names.len();
            names.dedup();
            assert_eq!(names.len(), all);
            assert!(all > 50);
        }
    }
}
