//! What may follow a command in any order: words, each with a value.

use std::ops::RangeInclusive;

use router::Family;
use router::change::Prefix;
use router::flow::State;

use super::commands::{Argument, FLOWS, Form, Spec};
use super::{Misunderstood, begins, fits};
use crate::config::protocol;

/// An option of a command that was given: its word, and its value.
pub type Given = (&'static str, String);

/// The words that choose flows, for the help.
pub(super) fn filter() -> String {
    let words = FLOWS
        .iter()
        .map(|option| format!("{} {}", option.name, option.form.value()));
    let words: Vec<String> = words.collect();
    let (first, second) = words.split_at(words.len() / 2);
    format!(
        "  FILTER: {},\n    {}\n",
        first.join(", "),
        second.join(", ")
    )
}

/// The options of a command.
pub(super) fn all(spec: &Spec) -> impl Iterator<Item = &'static Argument> {
    spec.options.iter().copied().flatten()
}

/// Of words that follow a command, those before its options: as many as it has arguments at most.
pub(super) fn before(spec: &Spec, words: &[&str]) -> usize {
    if spec.options.is_empty() {
        return words.len();
    }
    let is_option = |word: &&str| all(spec).any(|option| begins(option.name, word));
    let first = words.iter().position(is_option).unwrap_or(words.len());
    first.min(spec.arguments.len())
}

/// Reads options.
///
/// # Errors
/// A word is none, or is there twice, or has no value, or not one of its form.
pub(super) fn read(spec: &Spec, words: &[&str]) -> Result<Vec<Given>, Misunderstood> {
    let mut given: Vec<Given> = Vec::new();
    let command = || spec.words.join(" ");
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let names: Vec<&'static str> = all(spec).map(|option| option.name).collect();
        let known = || names.iter().map(|&name| name.to_owned()).collect();
        let unknown = || Misunderstood::Unknown(command(), (*word).to_owned(), known());
        let name = choose(&names, word).map_err(ambiguous(word))?;
        let name = name.ok_or_else(unknown)?;
        if given.iter().any(|(before, _)| *before == name) {
            return Err(Misunderstood::Twice(command(), name.to_owned()));
        }
        let form = all(spec).find(|option| option.name == name);
        let form = form.map_or(Form::Name, |option| option.form);
        let Some(value) = words.next() else {
            let choices = choices(form).iter();
            let mut next: Vec<String> = choices.map(|&word| word.to_owned()).collect();
            if next.is_empty() {
                next.push(form.value());
            }
            let before = format!("{} {name}", command());
            return Err(Misunderstood::Incomplete(before, next));
        };
        fits(value, form)?;
        let chosen = choose(choices(form), value).map_err(ambiguous(value))?;
        given.push((name, chosen.unwrap_or(value).to_owned()));
    }
    Ok(given)
}

/// What may stand behind these words that follow a command, of its options.
pub(super) fn next(spec: &Spec, words: &[&str]) -> Vec<String> {
    let options = &words[before(spec, words)..];
    let (last, complete) = match options.len() % 2 {
        0 => (None, options),
        _ => (options.last(), &options[..options.len() - 1]),
    };
    let Ok(given) = read(spec, complete) else {
        return Vec::new();
    };
    let free = all(spec).filter(|option| given.iter().all(|(name, _)| *name != option.name));
    match last {
        None => free.map(|option| option.name.to_owned()).collect(),
        Some(word) => {
            let named = free.filter(|option| option.name == *word);
            let values = named.flat_map(|option| choices(option.form));
            values.map(|&value| value.to_owned()).collect()
        }
    }
}

/// The one of these words that this is, or is a beginning of.
///
/// # Errors
/// It is the beginning of several: these.
pub(super) fn choose(
    words: &[&'static str],
    given: &str,
) -> Result<Option<&'static str>, Vec<&'static str>> {
    if let Some(word) = words.iter().find(|word| **word == given) {
        return Ok(Some(word));
    }
    let meant: Vec<&'static str> = words
        .iter()
        .copied()
        .filter(|word| begins(word, given))
        .collect();
    match meant[..] {
        [] => Ok(None),
        [word] => Ok(Some(word)),
        _ => Err(meant),
    }
}

fn ambiguous(given: &str) -> impl Fn(Vec<&'static str>) -> Misunderstood {
    |meant| {
        let meant = meant.into_iter().map(str::to_owned).collect();
        Misunderstood::Ambiguous(given.to_owned(), meant)
    }
}

/// The states that a flow can be in.
const STATES: [&str; State::ALL.len() - 1] = {
    let mut names = [""; State::ALL.len() - 1];
    let mut at = 0;
    while at < names.len() {
        // Without the first one: nothing has been seen.
        names[at] = State::ALL[at + 1].name();
        at += 1;
    }
    names
};

/// The words that a form consists of, if it does.
pub(super) const fn choices(form: Form) -> &'static [&'static str] {
    match form {
        Form::State => &STATES,
        Form::Choice(words) => words,
        _ => &[],
    }
}

/// The number of a protocol: that, or its name.
pub fn protocol_number(given: &str) -> Option<u8> {
    given.parse().ok().or_else(|| protocol(given))
}

/// Ports: one, or the first and the last.
pub fn ports(given: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = given.split_once('-').unwrap_or((given, given));
    let ports = first.parse().ok()?..=last.parse().ok()?;
    (!ports.is_empty()).then_some(ports)
}

/// The family that a prefix is of, as it looks.
pub(super) fn family(given: &str) -> Family {
    match given.parse::<Prefix>() {
        Ok(prefix) => Family::of(prefix.address()),
        Err(_) if given.contains(':') => Family::V6,
        Err(_) => Family::V4,
    }
}
