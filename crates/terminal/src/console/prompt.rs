//! Reads lines from a terminal.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};

use clap::CommandFactory;
use reedline::{
    ColumnarMenu, Completer, CompletionResult, DefaultPrompt, DefaultPromptSegment, Emacs,
    FileBackedHistory, KeyCode, KeyModifiers, MenuBuilder, Reedline, ReedlineEvent, ReedlineMenu,
    Signal, Span, Suggestion, default_emacs_keybindings,
};

use super::TICK;
use super::act::{Act, Next};
use super::words::Line;
use crate::hang_up::is_hung_up;

/// Lines kept.
const LINES: usize = 1000;
const MENU: &str = "words";

/// Until the end is typed, or the terminal is closed. Ctrl-C stops what sends; a second one leaves.
pub fn run(act: &mut Act, history: Option<PathBuf>, stop: &Arc<AtomicBool>) -> io::Result<()> {
    let editor = editor(history).with_break_signal(stop.clone());
    // The thread that reads never comes back from a terminal that is closed.
    let (typed, lines) = sync_channel(0);
    let (go_on, asked) = sync_channel(1);
    std::thread::Builder::new()
        .name("console-input".into())
        .spawn(move || read(editor, &asked, &typed))?;
    let mut is_second = false;
    let mut told = None;
    loop {
        let lost = act.lost();
        if let Some(lost) = lost.as_ref().filter(|_| lost != told) {
            writeln!(io::stdout(), "{lost}; its port has stopped")?;
        }
        told = lost;
        if go_on.send(()).is_err() {
            return Ok(());
        }
        let Some(signal) = next(&lines) else {
            return Ok(());
        };
        let said = match signal? {
            Signal::Success(line) => {
                is_second = false;
                match act.line(&line) {
                    Ok(Next::Said(text)) => text,
                    Ok(Next::Leave) => return Ok(()),
                    Err(why) => format!("{why}\n"),
                }
            }
            Signal::CtrlC if is_second => return Ok(()),
            Signal::CtrlC => {
                is_second = true;
                let did = if act.runs() { "stopped; " } else { "" };
                act.stop();
                format!("{did}Ctrl-C again leaves\n")
            }
            _ => return Ok(()),
        };
        io::stdout().lock().write_all(said.as_bytes())?;
    }
}

/// Reads a line each time that it is asked to, and keeps it for the next console.
fn read(mut editor: Reedline, asked: &Receiver<()>, typed: &SyncSender<io::Result<Signal>>) {
    let prompt = DefaultPrompt::new(
        DefaultPromptSegment::Basic("parshall".to_owned()),
        DefaultPromptSegment::Empty,
    );
    while asked.recv().is_ok() {
        let signal = editor.read_line(&prompt).map_err(io::Error::other);
        // A file that cannot be written keeps no lines; the console goes on.
        let _ = editor.sync_history();
        if typed.send(signal).is_err() {
            return;
        }
    }
}

/// What is typed next; None when the terminal is closed.
fn next(lines: &Receiver<io::Result<Signal>>) -> Option<io::Result<Signal>> {
    loop {
        match lines.recv_timeout(TICK) {
            Ok(signal) => return Some(signal),
            Err(RecvTimeoutError::Timeout) if !is_hung_up() => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        }
    }
}

fn editor(history: Option<PathBuf>) -> Reedline {
    let menu = ColumnarMenu::default().with_name(MENU);
    let mut keys = default_emacs_keybindings();
    keys.add_binding(
        KeyModifiers::NONE,
        KeyCode::Tab,
        ReedlineEvent::UntilFound(vec![
            ReedlineEvent::Menu(MENU.to_owned()),
            ReedlineEvent::MenuNext,
        ]),
    );
    let editor = Reedline::create()
        .with_completer(Box::new(Words))
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_edit_mode(Box::new(Emacs::new(keys)));
    // Without a file that can be written, lines are kept as long as the console runs.
    match history.and_then(|file| FileBackedHistory::with_file(LINES, file).ok()) {
        Some(history) => editor.with_history(Box::new(history)),
        None => editor,
    }
}

/// Completes words, options and files.
pub struct Words;

impl Words {
    /// What the word at the end of `line` may be.
    pub fn of(line: &str) -> Vec<String> {
        let begun = line.rsplit(char::is_whitespace).next().unwrap_or_default();
        let before: Vec<&str> = line[..line.len() - begun.len()]
            .split_whitespace()
            .collect();
        let command = Line::command();
        let mut all: Vec<String> = match before.first() {
            None => {
                let words = command
                    .get_subcommands()
                    .map(|word| word.get_name().to_owned());
                words.chain(["help".to_owned()]).collect()
            }
            Some(_) if before.last() == Some(&"-f") => files(begun),
            Some(&"help") => command
                .get_subcommands()
                .map(|w| w.get_name().to_owned())
                .collect(),
            Some(word) => {
                let word = command.find_subcommand(word);
                let options = word.into_iter().flat_map(|word| word.get_opts());
                options
                    .flat_map(|option| {
                        let short = option.get_short().map(|letter| format!("-{letter}"));
                        short
                            .into_iter()
                            .chain(option.get_long().map(|name| format!("--{name}")))
                    })
                    .collect()
            }
        };
        all.retain(|word| word.starts_with(begun));
        all
    }
}

/// Files and directories that begin so, and profiles that are built in.
fn files(begun: &str) -> Vec<String> {
    let (directory, _) = begun.rsplit_once('/').map_or(("", begun), |(d, f)| (d, f));
    let place = match (directory, begun.starts_with('/')) {
        ("", true) => "/",
        ("", false) => ".",
        (directory, _) => directory,
    };
    let prefix = if begun.contains('/') {
        format!("{directory}/")
    } else {
        String::new()
    };
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let files = entries.map(|entry| {
        let end = if entry.path().is_dir() { "/" } else { "" };
        format!("{prefix}{}{end}", entry.file_name().to_string_lossy())
    });
    let built_in = loadgen::model::profile::BUILTIN.iter();
    files
        .chain(built_in.map(|profile| profile.name.to_owned()))
        .collect()
}

impl Completer for Words {
    fn complete(&mut self, line: &str, position: usize) -> CompletionResult {
        let line = line.get(..position).unwrap_or(line);
        let begun = line.rsplit(char::is_whitespace).next().unwrap_or_default();
        let span = Span::new(position - begun.len(), position);
        let suggestion = |value: String| Suggestion {
            append_whitespace: !value.ends_with('/'),
            value,
            span,
            ..Suggestion::default()
        };
        let all: Vec<Suggestion> = Self::of(line).into_iter().map(suggestion).collect();
        CompletionResult::fresh(all)
    }
}
