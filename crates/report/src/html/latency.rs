//! The section with the latency under load.

use std::fmt::Write;

use super::escape;
use crate::latency::{kernel_lacks_memif, rows};
use crate::model::LabResult;

/// The table; empty if no latency was measured.
pub(super) fn section(result: &LabResult) -> String {
    let rows = rows(result);
    if rows.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<section id=\"latency\">\n<h2>Latency under load</h2>\n<div class=\"wide\"><table>\n\
         <caption>Time through the device at shares of its highest rate, in microseconds. Both ways: the slower one.</caption>\n\
         <thead><tr><th scope=\"col\">load test</th><th scope=\"col\">device under test</th><th scope=\"col\">I/O</th>",
    );
    for name in ["load, %", "p50", "p99", "p99.9", "loss, %"] {
        let _ = write!(out, "<th scope=\"col\" class=\"n\">{name}</th>");
    }
    out.push_str("<th scope=\"col\">remarks</th></tr></thead>\n<tbody>\n");
    for row in &rows {
        let [p50, p99, p99_9] = row
            .micros()
            .map(|us| us.map_or("&ndash;".to_owned(), |us| format!("{us:.1}")));
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"n\">{:.0}</td><td class=\"n\">{p50}</td>\
             <td class=\"n\">{p99}</td><td class=\"n\">{p99_9}</td><td class=\"n\">{:.2}</td><td class=\"why\">{}</td></tr>",
            escape(&row.run.load.to_string()),
            escape(&row.run.dut.to_string()),
            escape(&row.run.io.to_string()),
            row.latency.share * 100.0,
            row.latency.loss * 100.0,
            escape(&row.remark()),
        );
    }
    out.push_str("</tbody></table></div>\n");
    if kernel_lacks_memif(result) {
        out.push_str("<p>The kernel has no memif.</p>\n");
    }
    out.push_str("</section>\n");
    out
}
