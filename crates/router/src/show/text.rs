//! Columns of text.

use crate::{InterfaceId, Router};

/// `text` in the middle of `width` columns, the odd space on its left.
pub(crate) fn center(text: &str, width: usize) -> String {
    let free = width.saturating_sub(text.chars().count());
    let left = free.div_ceil(2);
    format!("{:left$}{text}{:right$}", "", "", right = free - left)
}

/// `text` and spaces up to `width` columns, at least one.
pub(crate) fn column(text: &str, width: usize) -> String {
    format!("{text:<pad$} ", pad = width.saturating_sub(1))
}

/// A line of cells in columns of these widths, without trailing spaces.
pub(crate) fn row<const N: usize>(cells: [&str; N], widths: [usize; N]) -> String {
    let cells = cells.into_iter().zip(widths);
    let line: String = cells.map(|(text, width)| column(text, width)).collect();
    line.trim_end().to_owned()
}

/// A line of centered headings without trailing spaces.
pub(crate) fn heading(columns: &[(&str, usize)]) -> String {
    let line: String = columns.iter().map(|(t, w)| center(t, *w)).collect();
    line.trim_end().to_owned()
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The name of an interface, or its number where it has none.
pub(crate) fn name(router: &Router, interface: InterfaceId) -> String {
    match router.state.links.interfaces.get(&interface) {
        Some(i) => i.name.clone(),
        None => format!("interface{interface}"),
    }
}

/// Quotient of two counts; 0 if `b` is 0.
pub(crate) fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

/// Bytes with a binary unit, as 64.00m.
pub(crate) fn bytes(n: u64) -> String {
    let units = ["", "k", "m", "g", "t", "p", "e"];
    let (mut value, mut unit) = (n as f64, 0);
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{n}")
    } else {
        format!("{value:.2}{}", units[unit])
    }
}
