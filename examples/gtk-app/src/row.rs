//! What one download looks like: its name, how far it is, and what can be done about it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use gtk4::{self as gtk, gdk, gio, glib, pango, prelude::*};
use hyperman_fetch::Url;

use crate::text;
use crate::transfer::{Arrived, Failure, Progress};

/// How often a row tells news, ten times a second: more cannot be read.
const REFRESH: Duration = Duration::from_millis(100);

/// The weight of the past in the speed that is shown, at each refresh: a hiccup of a second does not move it much.
const SMOOTHING: f64 = 0.9;

/// A download in the list.
pub(crate) struct Row {
    pub(crate) widget: gtk::ListBoxRow,
    pub(crate) url: Url,
    pub(crate) cancel: gtk::Button,
    pub(crate) again: gtk::Button,
    pub(crate) remove: gtk::Button,
    /// The download, while it is under way.
    pub(crate) task: RefCell<Option<glib::JoinHandle<()>>>,
    icon: gtk::Image,
    name: gtk::Label,
    bar: gtk::ProgressBar,
    status: gtk::Label,
}

impl Row {
    pub(crate) fn new(url: Url) -> Rc<Self> {
        let name = text::file_name(&url);
        let row = Row {
            widget: gtk::ListBoxRow::builder().activatable(false).selectable(false).focusable(false).build(),
            icon: gtk::Image::builder().pixel_size(32).css_classes(["kind"]).build(),
            name: label(&name, "name"),
            bar: gtk::ProgressBar::builder().hexpand(true).build(),
            status: label("", "status"),
            cancel: button("process-stop-symbolic", "Cancel"),
            again: button("view-refresh-symbolic", "Try again"),
            remove: button("window-close-symbolic", "Remove from the list"),
            task: RefCell::default(),
            url,
        };
        row.name.set_ellipsize(pango::EllipsizeMode::Middle);
        row.name.set_tooltip_text(Some(row.url.as_str()));
        row.status.set_ellipsize(pango::EllipsizeMode::End);
        row.lay_out();
        Rc::new(row)
    }

    fn lay_out(&self) {
        let middle = gtk::Box::builder()
            .orientation(gtk::Orientation::Vertical)
            .spacing(6)
            .hexpand(true)
            .valign(gtk::Align::Center)
            .build();
        middle.append(&self.name);
        middle.append(&self.bar);
        middle.append(&self.status);
        let across = gtk::Box::builder()
            .spacing(12)
            .margin_top(12)
            .margin_bottom(12)
            .margin_start(12)
            .margin_end(6)
            .build();
        across.append(&self.icon);
        across.append(&middle);
        let buttons = gtk::Box::new(gtk::Orientation::Horizontal, 0);
        for button in [&self.again, &self.cancel, &self.remove] {
            buttons.append(button);
        }
        across.append(&buttons);
        self.widget.set_child(Some(&across));
    }

    /// Ends the download by dropping its future; false when there was none.
    pub(crate) fn stop(&self) -> bool {
        self.task.take().inspect(glib::JoinHandle::abort).is_some()
    }

    /// Shows a download that begins, and on from there until what this returns is dropped.
    pub(crate) fn follow(self: &Rc<Self>, progress: Rc<Progress>) -> Follow {
        self.icon.set_icon_name(Some(&kind_of(&self.name.text())));
        self.bar.set_fraction(0.0);
        self.bar.set_visible(true);
        self.say("Connecting…", "status");
        self.offer(&[&self.cancel]);
        let row = Rc::clone(self);
        let seen = (Cell::new(Instant::now()), Cell::new(0_u64));
        let speed = Cell::new(None);
        let news = move || {
            let (received, now) = (progress.received.get(), Instant::now());
            let (then, before) = (seen.0.replace(now), seen.1.replace(received));
            if received > 0 {
                let current = (received - before) as f64 / now.duration_since(then).as_secs_f64().max(1e-3);
                let smooth =
                    speed.get().map_or(current, |past| past * SMOOTHING + current * (1.0 - SMOOTHING));
                speed.set(Some(smooth));
                row.show_progress(received, progress.total.get(), smooth);
            }
            glib::ControlFlow::Continue
        };
        Follow { source: Some(glib::timeout_add_local(REFRESH, news)) }
    }

    fn show_progress(&self, received: u64, total: Option<u64>, speed: f64) {
        let mut parts = vec![text::amount(received, total), text::speed(speed)];
        match total {
            Some(total) if total > 0 => {
                self.bar.set_fraction(received as f64 / total as f64);
                let left = Duration::try_from_secs_f64(total.saturating_sub(received) as f64 / speed);
                parts.extend(left.ok().filter(|_| speed > 0.0).map(text::time_left));
            }
            _ => self.bar.pulse(),
        }
        self.say(&parts.join(" · "), "status");
    }

    pub(crate) fn show_end(&self, end: &Result<Arrived, Failure>) {
        match end {
            Ok(arrived) => {
                let name = arrived.file.basename().unwrap_or_default();
                self.name.set_text(&name.to_string_lossy());
                self.bar.set_fraction(1.0);
                self.say(&format!("{} · Complete", text::size(arrived.bytes)), "complete");
                self.offer(&[&self.remove]);
            }
            Err(failure) => {
                self.icon.set_icon_name(Some("dialog-warning-symbolic"));
                self.show_without_file(&failure.to_string(), "failed");
            }
        }
    }

    pub(crate) fn show_cancelled(&self) {
        self.show_without_file("Cancelled", "status");
    }

    fn show_without_file(&self, status: &str, class: &str) {
        self.bar.set_visible(false);
        self.say(status, class);
        self.offer(&[&self.again, &self.remove]);
    }

    fn say(&self, status: &str, class: &str) {
        self.status.set_text(status);
        self.status.set_css_classes(&[class]);
    }

    fn offer(&self, buttons: &[&gtk::Button]) {
        for button in [&self.again, &self.cancel, &self.remove] {
            button.set_visible(buttons.contains(&button));
        }
    }
}

/// Keeps a row up to date while it is there.
pub(crate) struct Follow {
    source: Option<glib::SourceId>,
}

impl Drop for Follow {
    fn drop(&mut self) {
        if let Some(source) = self.source.take() {
            source.remove();
        }
    }
}

fn label(text: &str, class: &str) -> gtk::Label {
    gtk::Label::builder().label(text).xalign(0.0).css_classes([class]).build()
}

fn button(icon: &str, what: &str) -> gtk::Button {
    gtk::Button::builder()
        .icon_name(icon)
        .tooltip_text(what)
        .valign(gtk::Align::Center)
        .css_classes(["flat", "circular"])
        .build()
}

/// The name of the desktop's icon for files of such a name.
fn kind_of(name: &str) -> String {
    let (kind, _) = gio::content_type_guess(Some(name), None::<&[u8]>);
    let generic = gio::content_type_get_generic_icon_name(&kind).map(|name| format!("{name}-symbolic"));
    let themed = gdk::Display::default().map(|display| gtk::IconTheme::for_display(&display));
    let known = generic.filter(|name| themed.is_some_and(|theme| theme.has_icon(name)));
    known.unwrap_or_else(|| "text-x-generic-symbolic".to_owned())
}
