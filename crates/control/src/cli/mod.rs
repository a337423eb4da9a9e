//! The commands that a running router understands: one table that drives matching, help and
//! completion.
//!
//! Words may be shortened to any prefix that only one of them has: `sh run` is `show runtime`.

mod commands;
mod options;
pub mod packet;

use std::fmt;
use std::net::IpAddr;

pub use commands::{Argument, COMMANDS, Form, Spec, Verb};
pub use options::{Given, ports, protocol_number};
use router::Family;
use router::change::Prefix;

/// A command as understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The command's effect.
    pub verb: Verb,
    /// Its row.
    pub spec: &'static Spec,
    /// Its arguments, each in the form that the table demands.
    pub arguments: Vec<String>,
    /// Its options, likewise.
    pub options: Vec<Given>,
}

impl Command {
    /// An argument, if given.
    pub fn argument(&self, index: usize) -> Option<&str> {
        self.arguments.get(index).map(String::as_str)
    }

    /// The first argument that is not this word or a beginning of it, and whether one is.
    pub fn apart_from(&self, word: &str) -> (Option<&str>, bool) {
        let mut others = self.arguments.iter().filter(|given| !begins(word, given));
        let has = self.arguments.iter().any(|given| begins(word, given));
        (others.next().map(String::as_str), has)
    }
}

/// Reasons why words are not a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misunderstood {
    /// No command begins like this: the words understood before it, it, and what may stand there.
    Unknown(String, String, Vec<String>),
    /// Several could be meant.
    Ambiguous(String, Vec<String>),
    /// More is needed: one of these.
    Incomplete(String, Vec<String>),
    /// An argument is not what it must be: the argument, and what it must be.
    Argument(String, String),
    /// Words are not a packet: why.
    Packet(String),
    /// An option is there twice: the command, and its word.
    Twice(String, String),
}

impl fmt::Display for Misunderstood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misunderstood::Unknown(before, rest, known) => {
                if !before.is_empty() {
                    write!(f, "{before}: ")?;
                }
                write!(f, "unknown input `{rest}`")?;
                match known.is_empty() {
                    true => Ok(()),
                    false => write!(f, "; known here: {}", known.join(", ")),
                }
            }
            Misunderstood::Ambiguous(word, candidates) => {
                write!(f, "`{word}` could be {}", candidates.join(", "))
            }
            Misunderstood::Incomplete(before, next) if before.is_empty() => {
                write!(f, "one of {} is needed", next.join(", "))
            }
            Misunderstood::Incomplete(before, next) => {
                write!(f, "{before}: one of {} must follow", next.join(", "))
            }
            Misunderstood::Argument(given, must) => write!(f, "`{given}` is not {must}"),
            Misunderstood::Packet(why) => f.write_str(why),
            Misunderstood::Twice(command, word) => write!(f, "{command}: `{word}` is there twice"),
        }
    }
}

impl std::error::Error for Misunderstood {}

/// Understands words.
///
/// # Errors
/// [`Misunderstood`], whose text is for whoever typed the words.
pub fn parse(words: &[impl AsRef<str>]) -> Result<Command, Misunderstood> {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let (rows, used) = narrow(&words)?;
    let Some(spec) = rows.iter().find(|row| row.words.len() == used) else {
        let before = rows
            .first()
            .map_or(String::new(), |row| row.words[..used].join(" "));
        return Err(match words.get(used) {
            Some(_) => {
                let rest = words[used..].join(" ");
                Misunderstood::Unknown(before, rest, next_words(&rows, used))
            }
            None => Misunderstood::Incomplete(before, next_words(&rows, used)),
        });
    };
    let following = &words[used..];
    if let [
        Argument {
            form: Form::Packet, ..
        },
    ] = spec.arguments
    {
        packet::read(following).map_err(Misunderstood::Packet)?;
        return Ok(command(spec, following, Vec::new()));
    }
    let (arguments, options) = following.split_at(options::before(spec, following));
    if let Some(extra) = arguments
        .get(spec.arguments.len()..)
        .filter(|extra| !extra.is_empty())
    {
        return Err(Misunderstood::Unknown(
            spec.words.join(" "),
            extra.join(" "),
            Vec::new(),
        ));
    }
    for (index, argument) in spec.arguments.iter().enumerate() {
        match arguments.get(index) {
            Some(given) => fits(given, argument.form)?,
            None if argument.optional => {}
            None => {
                return Err(Misunderstood::Incomplete(
                    spec.words.join(" "),
                    vec![argument.name.into()],
                ));
            }
        }
    }
    let options = options::read(spec, options)?;
    if spec.needs_option && options.is_empty() {
        let next = complete(&[spec.words, &[""]].concat());
        return Err(Misunderstood::Incomplete(spec.words.join(" "), next));
    }
    Ok(command(spec, arguments, options))
}

fn command(spec: &'static Spec, arguments: &[&str], options: Vec<Given>) -> Command {
    Command {
        verb: spec.verb,
        spec,
        arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
        options,
    }
}

/// The words that may come next: those that begin like the last one, or all if that is empty.
pub fn complete(words: &[impl AsRef<str>]) -> Vec<String> {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let (last, before) = words.split_last().unwrap_or((&"", &[]));
    let Ok((rows, used)) = narrow(before) else {
        return Vec::new();
    };
    let mut next = Vec::new();
    if used == before.len() {
        next = next_words(&rows, used);
    }
    if let Some(spec) = rows.iter().find(|row| row.words.len() == used) {
        next.extend(options::next(spec, &before[used..]));
    }
    next.retain(|word| word.starts_with(last));
    next
}

/// The commands that begin with a word, and what they do, a line each.
pub fn help(word: &str) -> String {
    let rows = COMMANDS.iter().filter(|spec| spec.words[0] == word);
    let rows = rows.map(|spec| (spec.usage(), spec.help));
    let width = rows
        .clone()
        .map(|(usage, _)| usage.len())
        .max()
        .unwrap_or(0);
    let lines = rows.map(|(usage, help)| format!("  {usage:width$}  {help}\n"));
    let mut text: String = lines.collect();
    if text.contains("FILTER...") {
        text += &options::filter();
    }
    text
}

/// The rows that the words lead to, and how many of the words that took. All these rows have those
/// words in common.
fn narrow(words: &[&str]) -> Result<(Vec<&'static Spec>, usize), Misunderstood> {
    let mut rows: Vec<&'static Spec> = COMMANDS.iter().collect();
    for (index, word) in words.iter().enumerate() {
        let at = |row: &&Spec| row.words.get(index).copied();
        let exact = rows.iter().any(|row| at(row) == Some(word));
        let matches = |row: &&Spec| {
            at(row).is_some_and(|known| known == *word || !exact && begins(known, word))
        };
        let found: Vec<&'static Spec> = rows.iter().copied().filter(|row| matches(row)).collect();
        if found.is_empty() {
            return Ok((rows, index));
        }
        rows = found;
        let candidates = next_words(&rows, index);
        if candidates.len() > 1 {
            return Err(Misunderstood::Ambiguous((*word).to_owned(), candidates));
        }
    }
    Ok((rows, words.len()))
}

/// Returns true if this is the word or a beginning of it.
fn begins(word: &str, given: &str) -> bool {
    !given.is_empty() && word.starts_with(given)
}

/// The different words of rows at a position, in the order of the table.
fn next_words(rows: &[&Spec], index: usize) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in rows.iter().filter_map(|row| row.words.get(index)) {
        if !words.iter().any(|known| known == word) {
            words.push((*word).to_owned());
        }
    }
    words
}

/// Returns true if this is a prefix or an address of a family.
fn is_of(family: Family, given: &str) -> bool {
    given
        .parse::<Prefix>()
        .is_ok_and(|prefix| Family::of(prefix.address()) == family)
}

/// The prefix of a family that this would be without bits beyond its length, if it has some.
fn cut(family: Family, given: &str) -> Option<Prefix> {
    let (address, length) = given.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let prefix = Prefix::new(address, length.parse().ok()?)?;
    (Family::of(address) == family && prefix.address() != address).then_some(prefix)
}

fn fits(given: &str, form: Form) -> Result<(), Misunderstood> {
    let must = match form {
        Form::Name | Form::Packet => return Ok(()),
        Form::Word(word) if begins(word, given) => return Ok(()),
        Form::Word(word) => format!("`{word}`"),
        Form::Prefix(family) if is_of(family, given) => return Ok(()),
        Form::Prefix(family) if let Some(prefix) = cut(family, given) => {
            format!("a prefix: it has bits set beyond its length; the prefix is {prefix}")
        }
        Form::Prefix(Family::V4) => "an IPv4 prefix as in 192.0.2.0/24".to_owned(),
        Form::Prefix(Family::V6) => "an IPv6 prefix as in 2001:db8::/32".to_owned(),
        Form::Number(low, high)
            if given
                .parse()
                .is_ok_and(|number: u32| number >= low && number <= high) =>
        {
            return Ok(());
        }
        Form::Number(low, high) => format!("a number from {low} to {high}"),
        Form::AnyPrefix if given.parse::<Prefix>().is_ok() => return Ok(()),
        Form::AnyPrefix => return fits(given, Form::Prefix(options::family(given))),
        Form::Protocol if protocol_number(given).is_some() => return Ok(()),
        Form::Protocol => "an IP protocol as tcp or 6".to_owned(),
        Form::Ports if ports(given).is_some() => return Ok(()),
        Form::Ports => "a port from 0 to 65535, or two as in 1024-65535".to_owned(),
        Form::State | Form::Choice(_) => {
            let words = options::choices(form);
            if words.iter().any(|word| begins(word, given)) {
                return Ok(());
            }
            format!("one of {}", words.join(", "))
        }
    };
    Err(Misunderstood::Argument(given.to_owned(), must))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn said(line: &str) -> Result<Verb, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        parse(&words)
            .map(|command| command.verb)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn unique_prefixes_are_enough() {
        assert_eq!(said("sh run"), Ok(Verb::ShowRuntime));
        assert_eq!(said("show int"), Ok(Verb::ShowInterface));
        assert_eq!(said("show ip n"), Ok(Verb::ShowNeighbors));
        assert_eq!(said("show na"), Ok(Verb::ShowNat));
        assert_eq!(said("show ne"), Ok(Verb::ShowNeighbors));
        assert_eq!(said("show ip6 n"), Ok(Verb::ShowIp6Neighbors));
        assert_eq!(said("show int addr"), Ok(Verb::ShowInterfaceAddress));
        assert_eq!(said("show int eth0"), Ok(Verb::ShowInterface));
        assert_eq!(said("show vxlan"), Ok(Verb::ShowVxlan));
        assert_eq!(said("show vx tun"), Ok(Verb::ShowVxlan));
        assert_eq!(said("sh ip6 fib 2001:db8::/32"), Ok(Verb::ShowIp6Fib));
        assert_eq!(said("sh ip6 fib after ::1"), Ok(Verb::ShowIp6FibAfter));
        assert_eq!(said("t a ip4-input 5"), Ok(Verb::TraceAdd));
        assert_eq!(said("cl e"), Ok(Verb::ClearErrors));
        assert_eq!(said("sh ip fib 10.0.0.0/8"), Ok(Verb::ShowIpFib));
        assert_eq!(said("sh ip fib a 10.0.0.0/8"), Ok(Verb::ShowIpFibAfter));
    }

    #[test]
    fn what_is_not_understood_is_said() {
        let no = |line: &str| said(line).unwrap_err();
        assert_eq!(
            no("bogus command"),
            "unknown input `bogus command`; known here: show, explain, trace, clear, plan, apply, \
             confirm, rollback, history, dump"
        );
        assert_eq!(
            no("show ip bogus"),
            "show ip: unknown input `bogus`; known here: fib, neighbors"
        );
        assert_eq!(no("show t"), "`t` could be trace, threads");
        assert_eq!(no("show i"), "`i` could be interface, ip, ip4, ip6");
        assert_eq!(no("show ip"), "show ip: one of fib, neighbors must follow");
        assert_eq!(
            no(""),
            "one of show, explain, trace, clear, plan, apply, confirm, rollback, history, dump is needed"
        );
        assert_eq!(no("history 0"), "`0` is not a number from 1 to 4294967295");
        assert_eq!(no("show version now"), "show version: unknown input `now`");
        assert_eq!(no("trace add ip4-input"), "trace add: one of N must follow");
        assert_eq!(
            no("trace add ip4-input 0"),
            "`0` is not a number from 1 to 10000"
        );
        // An empty word, as a shell passes on an empty variable, stands for none.
        for (words, expected) in [
            (
                &["show", "ip", ""][..],
                "show ip: unknown input ``; known here: fib, neighbors",
            ),
            (&["show", "version", ""], "show version: unknown input ``"),
            (&["show", "interface", ""], ""),
            (
                &["show", "ip", "fib", "", "0.0.0.0/0"],
                "show ip fib: unknown input `0.0.0.0/0`",
            ),
        ] {
            let said = parse(words).err().map_or(String::new(), |e| e.to_string());
            assert_eq!(said, expected, "{words:?}");
        }
        assert_eq!(
            no("show ip6 fib 10.0.0.0/8"),
            "`10.0.0.0/8` is not an IPv6 prefix as in 2001:db8::/32"
        );
        assert_eq!(
            no("show ip fib all"),
            "`all` is not an IPv4 prefix as in 192.0.2.0/24"
        );
        for (line, why) in [
            (
                "show ip fib 48.1.2.3/8",
                "`48.1.2.3/8` is not a prefix: it has bits set beyond its length; the prefix is 48.0.0.0/8",
            ),
            (
                "show ip6 fib after ::1/64",
                "`::1/64` is not a prefix: it has bits set beyond its length; the prefix is ::/64",
            ),
            (
                "show ip fib ::1/64",
                "`::1/64` is not an IPv4 prefix as in 192.0.2.0/24",
            ),
            (
                "show ip fib 48.1.2.3/33",
                "`48.1.2.3/33` is not an IPv4 prefix as in 192.0.2.0/24",
            ),
        ] {
            assert_eq!(no(line), why);
        }
    }

    #[test]
    fn options_stand_in_any_order_and_may_be_shortened() {
        let options = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let command = parse(&words).map_err(|error| error.to_string())?;
            let options = command.options.iter();
            let options: Vec<String> = options.map(|(a, b)| format!("{a}={b}")).collect();
            Ok::<_, String>((command.verb, command.arguments, options.join(" ")))
        };
        let said = options("sh fl prot tcp source 10.0.0.0/8 source-port 1-9 st est lim 7");
        let expected = "protocol=tcp source=10.0.0.0/8 source-port=1-9 state=established limit=7";
        assert_eq!(said, Ok((Verb::ShowFlows, vec![], expected.into())));
        let top = |n: &[&str], options: &str| {
            let n = n.iter().map(|&n| n.to_owned()).collect();
            Ok((Verb::ShowFlowsTop, n, options.to_owned()))
        };
        let line = "show flows top 5 port 53 by packets";
        assert_eq!(options(line), top(&["5"], "port=53 by=packets"));
        let line = "show flows top address 2001:db8::1";
        assert_eq!(options(line), top(&[], "address=2001:db8::1"));
        assert_eq!(options("show flows top"), top(&[], ""));
        let all = Ok((Verb::ClearFlows, vec![], String::new()));
        assert_eq!(options("clear flows all"), all);
        for (line, why) in [
            (
                "show flows prot",
                "show flows protocol: one of PROTOCOL must follow",
            ),
            (
                "show flows protocol bogus",
                "`bogus` is not an IP protocol as tcp or 6",
            ),
            ("show flows po 5 po 6", "show flows: `port` is there twice"),
            ("show flows p 6", "`p` could be protocol, port"),
            (
                "show flows port 9-1",
                "`9-1` is not a port from 0 to 65535, or two as in 1024-65535",
            ),
            ("show flows state udp-", "udp-replied"),
            (
                "show flows state none",
                "is not one of syn-sent, syn-recv, established, ",
            ),
            ("show flows source 10.0.0.1/8", "the prefix is 10.0.0.0/8"),
            ("show flows source ::1/8", "the prefix is ::/8"),
            (
                "show flows source x",
                "`x` is not an IPv4 prefix as in 192.0.2.0/24",
            ),
            ("show flows worker 64", "`64` is not a number from 0 to 63"),
            ("show flows limit 0", "`0` is not a number from 1 to 10000"),
            (
                "show flows by bytes",
                "show flows: unknown input `by`; known here: protocol, source, ",
            ),
            (
                "show flows top 5 5",
                "show flows top: unknown input `5`; known here: protocol, source, ",
            ),
            (
                "show flows top bogus",
                "`bogus` is not a number from 1 to 10000",
            ),
            (
                "show flows top by hops",
                "`hops` is not one of bytes, packets",
            ),
            (
                "clear flows",
                "clear flows: one of all, protocol, source, destination, ",
            ),
        ] {
            let said = match options(line) {
                Ok((.., options)) => options,
                Err(why) => why,
            };
            assert!(said.contains(why), "{line}: {said}");
        }
    }

    #[test]
    fn options_are_completed() {
        let next = |line: &str| complete(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(next("show flows so"), ["source", "source-port"]);
        assert_eq!(next("show flows top b"), ["by"]);
        assert_eq!(next("show flows top 5 by "), ["bytes", "packets"]);
        assert_eq!(next("show flows state udp"), ["udp", "udp-replied"]);
        assert_eq!(next("clear flows state time"), ["time-wait"]);
        assert_eq!(next("show flows source "), [""; 0]);
        assert_eq!(next("show flows port 5 p"), ["protocol"]);
        assert_eq!(next("clear flows ").len(), 11);
    }

    #[test]
    fn every_command_is_understood_completed_and_explained() {
        for spec in COMMANDS {
            let mut words: Vec<&str> = spec.words.to_vec();
            let completed = complete(&words);
            assert!(
                completed.contains(&words[words.len() - 1].to_owned()),
                "{words:?} {completed:?}"
            );
            words.extend(spec.arguments.iter().map(|argument| match argument.form {
                Form::Name => "x",
                Form::Prefix(Family::V4) => "10.0.0.0/8",
                Form::Prefix(Family::V6) => "2001:db8::1",
                Form::Word(word) => word,
                Form::Number(..) => "10",
                Form::Packet => "interface",
                Form::AnyPrefix | Form::Protocol | Form::Ports => unreachable!("no argument is"),
                Form::State | Form::Choice(_) => unreachable!("no argument is"),
            }));
            if spec.verb == Verb::Explain {
                words.extend(["eth1", "hex", "00"]);
            } else if let Some(option) = options::all(spec).next() {
                words.extend([option.name, "6"]);
            }
            let understood = parse(&words);
            assert!(understood.is_ok(), "{words:?}: {understood:?}");
            let help = help(spec.words[0]);
            assert!(help.contains(spec.help) && help.contains(&spec.usage()));
            let explains = help.contains("  FILTER: protocol PROTOCOL, source PREFIX, ");
            assert_eq!(explains, help.contains("FILTER..."));
        }
        assert_eq!(complete(&["show", ""]).len(), 30);
        assert_eq!(complete(&[""; 0]).len(), 10);
    }

    #[test]
    fn only_what_shows_is_for_everyone() {
        assert!(
            COMMANDS.iter().all(|spec| spec.write
                != ["show", "explain", "plan", "history"].contains(&spec.words[0]))
        );
    }

    proptest! {
        #[test]
        fn any_words_are_understood_or_refused(words in prop::collection::vec("\\PC{0,9}", 0..6)) {
            let last = words.last().cloned().unwrap_or_default();
            let next = complete(&words);
            prop_assert!(next.iter().all(|word| word.starts_with(&last)), "{:?}", next);
            if let Err(error) = parse(&words) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
