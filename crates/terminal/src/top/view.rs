//! What is on the screen, and what keys do to it.

use std::collections::HashMap;
use std::time::Instant;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::widgets::TableState;

use super::history::History;
use super::table::{Cell, Look, Row, Table};

/// The state of the screen.
pub struct View {
    /// What is shown: a socket or an address.
    pub name: String,
    pub tables: &'static [Table],
    /// The table that is shown, and how each is.
    pub table: usize,
    pub places: Vec<Place>,
    pub shows_help: bool,
    now: Moment,
    /// What is shown in place of that during a pause.
    frozen: Option<Moment>,
    /// Counts of each row when `c` was typed, and when that was.
    baseline: HashMap<(usize, String), Vec<u64>>,
    pub cleared: Option<Instant>,
}

/// What is known at a moment.
#[derive(Debug, Clone, Default)]
pub struct Moment {
    pub look: Option<Look>,
    /// Why there is nothing newer.
    pub problem: Option<String>,
    pub history: History,
}

/// How a table is shown.
#[derive(Debug, Default)]
pub struct Place {
    /// The column that it is sorted by, and whether from the other end; `None`: as it came.
    pub sort: Option<usize>,
    pub is_reversed: bool,
    /// The row that is chosen, and the first one on the screen.
    pub state: TableState,
}

/// Rows that a page key moves.
const PAGE: usize = 10;

impl View {
    pub fn new(name: String, tables: &'static [Table]) -> Self {
        let place = || Place {
            state: TableState::default().with_selected(0),
            ..Place::default()
        };
        Self {
            name,
            tables,
            table: 0,
            places: tables.iter().map(|_| place()).collect(),
            shows_help: false,
            now: Moment::default(),
            frozen: None,
            baseline: HashMap::new(),
            cleared: None,
        }
    }

    /// Takes what there is, or the reason why there is nothing.
    pub fn take(&mut self, look: Result<Look, String>) {
        match look {
            Err(problem) => self.now.problem = Some(problem),
            Ok(look) => {
                self.now.problem = None;
                self.now.history.add(self.tables, &look);
                self.now.look = Some(look);
            }
        }
    }

    /// What is to be shown.
    pub fn moment(&self) -> &Moment {
        self.frozen.as_ref().unwrap_or(&self.now)
    }

    pub fn is_paused(&self) -> bool {
        self.frozen.is_some()
    }

    /// The rows of the table that is shown, in their order, counted from the baseline.
    pub fn rows(&self) -> Vec<Row> {
        let place = &self.places[self.table];
        let look = self.moment().look.as_ref();
        let rows = look.and_then(|look| look.rows.get(self.table));
        let mut rows = rows.cloned().unwrap_or_default();
        rows.iter_mut().for_each(|row| self.subtract(row));
        if let Some(column) = place.sort {
            let cell = |row: &Row| row.cells.get(column).cloned().unwrap_or(Cell::Absent);
            rows.sort_by(|one, other| cell(one).compare(&cell(other)));
        }
        if place.is_reversed {
            rows.reverse();
        }
        rows
    }

    fn subtract(&self, row: &mut Row) {
        let Some(before) = self.baseline.get(&(self.table, row.key.clone())) else {
            return;
        };
        for (count, before) in counts(&mut row.cells).zip(before) {
            // One that is lower began anew, by `clear` or a restart.
            *count = count.checked_sub(*before).unwrap_or(*count);
        }
    }

    /// What a key does. Returns whether it is the one to leave.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        if std::mem::take(&mut self.shows_help) {
            return is_end(key);
        }
        let tables = self.tables.len();
        match key.code {
            _ if is_end(key) => return true,
            KeyCode::Char('?' | 'h') => self.shows_help = true,
            KeyCode::Char('p' | ' ') => self.pause(),
            KeyCode::Char('c') => self.clear(),
            KeyCode::Char('s') => self.sort_by_next(),
            KeyCode::Char('S') => self.place().is_reversed ^= true,
            KeyCode::Tab | KeyCode::Right => self.table = (self.table + 1) % tables,
            KeyCode::BackTab | KeyCode::Left => self.table = (self.table + tables - 1) % tables,
            KeyCode::Char(digit @ '1'..='9') => {
                let number = digit as usize - '1' as usize;
                self.table = if number < tables { number } else { self.table };
            }
            KeyCode::Down | KeyCode::Char('j') => self.go(|row| row + 1),
            KeyCode::Up | KeyCode::Char('k') => self.go(|row| row.saturating_sub(1)),
            KeyCode::PageDown => self.go(|row| row + PAGE),
            KeyCode::PageUp => self.go(|row| row.saturating_sub(PAGE)),
            KeyCode::Home => self.go(|_| 0),
            KeyCode::End => self.go(|_| usize::MAX),
            _ => {}
        }
        false
    }

    fn place(&mut self) -> &mut Place {
        &mut self.places[self.table]
    }

    fn pause(&mut self) {
        self.frozen = match self.frozen {
            Some(_) => None,
            None => Some(self.now.clone()),
        };
    }

    /// Counts from here on, and draws from here on.
    fn clear(&mut self) {
        self.baseline.clear();
        let look = self.now.look.as_ref();
        for (table, rows) in look.iter().flat_map(|look| look.rows.iter().enumerate()) {
            for row in rows {
                let mut cells = row.cells.clone();
                let counts = counts(&mut cells).map(|count| *count).collect();
                self.baseline.insert((table, row.key.clone()), counts);
            }
        }
        self.now.history.clear();
        self.cleared = Some(Instant::now());
        self.frozen = None;
    }

    /// From one column to the next, and then as they came.
    fn sort_by_next(&mut self) {
        let columns = self.tables[self.table].columns.len();
        let place = self.place();
        place.is_reversed = false;
        place.sort = match place.sort {
            None => Some(0),
            Some(column) if column + 1 < columns => Some(column + 1),
            Some(_) => None,
        };
    }

    fn go(&mut self, to: impl Fn(usize) -> usize) {
        let last = self.rows().len().saturating_sub(1);
        let state = &mut self.place().state;
        let row = to(state.selected().unwrap_or(0)).min(last);
        state.select(Some(row));
    }
}

fn is_end(key: KeyEvent) -> bool {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    matches!(
        (key.code, is_control),
        (KeyCode::Char('q'), false) | (KeyCode::Char('c'), true)
    )
}

fn counts(cells: &mut [Cell]) -> impl Iterator<Item = &mut u64> {
    cells.iter_mut().filter_map(|cell| match cell {
        Cell::Count(count) => Some(count),
        _ => None,
    })
}
