//! A device that the user's own commands set up, measure and put away.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sandbox::{Error, cleanup};
use serde_json::Value;

use crate::script::Script;

/// The commands of a device.
#[derive(Debug, Clone)]
pub struct Command {
    /// Makes the device ready.
    pub prepare: Option<Script>,
    /// Measures it, and prints the figure as JSON.
    pub measure: Script,
    /// Puts it away, whatever happened.
    pub teardown: Option<Script>,
    /// Key of the figure in the JSON, or the way to it as in `/search/max_pps`; None if the JSON is
    /// the figure.
    pub figure: Option<String>,
    /// Time that each command may take.
    pub limit: Duration,
    /// Measurements before the one that counts.
    pub warm_up: u32,
}

/// What is to be put away if a signal ends the process.
#[derive(Debug, Clone, Default)]
pub struct Pending(Arc<Mutex<Option<(Script, Duration)>>>);

impl Pending {
    /// From now on SIGINT, SIGTERM and SIGHUP end the running command, put its device away, remove
    /// what the laboratory made, and end this process.
    ///
    /// # Errors
    /// If the handler cannot be installed.
    pub fn on_signal(&self) -> Result<(), Error> {
        let pending = self.clone();
        cleanup::on_signal_after(move || {
            // A teardown that runs is waited for. The lock is held until the process has ended, so
            // that nothing else is begun.
            let mut pending = pending.lock();
            eprintln!("\nparshall: interrupted; the same command goes on after the runs so far");
            if let Some((teardown, limit)) = pending.take() {
                sandbox::process::kill_children();
                tell(teardown.run(limit, None));
            }
            std::mem::forget(pending);
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Script, Duration)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says that a teardown failed: its device is in the way of the next one.
fn tell(teardown: Result<String, Error>) {
    if let Err(e) = teardown {
        eprintln!("parshall: {e}");
    }
}

impl Command {
    /// Prepares the device, measures it and puts it away. If the measurement fails, the error is
    /// that.
    ///
    /// # Errors
    /// A command fails or takes longer than its limit, or what it prints has no figure.
    pub fn run(&self, pending: &Pending) -> Result<f64, Error> {
        *pending.lock() = self.teardown.clone().map(|script| (script, self.limit));
        let figure = self.measured();
        let mut pending = pending.lock();
        let down = match pending.take() {
            Some((teardown, limit)) => teardown.run(limit, None).map(drop),
            None => Ok(()),
        };
        figure.and_then(|figure| down.map(|()| figure))
    }

    /// Puts away what a run left that ended suddenly. Perhaps there is nothing.
    pub fn put_away(&self) {
        if let Some(teardown) = &self.teardown {
            let _ = teardown.run(self.limit, None);
        }
    }

    fn measured(&self) -> Result<f64, Error> {
        if let Some(prepare) = &self.prepare {
            prepare.run(self.limit, None)?;
        }
        for _ in 0..self.warm_up {
            self.measure.run(self.limit, None)?;
        }
        let text = self.measure.run(self.limit, None)?;
        figure(&text, self.figure.as_deref()).map_err(|message| Error::Output {
            program: "measure".into(),
            message,
        })
    }
}

/// The figure in what a command printed: in its last line, or in all of it.
fn figure(text: &str, key: Option<&str>) -> Result<f64, String> {
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    let last = last.ok_or("it printed nothing")?;
    let json: Value = serde_json::from_str(last)
        .or_else(|_| serde_json::from_str(text))
        .map_err(|_| format!("its last line is no JSON: {last}"))?;
    let way = match key {
        None => String::new(),
        Some(way) if way.starts_with('/') => way.to_owned(),
        Some(key) => format!("/{key}"),
    };
    // Whatever has the figure within it, from the whole document on.
    let ends = way.match_indices('/').map(|(end, _)| &way[..end]);
    let mut around = ends.filter_map(|within| json.pointer(within));
    if let Some(of) = around.find(|of| of["valid"] == Value::Bool(false)) {
        let why = of["why"].as_str().filter(|why| !why.is_empty());
        return Err(why.unwrap_or("its `valid` is false").to_owned());
    }
    match json.pointer(&way) {
        None => Err(format!(
            "there is no `{}` in its JSON",
            key.unwrap_or_default()
        )),
        Some(value) => value.as_f64().ok_or_else(|| match key {
            None => "its JSON is no number: give the key of the figure as `figure`".to_owned(),
            Some(key) => format!("`{key}` is no number: {value}"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(name: &'static str, text: &str) -> Script {
        Script {
            name,
            text: text.to_owned(),
            variables: vec![("n".to_owned(), "41".to_owned())],
        }
    }

    fn command(directory: &std::path::Path, measure: &str) -> Command {
        let in_it = |text: &str| format!("cd {}; {text}", directory.display());
        Command {
            prepare: Some(script("prepare", &in_it("touch device"))),
            measure: script("measure", &in_it(measure)),
            teardown: Some(script("teardown", &in_it("rm device"))),
            figure: Some("rate".to_owned()),
            limit: Duration::from_secs(20),
            warm_up: 1,
        }
    }

    #[test]
    fn a_figure_is_found() {
        for (text, key, said) in [
            ("5\n", None, Ok(5.0)),
            ("log\n{\"a\": 2.5}\n\n", Some("a"), Ok(2.5)),
            (
                "{\n\"search\": {\"valid\": true,\n\"max_pps\": 1e6}\n}",
                Some("/search/max_pps"),
                Ok(1e6),
            ),
            (
                "{\"valid\": false, \"why\": \"no packet\", \"a\": 1}",
                Some("a"),
                Err("no packet"),
            ),
            (
                "{\"valid\": false, \"why\": \"late\", \"r\": {\"valid\": true, \"a\": [1, 2]}}",
                Some("/r/a/1"),
                Err("late"),
            ),
            (
                "{\"valid\": true, \"r\": {\"valid\": false, \"a\": {\"b\": 1}}}",
                Some("/r/a/b"),
                Err("its `valid` is false"),
            ),
            (
                "{\"s\": {\"valid\": false}, \"valid\": true, \"a\": 3}",
                Some("a"),
                Ok(3.0),
            ),
            (
                "{\"valid\": false, \"a\": 1}",
                Some("a"),
                Err("its `valid` is false"),
            ),
            ("{\"a\": 1}", Some("b"), Err("there is no `b` in its JSON")),
            ("{\"a\": \"1\"}", Some("a"), Err("`a` is no number: \"1\"")),
            (
                "{\"a\": 1}",
                None,
                Err("its JSON is no number: give the key of the figure as `figure`"),
            ),
            (
                "{\"a\": 1}\nbye",
                Some("a"),
                Err("its last line is no JSON: bye"),
            ),
            (" \n", None, Err("it printed nothing")),
        ] {
            assert_eq!(figure(text, key), said.map_err(str::to_owned), "{text}");
        }
    }

    /// The first measurement is the warm-up.
    #[test]
    fn a_device_is_prepared_measured_and_put_away() {
        let directory = tempfile::tempdir().unwrap();
        let measure =
            "[ -e device ]; echo x >> runs; echo \"{\\\"rate\\\": $((n + $(wc -l < runs)))}\"";
        let run = command(directory.path(), measure).run(&Pending::default());
        assert_eq!(run.unwrap(), 43.0);
        assert!(!directory.path().join("device").exists());
    }

    #[test]
    fn a_device_that_fails_is_put_away_too() {
        let directory = tempfile::tempdir().unwrap();
        for (measure, said) in [
            ("echo bad >&2; exit 3", "`measure` failed: bad"),
            ("echo $none", "none"),
        ] {
            let error = command(directory.path(), measure).run(&Pending::default());
            let error = error.unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
            assert!(!directory.path().join("device").exists());
        }
        let mut late = command(directory.path(), "sleep 1000");
        late.limit = Duration::from_millis(200);
        let error = late.run(&Pending::default()).unwrap_err().to_string();
        assert!(error.contains("did not end"), "{error}");
        assert!(!directory.path().join("device").exists());
    }
}
