//! What a subject looks like: tables of rows and cells.

use std::cmp::Ordering;

use super::number;

/// All tables of a subject at one moment, in the order of its views.
#[derive(Debug, Clone, Default)]
pub struct Look {
    /// What it says of itself, such as its version.
    pub about: String,
    /// Something that its operator should know.
    pub note: Option<String>,
    /// The rows of each view.
    pub rows: Vec<Vec<Row>>,
}

/// A view: a name for its tab, and its columns.
#[derive(Debug)]
pub struct Table {
    pub name: &'static str,
    /// What its numbers are, in a line.
    pub caption: &'static str,
    pub columns: &'static [Column],
    /// The columns that have a graph, two at most.
    pub graphs: &'static [usize],
}

/// A column.
#[derive(Debug)]
pub struct Column {
    pub name: &'static str,
    pub width: u16,
    /// Columns that the screen must have for it.
    pub from: u16,
}

pub const fn column(name: &'static str, width: u16) -> Column {
    Column {
        name,
        width,
        from: 0,
    }
}

/// One for wide screens.
pub const fn wide(from: u16, name: &'static str, width: u16) -> Column {
    Column { name, width, from }
}

/// A row.
#[derive(Debug, Clone)]
pub struct Row {
    /// What it is about, from one look to the next.
    pub key: String,
    /// As many as there are columns.
    pub cells: Vec<Cell>,
}

/// A cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Text(String),
    /// A rate or a mean.
    Number(f64),
    /// From 0 to 1, shown in percent.
    Share(f64),
    /// Counts up; it begins anew with `c`.
    Count(u64),
    /// Not known, or there is none.
    Absent,
}

impl Cell {
    pub fn number(value: Option<f64>) -> Self {
        value.map_or(Self::Absent, Self::Number)
    }

    pub fn count(value: Option<u64>) -> Self {
        value.map_or(Self::Absent, Self::Count)
    }

    pub fn text(text: impl ToString) -> Self {
        Self::Text(text.to_string())
    }

    pub fn is_text(&self) -> bool {
        matches!(self, Self::Text(_))
    }

    /// Its value in a graph and for sorting, if it has one.
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Number(value) => Some(*value),
            Self::Share(share) => Some(share * 100.0),
            Self::Count(count) => Some(*count as f64),
            Self::Text(_) | Self::Absent => None,
        }
    }

    pub fn show(&self) -> String {
        match self {
            Self::Text(text) => text.chars().filter(|c| !c.is_control()).collect(),
            Self::Number(value) => number::short(*value),
            Self::Share(share) => format!("{:.1}%", share * 100.0),
            Self::Count(count) => number::count(*count),
            Self::Absent => "-".to_owned(),
        }
    }

    /// Numbers before texts before what is absent; the largest number first, texts by the alphabet.
    pub fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            (Self::Absent, Self::Absent) => Ordering::Equal,
            (Self::Absent, _) => Ordering::Greater,
            (_, Self::Absent) => Ordering::Less,
            (one, other) => match (one.value(), other.value()) {
                (Some(one), Some(other)) => other.total_cmp(&one),
                (one, other) => other.is_some().cmp(&one.is_some()),
            },
        }
    }
}
