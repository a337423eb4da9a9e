//! Measurements out of text: a column of numbers.

use std::fmt;

/// A column of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// Number of the column, from 1.
    pub column: usize,
    /// Characters that columns are apart by; several of them count as one.
    pub delimiters: String,
}

impl Default for Columns {
    fn default() -> Self {
        Self {
            column: 1,
            delimiters: " \t".to_owned(),
        }
    }
}

/// A line that has no number where one is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Number of the line, from 1.
    pub line: usize,
    /// What stands there.
    pub word: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: '{}' is not a number", self.line, self.word)
    }
}

impl std::error::Error for Unreadable {}

impl Columns {
    /// The numbers of the column. Lines that have no such column, and what begins with `#` there,
    /// are left out.
    ///
    /// # Errors
    /// [`Unreadable`]: something else than a finite number.
    pub fn read(&self, text: &str) -> Result<Vec<f64>, Unreadable> {
        let mut values = Vec::new();
        for (line, content) in (1..).zip(text.lines()) {
            let words = content.split(|c| self.delimiters.contains(c));
            let mut words = words.filter(|word| !word.is_empty());
            let Some(word) = words.nth(self.column - 1) else {
                continue;
            };
            if word.starts_with('#') {
                continue;
            }
            match word.trim().parse::<f64>() {
                Ok(value) if value.is_finite() => values.push(value),
                _ => {
                    let word = word.trim().to_owned();
                    return Err(Unreadable { line, word });
                }
            }
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_read() {
        let text = "# Mpps loss\n1.5 7\n\n  2e1\t8 x\r\n# 3 9\n4\n";
        let first = Columns::default();
        assert_eq!(first.read(text), Ok(vec![1.5, 20.0, 4.0]));
        let second = Columns {
            column: 2,
            ..first.clone()
        };
        let unreadable = |line, word: &str| {
            let word = word.to_owned();
            Err(Unreadable { line, word })
        };
        assert_eq!(second.read(text), unreadable(1, "Mpps"));
        assert_eq!(first.read("1\nnan\n"), unreadable(2, "nan"));
        let commas = Columns {
            column: 2,
            delimiters: ",;".to_owned(),
        };
        assert_eq!(commas.read("a,1\nb;;2\n"), Ok(vec![1.0, 2.0]));
    }
}
