//! What graphs are drawn of.

use std::collections::{HashMap, VecDeque};

use super::table::{Look, Table};

/// Looks kept at most, one a second: ten minutes.
const LOOKS: usize = 600;
/// Values kept at most: a router with very many interfaces has shorter graphs.
const VALUES: usize = 1_000_000;

/// The values of the columns that have graphs, of each row of each table.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// A row that is gone takes its values with it.
    rows: HashMap<(usize, String), VecDeque<[f32; 2]>>,
}

impl History {
    pub fn add(&mut self, tables: &[Table], look: &Look) {
        let all: usize = look.rows.iter().map(Vec::len).sum();
        let most = LOOKS.min(VALUES / all.max(1) / 2);
        let mut before = std::mem::take(&mut self.rows);
        for (number, (table, rows)) in tables.iter().zip(&look.rows).enumerate() {
            for row in rows {
                let key = (number, row.key.clone());
                let mut values = before.remove(&key).unwrap_or_default();
                let mut now = [0.0; 2];
                for (value, column) in now.iter_mut().zip(table.graphs) {
                    let cell = row.cells.get(*column);
                    *value = cell.and_then(|cell| cell.value()).unwrap_or(0.0) as f32;
                }
                values.push_back(now);
                while values.len() > most {
                    values.pop_front();
                }
                self.rows.insert(key, values);
            }
        }
    }

    /// The latest values of a row's graph, oldest first, `most` at most.
    pub fn latest(&self, table: usize, key: &str, graph: usize, most: usize) -> Vec<f32> {
        let values = self.rows.get(&(table, key.to_owned()));
        let values = values.map(|values| values.range(values.len().saturating_sub(most)..));
        let values = values.into_iter().flatten();
        values.filter_map(|both| both.get(graph).copied()).collect()
    }

    pub fn clear(&mut self) {
        self.rows.clear();
    }
}
