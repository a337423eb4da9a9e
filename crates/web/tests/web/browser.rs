//! A browser without a window, driven by its DevTools protocol over a pipe, as a user drives one: by
//! the mouse and the keyboard.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use testbed::{Process, Spawn, patience, until};

/// Nothing takes this long unless something is wrong.
fn limit() -> Duration {
    patience(Duration::from_secs(60))
}

/// A browser with one page, which is ended when it is dropped.
pub struct Browser {
    to: File,
    from: Receiver<Value>,
    session: Option<String>,
    next: u64,
    /// Errors of scripts, and of the policy.
    errors: Vec<String>,
    process: Process,
}

impl Browser {
    /// Starts one that keeps its files in `directory`, by `inside`, which may put it somewhere.
    pub fn start(directory: &Path, inside: impl FnOnce(Spawn) -> Spawn) -> Browser {
        let fifo = |name: &str| {
            let path = directory.join(name);
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            // Opened both ways, it waits for nobody.
            let file = OpenOptions::new().read(true).write(true).open(&path);
            (file.unwrap(), path.display().to_string())
        };
        let (to, to_path) = fifo("to");
        let (from, from_path) = fifo("from");
        let profile = format!("--user-data-dir={}", directory.join("profile").display());
        let script = "exec chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
             --disable-background-networking --disable-component-update --disable-sync --remote-debugging-pipe \
             \"$1\" 3<\"$2\" 4>\"$3\"";
        let spawn = Spawn::new("sh").args(["-c", script, "sh", &profile, &to_path, &from_path]);
        let process = inside(spawn).start().unwrap();
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            for message in BufReader::new(from).split(0) {
                let message = serde_json::from_slice(&message.unwrap()).unwrap();
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Browser {
            to,
            from: receiver,
            session: None,
            next: 0,
            errors: Vec::new(),
            process,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Runtime.enable", "Log.enable", "Page.enable"] {
            browser.call(domain, json!({}));
        }
        browser
    }

    /// Opens a page in a window of this width.
    pub fn open(&mut self, url: &str, width: u32) {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size);
        self.call("Page.navigate", json!({"url": url}));
        self.wait_for("document.readyState === 'complete' && location.protocol === 'http:'");
    }

    /// The value of an expression in the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let call = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", call);
        assert!(
            answer.get("exceptionDetails").is_none(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub fn wait_for(&mut self, expression: &str) {
        if !until(limit(), || self.value(expression) == true) {
            let text = self.value("document.body.innerText");
            panic!("never {expression}:\n{}", text.as_str().unwrap_or_default());
        }
    }

    /// Clicks into the middle of an element, which must be there and on top.
    pub fn click(&mut self, selector: &str) {
        let found = format!(
            "(function () {{ var e = document.querySelector({0}); e.scrollIntoView({{ block: 'center' }}); \
             var r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2; \
             var top = document.elementFromPoint(x, y); return !e.disabled && (top === e || e.contains(top)) ? [x, y] : null; }})()",
            Value::from(selector)
        );
        self.wait_for(&format!("{found} !== null"));
        let at = self.value(&found);
        for kind in ["mousePressed", "mouseReleased"] {
            let event =
                json!({"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Types text into an element in place of what it has.
    pub fn enter(&mut self, selector: &str, text: &str) {
        self.click(selector);
        self.value("document.activeElement.select()");
        self.call("Input.insertText", json!({"text": text}));
    }

    /// Presses a key.
    pub fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", json!({"type": kind, "key": key}));
        }
    }

    /// Fails if the page has to be scrolled sideways.
    pub fn assert_fits(&mut self) {
        let fits = "document.documentElement.scrollWidth <= window.innerWidth";
        let widest = "Array.from(document.querySelectorAll('body *')).filter(e => e.getBoundingClientRect().right > innerWidth).map(e => e.tagName + e.id).join()";
        assert!(self.value(fits) == true, "{}", self.value(widest));
    }

    /// Fails if a script failed, or the policy kept something from the page.
    pub fn assert_no_errors(&self) {
        assert!(self.errors.is_empty(), "{:#?}", self.errors);
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let mut line = message.to_string().into_bytes();
        line.push(0);
        self.to.write_all(&line).unwrap();
        loop {
            let message = self.from.recv_timeout(limit());
            let message = message.unwrap_or_else(|_| panic!("{method}: {}", self.process.log()));
            if message["id"] == self.next {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
            self.note(&message);
        }
    }

    fn note(&mut self, event: &Value) {
        let entry = &event["params"]["entry"];
        let is_error = match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            // Answers that refuse are errors here, too.
            Some("Log.entryAdded") => entry["level"] == "error" && entry["source"] != "network",
            _ => false,
        };
        if is_error {
            self.errors.push(event["params"].to_string());
        }
    }
}
