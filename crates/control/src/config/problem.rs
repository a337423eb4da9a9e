//! What is wrong with a configuration, and where.

use std::fmt;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode,
    SourceSpan,
};
use serde_saphyr::Location;

/// One thing that is wrong. As text: what, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// Line, from 1; 0 if it is nowhere in particular.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Where it is in the text, in bytes.
    span: Option<(usize, usize)>,
}

impl Problem {
    /// Something wrong at a place.
    pub fn new(at: Location, message: impl Into<String>) -> Self {
        let bytes = at.span().byte_offset().zip(at.span().byte_len());
        Problem {
            message: message.into(),
            help: None,
            line: at.line() as usize,
            column: at.column() as usize,
            span: bytes.map(|(offset, length)| (offset as usize, length as usize)),
        }
    }

    /// With advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Everything that is wrong with a configuration.
///
/// As text, a line for each: `FILE:LINE:COLUMN: what; what to do`. [`Problems::report`] shows the
/// lines of the source.
#[derive(Debug)]
pub struct Problems {
    name: String,
    found: Vec<Shown>,
}

/// A problem and the source that it is in, as [`miette`] wants them.
#[derive(Debug)]
struct Shown {
    problem: Problem,
    source: Option<NamedSource<String>>,
}

impl Problems {
    pub(super) fn new(name: &str, text: &str, problems: Vec<Problem>) -> Self {
        let show = |mut problem: Problem| {
            // Of what goes beyond a line (a whole section), the first line is marked; of what is
            // empty, a character.
            if let Some((offset, length)) = problem.span.as_mut() {
                let start = text.floor_char_boundary((*offset).min(text.len()));
                let rest = &text[start..];
                let line = rest.find('\n').unwrap_or(rest.len());
                (*offset, *length) = (start, (*length).min(line.max(1)).min(rest.len()));
            }
            let source = problem
                .span
                .map(|_| NamedSource::new(name, text.to_owned()).with_language("yaml"));
            Shown { problem, source }
        };
        Problems {
            name: name.to_owned(),
            found: problems.into_iter().map(show).collect(),
        }
    }

    pub(super) fn unreadable(name: &str, why: &str) -> Self {
        let problem = Problem::new(
            Location::UNKNOWN,
            format!("cannot read the configuration: {why}"),
        );
        Problems {
            name: name.to_owned(),
            found: vec![Shown {
                problem,
                source: None,
            }],
        }
    }

    /// Everything with the lines of the source, for people to read.
    pub fn report(&self, colour: bool) -> String {
        let theme = match colour {
            true => GraphicalTheme::unicode(),
            false => GraphicalTheme::unicode_nocolor(),
        };
        let renderer = GraphicalReportHandler::new_themed(theme).with_wrap_lines(false);
        let mut text = format!("the configuration {} cannot be used\n", self.name);
        for shown in &self.found {
            // Writing to a string cannot fail, and what cannot be shown is still said.
            if renderer.render_report(&mut text, shown).is_err() {
                text += &format!("{shown}\n");
            }
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.found.iter().map(|shown| &shown.problem)
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.iter().enumerate() {
            let separator = if index > 0 { "\n" } else { "" };
            write!(f, "{separator}{}:", self.name)?;
            if problem.line > 0 {
                write!(f, "{}:{}:", problem.line, problem.column)?;
            }
            write!(f, " {}", problem.message)?;
            if let Some(help) = &problem.help {
                write!(f, "; {help}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl std::error::Error for Shown {}

impl Diagnostic for Shown {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem
            .help
            .as_ref()
            .map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (offset, length) = self.problem.span?;
        let label =
            LabeledSpan::new_with_span(Some("here".into()), SourceSpan::from((offset, length)));
        Some(Box::new(std::iter::once(label)))
    }
}
