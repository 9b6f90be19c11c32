//! Headless Chromium, driven over its DevTools protocol through two pipes: no port, no library.
//! Tests act like a reader: open, look, point, click, drag.

use base64::Engine;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

/// Timeout for a reply from the browser, after which the browser is killed and the test fails.
const RESPONSE_MAX: Duration = Duration::from_secs(60);

/// Maximum polling time of [`Browser::wait_for`] in milliseconds; below [`RESPONSE_MAX`].
const WAIT_MAX_MS: u32 = 40_000;

/// Script that starts the browser, which reads commands on descriptor 3 and answers on 4, each
/// message terminated by a zero byte.
const START: &str = "exec chromium --remote-debugging-pipe \"$@\" 3<&0 4>&1 </dev/null >/dev/null";

const OPTIONS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
];

/// Browser with one page.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: String,
    last: u64,
    loaded: u64,
    problems: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Opens an empty window of 1,280 by 900 pixels with the light color scheme.
    #[track_caller]
    pub(crate) fn open() -> Browser {
        let profile = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", START, "chromium"]).args(OPTIONS);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (to, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (tell, from) = mpsc::channel();
        thread::spawn(move || {
            for message in BufReader::new(out).split(0) {
                let Ok(message) = message else { break };
                if tell.send(serde_json::from_slice(&message).unwrap()).is_err() {
                    break;
                }
            }
        });
        let mut browser = Browser {
            child,
            to,
            from,
            session: String::new(),
            last: 0,
            loaded: 0,
            problems: Vec::new(),
            _profile: profile,
        };
        browser.attach();
        browser.window(DESK.0, DESK.1);
        browser
    }

    fn attach(&mut self) {
        let target = self.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = self.call("Target.attachToTarget", attach);
        self.session = session["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            self.call(domain, json!({}));
        }
    }

    /// Sends a command of the protocol, and returns its result.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.to.write_all(message.to_string().as_bytes()).unwrap();
        self.to.write_all(b"\0").unwrap();
        loop {
            let mut answer = self.next(method);
            if answer["id"] == json!(self.last) {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
        }
    }

    /// Returns the next message that is not an event; events are recorded.
    #[track_caller]
    fn next(&mut self, waiting_for: &str) -> Value {
        let message = self.from.recv_timeout(RESPONSE_MAX);
        let message = message.unwrap_or_else(|error| panic!("{waiting_for}: {error}"));
        let params = &message["params"];
        match message["method"].as_str() {
            Some("Page.loadEventFired") => self.loaded += 1,
            Some("Runtime.exceptionThrown") => {
                self.problems.push(params["exceptionDetails"].to_string());
            }
            Some("Log.entryAdded") if params["entry"]["level"] == "error" => {
                self.problems.push(params["entry"].to_string());
            }
            Some("Runtime.consoleAPICalled") if params["type"] == "error" => {
                self.problems.push(params["args"].to_string());
            }
            _ => {}
        }
        message
    }

    /// Errors of the page so far: exceptions, policy violations, failed requests.
    pub(crate) fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Opens a URL and waits until it is loaded.
    #[track_caller]
    pub(crate) fn go(&mut self, url: &str) {
        let before = self.loaded;
        let answer = self.call("Page.navigate", json!({"url": url}));
        assert!(answer["errorText"].is_null(), "{url}: {}", answer["errorText"]);
        self.loaded_after(before, url);
    }

    /// Opens a file.
    #[track_caller]
    pub(crate) fn go_to_file(&mut self, path: &Path) {
        self.go(&format!("file://{}", path.canonicalize().unwrap().display()));
    }

    /// Returns the value of an expression, which may be a promise, as JSON.
    #[track_caller]
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let mut answer = self.call("Runtime.evaluate", params);
        let failure = &answer["exceptionDetails"];
        assert!(failure.is_null(), "{expression}: {failure}\n{:?}", self.problems);
        answer["result"]["value"].take()
    }

    /// Returns the text of the first element that a selector matches.
    #[track_caller]
    pub(crate) fn text(&mut self, selector: &str) -> String {
        let text = self.eval(&format!("document.querySelector({}).innerText", json!(selector)));
        text.as_str().unwrap().to_owned()
    }

    /// Waits until an expression is true; an exception counts as false.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, expression: &str) {
        let looking = format!(
            "new Promise((done, give_up) => {{ const until = Date.now() + {WAIT_MAX_MS}; \
             const look = () => {{ let is; try {{ is = {expression} }} catch (e) {{ is = false }} \
             if (is) done(true); else if (Date.now() > until) give_up('never true'); \
             else setTimeout(look, 20) }}; look() }})"
        );
        self.eval(&looking);
    }

    /// Waits until the browser has drawn the changes.
    #[track_caller]
    pub(crate) fn drawn(&mut self) {
        self.eval("new Promise(ok => requestAnimationFrame(() => requestAnimationFrame(ok)))");
    }

    /// Returns the center of an element after scrolling it into view.
    #[track_caller]
    fn middle(&mut self, selector: &str) -> (f64, f64) {
        let place = self.eval(&format!(
            "(() => {{ const e = document.querySelector({0}); if (!e) throw 'no ' + {0}; \
             e.scrollIntoView({{block: 'center', behavior: 'instant'}}); \
             const r = e.getBoundingClientRect(); \
             return [r.x + r.width / 2, r.y + r.height / 2] }})()",
            json!(selector)
        ));
        (place[0].as_f64().unwrap(), place[1].as_f64().unwrap())
    }

    #[track_caller]
    fn mouse(&mut self, kind: &str, (x, y): (f64, f64)) {
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        let params = json!({"type": kind, "x": x, "y": y, "button": button, "clickCount": 1});
        self.call("Input.dispatchMouseEvent", params);
    }

    #[track_caller]
    pub(crate) fn click(&mut self, selector: &str) {
        let place = self.middle(selector);
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            self.mouse(kind, place);
        }
    }

    /// Clicks a link to another page, and waits until that page is loaded.
    #[track_caller]
    pub(crate) fn follow(&mut self, selector: &str) {
        let before = self.loaded;
        self.click(selector);
        self.loaded_after(before, selector);
    }

    /// Runs an action that opens another page, and waits until that page is loaded.
    #[track_caller]
    pub(crate) fn open_page_by(&mut self, act: impl FnOnce()) {
        let before = self.loaded;
        act();
        self.loaded_after(before, "another page");
    }

    #[track_caller]
    fn loaded_after(&mut self, before: u64, waiting_for: &str) {
        while self.loaded == before {
            self.next(waiting_for);
        }
    }

    /// Moves the pointer onto the middle of an element.
    #[track_caller]
    pub(crate) fn point_at(&mut self, selector: &str) {
        let place = self.middle(selector);
        self.mouse("mouseMoved", place);
        self.drawn();
    }

    /// Drags over an element, by pixels to either side of its middle.
    #[track_caller]
    pub(crate) fn drag_across(&mut self, selector: &str, (left, right): (f64, f64)) {
        let (x, y) = self.middle(selector);
        self.mouse("mouseMoved", (x + left, y));
        self.mouse("mousePressed", (x + left, y));
        self.mouse("mouseMoved", (x + right, y));
        self.mouse("mouseReleased", (x + right, y));
        self.drawn();
    }

    #[track_caller]
    pub(crate) fn window(&mut self, width: u32, height: u32) {
        let params =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", params);
    }

    /// Sets the color scheme, `light` or `dark`, and the medium, `screen` or `print`.
    #[track_caller]
    pub(crate) fn media(&mut self, scheme: &str, media: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({"media": media, "features": features}));
    }

    /// Enables or disables scripts for pages opened from now on.
    #[track_caller]
    pub(crate) fn scripts(&mut self, allowed: bool) {
        self.call("Emulation.setScriptExecutionDisabled", json!({"value": !allowed}));
    }

    /// Returns the whole page as PNG.
    #[track_caller]
    pub(crate) fn screenshot(&mut self) -> Vec<u8> {
        let params = json!({"format": "png", "captureBeyondViewport": true});
        let size = self.call("Page.getLayoutMetrics", json!({}))["cssContentSize"].take();
        let mut params = params;
        params["clip"] = json!({
            "x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1
        });
        bytes(&self.call("Page.captureScreenshot", params)["data"])
    }

    /// Keeps screenshots in the folder of `LOADSTONE_SHOTS`, if set.
    #[track_caller]
    pub(crate) fn keep_shot(&mut self, name: &str) {
        if let Some(folder) = std::env::var_os("LOADSTONE_SHOTS") {
            let file = Path::new(&folder).join(format!("{name}.png"));
            std::fs::write(file, self.screenshot()).unwrap();
        }
    }

    /// Checks that the page needs no horizontal scrolling on a phone's screen, and runs `look`
    /// there; afterwards restores the width of the window.
    #[track_caller]
    pub(crate) fn on_a_phone(&mut self, name: &str, look: impl FnOnce(&mut Browser)) {
        self.window(PHONE.0, PHONE.1);
        self.drawn();
        self.keep_shot(&format!("phone-{name}"));
        let width = self.eval("document.documentElement.scrollWidth");
        assert_eq!(width, json!(PHONE.0), "{name}");
        look(self);
        self.window(DESK.0, DESK.1);
    }

    /// Runs [`Browser::on_a_phone`] without further checks.
    #[track_caller]
    pub(crate) fn fits_a_phone(&mut self, name: &str) {
        self.on_a_phone(name, |_| {});
    }

    /// Prints the page to PDF on A4.
    #[track_caller]
    pub(crate) fn printed(&mut self) -> Vec<u8> {
        let params = json!({"preferCSSPageSize": true, "paperWidth": 8.27, "paperHeight": 11.69});
        bytes(&self.call("Page.printToPDF", params)["data"])
    }
}

#[track_caller]
fn bytes(data: &Value) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD.decode(data.as_str().unwrap()).unwrap()
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Window of a desktop, in CSS pixels.
const DESK: (u32, u32) = (1_280, 900);
/// Window size of a common phone.
const PHONE: (u32, u32) = (390, 844);
