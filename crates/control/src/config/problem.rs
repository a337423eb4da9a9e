//! Problems of a configuration, and their places.

use std::fmt::{self, Write};

use super::yaml::{Fault, Node, Span, Step};

/// The severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The configuration is refused.
    Error,
    /// It is as good as any; the operator may want something else.
    Warning,
}

impl Severity {
    /// The word that messages begin with.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

/// One thing that there is to say. As text: what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Its severity.
    pub severity: Severity,
    /// Its message, in the words of vppcfg where that has some.
    pub message: String,
    /// Advice for the operator.
    pub help: String,
    at: Span,
    also: Option<Span>,
}

impl Problem {
    /// Its line, from 1; 0 if it is nowhere in particular.
    pub fn line(&self) -> usize {
        self.at.line
    }

    /// Its column in characters, from 1.
    pub fn column(&self) -> usize {
        self.at.column
    }

    /// An error of `apply` as a warning: the file is valid all the same.
    pub(super) fn of_apply(self) -> Self {
        Problem {
            severity: Severity::Warning,
            help: format!("`apply` refuses this: {}", self.help),
            ..self
        }
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Problem {
            severity: Severity::Error,
            message: fault.message,
            help: fault.help.to_owned(),
            at: fault.at,
            also: fault.also,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Problems while they are collected.
#[derive(Default)]
pub(super) struct Findings(pub Vec<Problem>);

impl Findings {
    /// Something wrong at a place.
    pub fn error(&mut self, at: Span, message: String, help: impl Into<String>) {
        self.add(Severity::Error, at, message, help.into());
    }

    /// Something worth a look at a place.
    pub fn warning(&mut self, at: Span, message: String, help: impl Into<String>) {
        self.add(Severity::Warning, at, message, help.into());
    }

    fn add(&mut self, severity: Severity, at: Span, message: String, help: String) {
        self.0.push(Problem {
            severity,
            message,
            help,
            at,
            also: None,
        });
    }
}

/// The place of a value, or of its key if it has no text of its own; of what is not there, the
/// place of what it would be in.
pub(super) fn place(root: &Node, path: &[Step]) -> Span {
    let mut at = root.at;
    let mut node = root;
    for step in path {
        let Some((key, child)) = node.entry(step) else {
            break;
        };
        at = if child.is_collection() { key } else { child.at };
        node = child;
    }
    at
}

/// Everything that there is to say about a file.
///
/// As text, a line for each: `FILE:LINE:COLUMN: what; what to do`. [`Problems::report`] shows the
/// lines of the source.
#[derive(Debug, Clone, Default)]
pub struct Problems {
    name: String,
    text: String,
    found: Vec<Problem>,
    unreadable: bool,
}

impl Problems {
    /// In the order of the file.
    pub(super) fn new(name: &str, text: &str, mut found: Vec<Problem>) -> Self {
        found.sort_by_key(|problem| problem.at.start);
        Problems {
            name: name.to_owned(),
            text: text.to_owned(),
            found,
            unreadable: false,
        }
    }

    pub(super) fn unreadable(name: &str, why: &str) -> Self {
        let problem = Problem {
            severity: Severity::Error,
            message: format!("cannot read the configuration {name}: {why}"),
            help: String::new(),
            at: Span::default(),
            also: None,
        };
        Problems {
            unreadable: true,
            ..Problems::new(name, "", vec![problem])
        }
    }

    /// Returns true if the file could not be read at all.
    pub fn is_unreadable(&self) -> bool {
        self.unreadable
    }

    /// Returns true if there is no problem.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.found.iter()
    }

    /// Everything with the lines of the source, for people to read. Only the line that begins each
    /// (`error: ...`) does not begin with a blank.
    pub fn report(&self, colour: bool) -> String {
        let mut report = String::new();
        for problem in &self.found {
            // Writing to a string cannot fail.
            let _ = self.show(&mut report, problem, colour);
        }
        report
    }

    fn show(&self, to: &mut String, problem: &Problem, colour: bool) -> fmt::Result {
        let (begin, end) = match (colour, problem.severity) {
            (false, _) => ("", ""),
            (true, Severity::Error) => ("\x1b[1;31m", "\x1b[0m"),
            (true, Severity::Warning) => ("\x1b[1;33m", "\x1b[0m"),
        };
        let word = problem.severity.word();
        writeln!(to, "{begin}{word}{end}: {}", one_line(&problem.message))?;
        let places = [
            Some((problem.at, "")),
            problem.also.map(|at| (at, " and here")),
        ];
        for (at, what) in places.into_iter().flatten() {
            self.excerpt(to, at, what, (begin, end))?;
        }
        if !problem.help.is_empty() {
            writeln!(to, "   help: {}", one_line(&problem.help))?;
        }
        Ok(())
    }

    /// The line of a place, with carets below it. Of what goes beyond its line the first line is
    /// marked; of what is empty, a character.
    fn excerpt(&self, to: &mut String, at: Span, what: &str, colour: (&str, &str)) -> fmt::Result {
        if at.line == 0 {
            return Ok(());
        }
        writeln!(to, "   --> {}:{}:{}", self.name, at.line, at.column)?;
        let begin = self.text.floor_char_boundary(at.start);
        let line = self.text[..begin].rfind('\n').map_or(0, |end| end + 1);
        let Some(line) = self.text[line..].lines().next() else {
            return Ok(());
        };
        // A tab would move the carets.
        let line: String = line.chars().map(shown).collect();
        let marked = self.text.get(begin..self.text.floor_char_boundary(at.end));
        let marked = marked
            .and_then(|marked| marked.lines().next())
            .unwrap_or("");
        let carets = marked.trim_end().chars().count().max(1);
        let margin = at.line.to_string().len();
        writeln!(to, " {} │ {line}", at.line)?;
        let (paint, plain) = colour;
        let blanks = at.column.saturating_sub(1);
        writeln!(
            to,
            " {:margin$} │ {:blanks$}{paint}{:^<carets$}{plain}{what}",
            "", "", ""
        )
    }
}

/// A character as it may go to a terminal.
fn shown(c: char) -> char {
    match c {
        '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

fn one_line(text: &str) -> String {
    text.chars().map(shown).collect()
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.found.iter().enumerate() {
            let separator = if index > 0 { "\n" } else { "" };
            write!(f, "{separator}{}:", self.name)?;
            if problem.at.line > 0 {
                write!(f, "{}:{}:", problem.at.line, problem.at.column)?;
            }
            write!(f, " {}", one_line(&problem.message))?;
            if !problem.help.is_empty() {
                write!(f, "; {}", one_line(&problem.help))?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
