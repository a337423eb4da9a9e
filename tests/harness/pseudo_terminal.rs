//! A terminal for a program: keys are typed, and what it shows is read.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{self, Winsize};

use super::{patience, until};

/// What a program asks a terminal, which answers where its cursor is.
const WHERE: &[u8] = b"\x1b[6n";

/// Time between two looks whether it is closed: 20 ms.
const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

fn at_least_one(size: u16) -> NonZeroU16 {
    NonZeroU16::new(size).expect("a terminal has a cell")
}

/// A terminal of some rows and columns.
pub struct PseudoTerminal {
    keyboard: File,
    program: OwnedFd,
    screen: Arc<Mutex<vt100::Parser>>,
    written: Arc<AtomicU64>,
    reader: JoinHandle<()>,
    is_closed: Arc<AtomicBool>,
}

impl PseudoTerminal {
    pub fn open(rows: u16, columns: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC);
        let master = master.expect("a pseudo-terminal");
        grantpt(&master).expect("ours");
        unlockpt(&master).expect("ours");
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let program = ioctl_tiocgptpeer(&master, flags).expect("its other end");
        let keyboard = File::from(master);
        let mut output = keyboard.try_clone().expect("a descriptor");
        let screen = vt100::Parser::new(at_least_one(rows), at_least_one(columns), 0);
        let screen = Arc::new(Mutex::new(screen));
        let written: Arc<AtomicU64> = Arc::default();
        let is_closed: Arc<AtomicBool> = Arc::default();
        let (drawn, counted, closed) = (screen.clone(), written.clone(), is_closed.clone());
        let show = move || {
            let mut bytes = [0; 65536];
            while !closed.load(Ordering::Relaxed) {
                let mut fds = [PollFd::new(&output, PollFlags::IN)];
                if !poll(&mut fds, Some(&TICK)).is_ok_and(|ready| ready > 0) {
                    continue;
                }
                // The last one of the other end closes it.
                let Ok(read @ 1..) = output.read(&mut bytes) else {
                    return;
                };
                let bytes = &bytes[..read];
                let mut screen = drawn.lock().unwrap_or_else(PoisonError::into_inner);
                screen.process(bytes);
                counted.fetch_add(read as u64, Ordering::Relaxed);
                let (row, column) = screen.screen().cursor_position();
                for _ in 0..bytes.windows(WHERE.len()).filter(|b| *b == WHERE).count() {
                    let _ = write!(output, "\x1b[{};{}R", row + 1, column + 1);
                }
            }
        };
        let this = Self {
            keyboard,
            program,
            screen,
            written,
            reader: std::thread::spawn(show),
            is_closed,
        };
        this.resize(rows, columns);
        this
    }

    /// The end for the program, for [`Spawn::on_terminal`](super::Spawn::on_terminal).
    pub fn for_program(&self) -> OwnedFd {
        self.program.try_clone().expect("a descriptor")
    }

    /// Closes it under its program.
    pub fn close(self) {
        self.is_closed.store(true, Ordering::Relaxed);
        self.reader.join().expect("it ends");
    }

    /// Types keys.
    pub fn enter(&self, keys: &str) {
        let mut keyboard = &self.keyboard;
        keyboard.write_all(keys.as_bytes()).expect("it is open");
    }

    /// Has another size from now on. Its program is not told: it has no terminal of its session.
    pub fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        termios::tcsetwinsize(self.program.as_fd(), size).expect("a terminal");
        self.on_screen(|parser| {
            parser
                .screen_mut()
                .set_size(at_least_one(rows), at_least_one(columns))
        });
    }

    /// The screen as text.
    pub fn text(&self) -> String {
        self.on_screen(|parser| parser.screen().contents())
    }

    /// Whether the other screen is shown, which programs use that fill it.
    pub fn is_alternate(&self) -> bool {
        self.on_screen(|parser| parser.screen().alternate_screen())
    }

    /// Whether a cell of the screen has a colour.
    pub fn has_color(&self) -> bool {
        self.on_screen(|parser| {
            let (rows, columns) = parser.screen().size();
            let all =
                (0..rows.get()).flat_map(|row| (0..columns.get()).map(move |column| (row, column)));
            all.filter_map(|(row, column)| parser.screen().cell(row, column))
                .any(|cell| cell.fgcolor() != vt100::Color::Default)
        })
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// How it is set: a program puts it back when it leaves.
    pub fn modes(&self) -> String {
        format!(
            "{:?}",
            termios::tcgetattr(self.program.as_fd()).expect("a terminal")
        )
    }

    /// Waits until the screen has this on it.
    ///
    /// # Panics
    /// It does not.
    pub fn await_text(&self, text: &str) {
        self.await_that(text, |screen| screen.contains(text));
    }

    /// Waits until the screen is as it should be.
    ///
    /// # Panics
    /// It is not.
    pub fn await_that(&self, what: &str, is: impl Fn(&str) -> bool) {
        let came = until(patience(), || is(&self.text()));
        assert!(came, "no {what:?} on\n{}", self.text());
    }

    fn on_screen<T>(&self, work: impl FnOnce(&mut vt100::Parser) -> T) -> T {
        work(&mut self.screen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
