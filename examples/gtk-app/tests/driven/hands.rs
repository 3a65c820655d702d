//! A keyboard and a mouse: `xdotool` sends X events, which reach the window the way a person's do.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use gtk4::{self as gtk, gio, glib, graphene, prelude::*};

use crate::until;

/// What the mouse has left is drawn without light by then; only the picture's looks depend on it.
const AFTER_THE_MOUSE: Duration = Duration::from_millis(400);

pub(crate) struct Hands {
    window: gtk::ApplicationWindow,
    /// The window's number in X.
    number: String,
}

impl Hands {
    /// Waits for the window to be on the screen, and gives it the keyboard.
    pub(crate) async fn on(window: &gtk::ApplicationWindow) -> Self {
        until("the window is on the screen", || window.is_mapped() && window.width() > 0).await;
        let number = run(["xdotool", "search", "--sync", "--onlyvisible", "--name", "^Downloads$"]).await;
        let hands = Hands { window: window.clone(), number: number.trim().to_owned() };
        run(["xdotool", "windowfocus", "--sync", &hands.number]).await;
        until("the window has the keyboard", || window.is_active()).await;
        hands
    }

    pub(crate) async fn write(&self, text: &str) {
        run(["xdotool", "type", "--delay", "2", text]).await;
    }

    pub(crate) async fn enter(&self) {
        run(["xdotool", "key", "Return"]).await;
    }

    /// Presses the middle of a widget.
    pub(crate) async fn click(&self, widget: &impl IsA<gtk::Widget>) {
        let widget = widget.as_ref();
        let middle = graphene::Point::new(widget.width() as f32 / 2.0, widget.height() as f32 / 2.0);
        let point = widget.compute_point(&self.window, &middle).expect("a widget of the window");
        let (left, top) = self.window.surface_transform();
        let (x, y) = (f64::from(point.x()) + left, f64::from(point.y()) + top);
        let (x, y) = (x.round().to_string(), y.round().to_string());
        run(["xdotool", "mousemove", "--window", &self.number, &x, &y, "click", "1"]).await;
    }

    pub(crate) async fn screenshot(&self, file: &Path) {
        // No button is lit up by the mouse.
        run(["xdotool", "mousemove", "--window", &self.number, "10", "10"]).await;
        glib::timeout_future(AFTER_THE_MOUSE).await;
        run([OsStr::new("import"), "-window".as_ref(), self.number.as_ref(), file.as_os_str()]).await;
    }
}

/// Runs a program while the main loop goes on; what it prints.
async fn run<const N: usize>(words: [impl AsRef<OsStr>; N]) -> String {
    let words = words.map(|word| OsString::from(word.as_ref()));
    let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
    let program = gio::Subprocess::newv(&words, gio::SubprocessFlags::STDOUT_PIPE).expect("it starts");
    let (printed, _) = program.communicate_utf8_future(None).await.expect("it prints text");
    assert!(program.is_successful(), "{words:?} failed");
    printed.unwrap_or_else(|| glib::GString::from("")).into()
}
