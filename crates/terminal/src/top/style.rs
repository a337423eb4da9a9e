//! What the terminal can show.

use std::env;

use ratatui::style::{Color, Modifier, Style as Ink};
use ratatui::symbols::bar;

/// Colours and signs. Everything that a colour says, a letter says too.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    pub has_color: bool,
    pub bars: &'static bar::Set<'static>,
    /// It has no cursor to move.
    pub is_dumb: bool,
}

/// For fonts with 256 signs, and texts that are not UTF-8.
static ASCII: bar::Set<'static> = bar::Set {
    full: "#",
    seven_eighths: "#",
    three_quarters: "+",
    five_eighths: "+",
    half: "=",
    three_eighths: "-",
    one_quarter: "-",
    one_eighth: ".",
    empty: " ",
};

impl Style {
    /// As `NO_COLOR`, `TERM` and the locale have it.
    pub fn of_environment() -> Self {
        let get = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        Self::of(&get)
    }

    fn of(get: &dyn Fn(&str) -> Option<String>) -> Self {
        let term = get("TERM").unwrap_or_default();
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .find_map(|name| get(name));
        let locale = locale.unwrap_or_default().to_lowercase();
        let is_utf8 = locale.contains("utf-8") || locale.contains("utf8");
        Self {
            has_color: get("NO_COLOR").is_none(),
            bars: match is_utf8 {
                true if term == "linux" => &bar::THREE_LEVELS,
                true => &bar::NINE_LEVELS,
                false => &ASCII,
            },
            is_dumb: term == "dumb",
        }
    }

    fn ink(self, color: Color) -> Ink {
        match self.has_color {
            true => Ink::new().fg(color),
            false => Ink::new(),
        }
    }

    pub fn title(self) -> Ink {
        self.ink(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    pub fn problem(self) -> Ink {
        self.ink(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub fn note(self) -> Ink {
        self.ink(Color::Yellow)
    }

    pub fn graph(self) -> Ink {
        self.ink(Color::Green)
    }

    pub fn heading(self) -> Ink {
        Ink::new().add_modifier(Modifier::BOLD)
    }

    pub fn chosen(self) -> Ink {
        Ink::new().add_modifier(Modifier::REVERSED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_what_there_is() {
        let of = |set: &[(&str, &str)]| {
            Style::of(&|name| {
                let found = set.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        let plain = of(&[("TERM", "xterm"), ("LANG", "de_DE.UTF-8")]);
        assert!(plain.has_color && !plain.is_dumb);
        assert_eq!(*plain.bars, bar::NINE_LEVELS);
        let console = of(&[("TERM", "linux"), ("LANG", "C.utf8")]);
        assert_eq!(*console.bars, bar::THREE_LEVELS);
        let old = of(&[("TERM", "screen"), ("LC_ALL", "C"), ("LANG", "C.UTF-8")]);
        assert_eq!(*old.bars, ASCII);
        assert!(!of(&[("NO_COLOR", "1")]).has_color);
        assert_eq!(of(&[("NO_COLOR", "1")]).problem().fg, None);
        assert!(of(&[("TERM", "dumb")]).is_dumb);
    }
}
