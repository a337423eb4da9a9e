//! The section with published figures.

use std::fmt::Write;

use super::escape;
use crate::published::PUBLISHED;

/// The published tables.
pub(super) fn quoted() -> String {
    let mut out = String::from(
        "<section id=\"published\">\n<h2>Published figures, for reference</h2>\n\
         <p>Measured by others on other machines: they show what a reader may already know, and are no part of this measurement.</p>\n",
    );
    for published in PUBLISHED {
        let _ = write!(
            out,
            "<div class=\"wide\"><table>\n<caption>{} (source: {})</caption>\n<thead><tr>",
            escape(published.title),
            escape(published.source)
        );
        for (i, column) in published.columns.iter().enumerate() {
            let _ = write!(
                out,
                "<th scope=\"col\"{}>{}</th>",
                if i > 0 { " class=\"n\"" } else { "" },
                escape(column)
            );
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in published.rows {
            for (i, cell) in row.iter().enumerate() {
                let cell = escape(cell);
                let _ = if i == 0 {
                    write!(out, "<tr><th scope=\"row\">{cell}</th>")
                } else {
                    write!(out, "<td class=\"n\">{cell}</td>")
                };
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
    }
    out.push_str("</section>\n");
    out
}
