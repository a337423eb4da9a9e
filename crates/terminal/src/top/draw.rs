//! Puts a view on the screen.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{
    Cell as Drawn, Clear, Paragraph, Row as DrawnRow, Sparkline, Table as Rows,
};

use super::number;
use super::style::Style;
use super::table::{Cell, Column, Row, Table};
use super::view::View;

/// Lines of a screen from which graphs have more than one line.
const TALL: u16 = 36;
/// Columns beside a graph that say what it is.
const LABEL: u16 = 25;

const HELP: &str = "\
 q, Ctrl-C       leave
 Tab, 1 2 3 4    next view, or this one
 Up, Down        choose a row: the graphs are of it
 PgUp, PgDn      ten rows; Home, End: first, last
 s               sort by the next column, at last as it was
 S               the other way round
 p               pause, and go on
 c               count and draw from now on, here only:
                 `parshall clear` clears the router's counters
 ?               this; any key goes back";

/// Draws all of it.
pub fn draw(frame: &mut Frame<'_>, view: &mut View, style: Style) {
    let table = &view.tables[view.table];
    let graph = if frame.area().height >= TALL { 4 } else { 1 };
    let graphs = graph * table.graphs.len() as u16;
    let lines = [
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(graphs),
        Constraint::Fill(1),
        Constraint::Length(1),
    ];
    let [top, message, tabs, graphs, rows, bottom] = Layout::vertical(lines).areas(frame.area());
    frame.render_widget(title(view, style), top);
    frame.render_widget(said(view, style), message);
    let shown = view.rows();
    let state = &mut view.places[view.table].state;
    // Rows may have gone.
    let chosen = state
        .selected()
        .unwrap_or(0)
        .min(shown.len().saturating_sub(1));
    state.select(Some(chosen));
    let key = shown.get(chosen).map_or("", |row| &row.key);
    frame.render_widget(views(view, key, style), tabs);
    if let Some(row) = shown.get(chosen) {
        draw_graphs(frame, graphs, graph, view, row, style);
    }
    draw_rows(frame, rows, view, &shown, style);
    frame.render_widget(keys(view), bottom);
    if view.shows_help {
        help(frame);
    }
}

fn title(view: &View, style: Style) -> Line<'_> {
    let look = view.moment().look.as_ref();
    let about = look.map_or("", |look| &look.about);
    let paused = if view.is_paused() { "  PAUSED" } else { "" };
    Line::from(vec![
        Span::styled("parshall top", style.title()),
        Span::raw(format!("  {}  {about}", view.name)),
        Span::styled(paused, style.problem()),
    ])
}

/// What is wrong, or to be known, or what the table's numbers are.
fn said(view: &View, style: Style) -> Line<'_> {
    let moment = view.moment();
    let note = moment.look.as_ref().and_then(|look| look.note.as_deref());
    match (&moment.problem, note) {
        (Some(problem), _) => Line::styled(problem.as_str(), style.problem()),
        (None, _) if moment.look.is_none() => Line::raw("asking ..."),
        (None, Some(note)) => Line::styled(note, style.note()),
        (None, None) => Line::raw(view.tables[view.table].caption),
    }
}

/// The tabs, and the row that the graphs are of.
fn views(view: &View, key: &str, style: Style) -> Line<'static> {
    let tabs = view.tables.iter().enumerate().map(|(number, table)| {
        let text = format!(" {} {} ", number + 1, table.name);
        match number == view.table {
            true => Span::styled(text, style.chosen()),
            false => Span::raw(text),
        }
    });
    let key = [
        Span::raw("   graphs: "),
        Span::styled(key.to_owned(), style.graph()),
    ];
    Line::from_iter(tabs.chain(key))
}

fn draw_graphs(
    frame: &mut Frame<'_>,
    area: Rect,
    lines: u16,
    view: &View,
    row: &Row,
    style: Style,
) {
    let table = &view.tables[view.table];
    for (number, column) in table.graphs.iter().enumerate() {
        let y = area.y + number as u16 * lines;
        let whole = Rect {
            y,
            height: lines,
            ..area
        }
        .intersection(area);
        let [label, graph] =
            Layout::horizontal([Constraint::Length(LABEL), Constraint::Fill(1)]).areas(whole);
        let history = &view.moment().history;
        let values = history.latest(view.table, &row.key, number, usize::from(graph.width));
        let most = values.iter().copied().fold(0.0, f32::max);
        let name = table.columns[*column].name;
        let unit = match row.cells.get(*column) {
            Some(Cell::Share(_)) => "%",
            _ => "",
        };
        let most_shown = number::short(f64::from(most)) + unit;
        let text = format!("{name:<13} max {most_shown}");
        frame.render_widget(Paragraph::new(text), label);
        let missing = usize::from(graph.width) - values.len();
        // Graphs are of whole numbers: thousandths of the most.
        let part = |value: f32| Some((value / most.max(f32::MIN_POSITIVE) * 1000.0) as u64);
        let bars: Vec<Option<u64>> = std::iter::repeat_n(None, missing)
            .chain(values.into_iter().map(part))
            .collect();
        let graph_of = Sparkline::default()
            .data(bars)
            .max(1000)
            .bar_set(style.bars.clone())
            .absent_value_symbol(" ")
            .style(style.graph());
        frame.render_widget(graph_of, graph);
    }
}

fn draw_rows(frame: &mut Frame<'_>, area: Rect, view: &mut View, rows: &[Row], style: Style) {
    let table = &view.tables[view.table];
    let shown: Vec<(usize, &Column)> = columns(table, frame.area().width);
    let place = &mut view.places[view.table];
    let heading = shown.iter().map(|(number, column)| {
        let is_sorted = place.sort == Some(*number);
        let name = match (is_sorted, place.is_reversed) {
            (false, _) => column.name.to_owned(),
            (true, false) => format!("{}*", column.name),
            (true, true) => format!("{}'", column.name),
        };
        let is_text = rows.first().is_some_and(|row| row.cells[*number].is_text());
        Drawn::from(aligned(name, is_text))
    });
    let heading = DrawnRow::new(heading).style(style.heading());
    let drawn = rows.iter().map(|row| {
        DrawnRow::new(shown.iter().map(|(number, _)| {
            let cell = row.cells.get(*number).unwrap_or(&Cell::Absent);
            Drawn::from(aligned(cell.show(), cell.is_text()))
        }))
    });
    let last = shown.len().saturating_sub(1);
    let widths = shown.iter().enumerate().map(|(place, (_, column))| {
        let is_last_text = place == last && column.width == 0;
        match is_last_text {
            true => Constraint::Fill(1),
            false => Constraint::Length(column.width),
        }
    });
    let widget = Rows::new(drawn, widths)
        .header(heading)
        .row_highlight_style(style.chosen());
    frame.render_stateful_widget(widget, area, &mut place.state);
}

/// The columns for which the screen is wide enough.
fn columns(table: &Table, width: u16) -> Vec<(usize, &Column)> {
    let columns = table.columns.iter().enumerate();
    columns.filter(|(_, column)| column.from <= width).collect()
}

fn aligned(text: String, is_text: bool) -> Text<'static> {
    let alignment = if is_text {
        Alignment::Left
    } else {
        Alignment::Right
    };
    Text::from(text).alignment(alignment)
}

fn keys(view: &View) -> Line<'static> {
    let cleared = view.cleared.map_or(String::new(), |at| {
        format!("  counts of the last {} s", at.elapsed().as_secs())
    });
    Line::raw(format!(
        "q leave  Tab view  s sort  p pause  c clear here  ? help{cleared}"
    ))
}

fn help(frame: &mut Frame<'_>) {
    let screen = frame.area();
    let lines = HELP.lines().count() as u16;
    let area = Rect {
        x: screen.width.saturating_sub(64) / 2,
        y: screen.height.saturating_sub(lines + 2) / 2,
        width: 64.min(screen.width),
        height: (lines + 2).min(screen.height),
    };
    frame.render_widget(Clear, area);
    let block = ratatui::widgets::Block::bordered().title(" keys ");
    frame.render_widget(Paragraph::new(HELP).block(block), area);
}
