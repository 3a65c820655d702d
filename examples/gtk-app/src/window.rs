//! The window, and how downloads in it begin and end.

use std::cell::RefCell;
use std::io;
use std::rc::{Rc, Weak};

use gtk4::{self as gtk, gdk, gio, glib, pango, prelude::*};
use hyperman_fetch::{Client, Url};
use hyperman_glib::GlibRuntime;

use crate::row::Row;
use crate::transfer::{self, Arrived, Progress};

/// Wide enough for a size, a speed and a time, in pixels.
const LIST_WIDTH: i32 = 480;

/// The least width that a picture is shown in, in pixels.
const PICTURE_WIDTH: i32 = 400;

/// A window of `application` that downloads into `folder`. It is not shown yet.
///
/// # Errors
/// When no descriptor is free.
pub fn open(application: &gtk::Application, folder: &gio::File) -> io::Result<gtk::ApplicationWindow> {
    let runtime = GlibRuntime::new(glib::MainContext::default())?;
    style();
    let window = gtk::ApplicationWindow::builder()
        .application(application)
        .title("Downloads")
        .default_width(940)
        .default_height(580)
        .build();
    let downloads = Rc::new(Downloads {
        client: Client::new(runtime),
        folder: folder.clone(),
        rows: RefCell::default(),
        address: gtk::Entry::builder()
            .placeholder_text("Address of a file or a picture")
            .primary_icon_name("folder-download-symbolic")
            .input_purpose(gtk::InputPurpose::Url)
            .width_request(480)
            .build(),
        spinner: gtk::Spinner::builder().margin_start(6).margin_end(6).build(),
        list: gtk::ListBox::builder()
            .selection_mode(gtk::SelectionMode::None)
            .css_classes(["downloads"])
            .build(),
        summary: gtk::Label::builder().css_classes(["place"]).build(),
        picture: gtk::Picture::builder().css_classes(["picture"]).build(),
        caption: gtk::Label::builder().ellipsize(pango::EllipsizeMode::Middle).css_classes(["place"]).build(),
        pictures: gtk::Stack::builder().transition_type(gtk::StackTransitionType::Crossfade).build(),
    });
    window.set_titlebar(Some(&downloads.header()));
    window.set_child(Some(&downloads.content()));
    downloads.count();
    // The window holds the downloads. They end with it, and leave no half of a file behind.
    window.connect_close_request(move |_| {
        for row in downloads.rows.take() {
            row.stop();
        }
        glib::Propagation::Proceed
    });
    Ok(window)
}

struct Downloads {
    client: Client<GlibRuntime>,
    folder: gio::File,
    rows: RefCell<Vec<Rc<Row>>>,
    address: gtk::Entry,
    spinner: gtk::Spinner,
    list: gtk::ListBox,
    summary: gtk::Label,
    picture: gtk::Picture,
    caption: gtk::Label,
    pictures: gtk::Stack,
}

/// How downloads begin and end.
impl Downloads {
    /// Begins to download what the entry names; what cannot be an address stays there, marked.
    fn take_address(self: &Rc<Self>) {
        let text = self.address.text();
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        match Url::parse(&whole) {
            Ok(url) if url.has_host() => {
                self.address.set_text("");
                self.add(url);
            }
            _ => self.address.add_css_class("error"),
        }
    }

    fn add(self: &Rc<Self>, url: Url) {
        let row = Row::new(url);
        self.when_clicked(&row, &row.cancel, |this, row| {
            if row.stop() {
                row.show_cancelled();
            }
            this.count();
        });
        self.when_clicked(&row, &row.again, |this, row| this.begin(row));
        self.when_clicked(&row, &row.remove, |this, row| {
            this.list.remove(&row.widget);
            this.rows.borrow_mut().retain(|other| !Rc::ptr_eq(other, row));
            this.count();
        });
        self.list.append(&row.widget);
        self.rows.borrow_mut().push(Rc::clone(&row));
        self.begin(&row);
    }

    fn when_clicked(
        self: &Rc<Self>,
        row: &Rc<Row>,
        button: &gtk::Button,
        act: impl Fn(&Rc<Self>, &Rc<Row>) + 'static,
    ) {
        let weak: (Weak<Self>, Weak<Row>) = (Rc::downgrade(self), Rc::downgrade(row));
        button.connect_clicked(move |_| {
            if let (Some(this), Some(row)) = (weak.0.upgrade(), weak.1.upgrade()) {
                act(&this, &row);
            }
        });
    }

    /// Starts the future that is a row's download.
    fn begin(self: &Rc<Self>, row: &Rc<Row>) {
        let (this, moving) = (Rc::clone(self), Rc::clone(row));
        let download = async move {
            let progress = Rc::new(Progress::default());
            let follow = moving.follow(Rc::clone(&progress));
            let end = transfer::download(&this.client, moving.url.clone(), &this.folder, &progress).await;
            drop(follow);
            moving.show_end(&end);
            if let Ok(Arrived { file, picture: Some(picture), .. }) = end {
                this.show_picture(&file, &picture);
            }
            moving.task.take();
            this.count();
        };
        let context = glib::MainContext::default();
        row.task.replace(Some(context.spawn_local_with_priority(transfer::PRIORITY.into(), download)));
        self.count();
    }

    fn show_picture(&self, file: &gio::File, picture: &gdk::Texture) {
        let name = file.basename().unwrap_or_default();
        let name = name.to_string_lossy();
        self.picture.set_paintable(Some(picture));
        self.picture.set_alternative_text(Some(&name));
        self.caption.set_text(&format!("{name} · {} × {}", picture.width(), picture.height()));
        self.pictures.set_visible_child_name("picture");
    }

    /// Tells how many downloads are under way.
    fn count(&self) {
        let rows = self.rows.borrow();
        let under_way = rows.iter().filter(|row| row.task.borrow().is_some()).count();
        self.spinner.set_spinning(under_way > 0);
        self.summary.set_text(&match (under_way, rows.len()) {
            (_, 0) => String::new(),
            (0, all) => format!("{all} in the list"),
            (some, all) => format!("{some} of {all} under way"),
        });
    }
}

/// How it is put together.
impl Downloads {
    fn header(self: &Rc<Self>) -> gtk::HeaderBar {
        let start = gtk::Button::builder().label("Download").css_classes(["suggested-action"]).build();
        let header = gtk::HeaderBar::builder().title_widget(&self.address).build();
        header.pack_end(&start);
        header.pack_end(&self.spinner);
        let this = Rc::downgrade(self);
        start.connect_clicked(move |_| {
            if let Some(this) = this.upgrade() {
                this.take_address();
            }
        });
        let this = Rc::downgrade(self);
        self.address.connect_activate(move |_| {
            if let Some(this) = this.upgrade() {
                this.take_address();
            }
        });
        self.address.connect_changed(|address| address.remove_css_class("error"));
        header
    }

    fn content(&self) -> gtk::Box {
        self.list.set_placeholder(Some(&nothing(
            "folder-download-symbolic",
            "No downloads",
            "Files whose address you enter are listed here",
        )));
        let left = column();
        left.set_hexpand(true);
        left.set_size_request(LIST_WIDTH, -1);
        left.append(
            &gtk::ScrolledWindow::builder()
                .hscrollbar_policy(gtk::PolicyType::Never)
                .vexpand(true)
                .child(&self.list)
                .build(),
        );
        left.append(&gtk::Separator::new(gtk::Orientation::Horizontal));
        left.append(&self.foot());

        let shown = column();
        shown.set_spacing(12);
        shown.set_valign(gtk::Align::Center);
        shown.append(&self.picture);
        shown.append(&self.caption);
        for (side, set) in [18, 18, 18, 18].into_iter().zip(MARGINS) {
            set(&shown, side);
        }
        self.pictures.add_named(
            &nothing("image-x-generic-symbolic", "No picture", "The last one to arrive is shown here"),
            Some("nothing"),
        );
        self.pictures.add_named(&shown, Some("picture"));
        self.pictures.set_size_request(PICTURE_WIDTH, -1);
        self.pictures.add_css_class("pictures");

        let across = gtk::Box::builder().build();
        across.append(&left);
        across.append(&gtk::Separator::new(gtk::Orientation::Vertical));
        across.append(&self.pictures);
        across
    }

    /// Where files are kept, and how many are on their way there.
    fn foot(&self) -> gtk::Box {
        let path = self.folder.parse_name();
        let place = gtk::Label::builder()
            .label(format!("Saved in {path}"))
            .xalign(0.0)
            .hexpand(true)
            .ellipsize(pango::EllipsizeMode::Middle)
            .css_classes(["place"])
            .build();
        let foot = gtk::Box::builder().spacing(12).build();
        foot.append(&place);
        foot.append(&self.summary);
        for (side, set) in [8, 8, 14, 14].into_iter().zip(MARGINS) {
            set(&foot, side);
        }
        foot
    }
}

/// Top, bottom, start, end.
const MARGINS: [fn(&gtk::Box, i32); 4] = [
    gtk::Box::set_margin_top,
    gtk::Box::set_margin_bottom,
    gtk::Box::set_margin_start,
    gtk::Box::set_margin_end,
];

fn column() -> gtk::Box {
    gtk::Box::builder().orientation(gtk::Orientation::Vertical).build()
}

/// What stands where there is nothing yet.
fn nothing(icon: &str, headline: &str, more: &str) -> gtk::Box {
    let nothing = gtk::Box::builder()
        .orientation(gtk::Orientation::Vertical)
        .spacing(6)
        .valign(gtk::Align::Center)
        .vexpand(true)
        .css_classes(["nothing"])
        .build();
    nothing.append(&gtk::Image::builder().icon_name(icon).pixel_size(64).margin_bottom(6).build());
    nothing.append(&gtk::Label::builder().label(headline).css_classes(["headline"]).build());
    nothing.append(&gtk::Label::new(Some(more)));
    nothing
}

fn style() {
    let provider = gtk::CssProvider::new();
    provider.load_from_data(include_str!("style.css"));
    if let Some(display) = gdk::Display::default() {
        let priority = gtk::STYLE_PROVIDER_PRIORITY_APPLICATION;
        gtk::style_context_add_provider_for_display(&display, &provider, priority);
    }
}
