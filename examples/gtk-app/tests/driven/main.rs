//! The window under a person's hands: addresses are typed and buttons pressed through X, what the widgets then show is
//! read back, and the longest pause of the main loop is measured all the while. `examples/gtk-app/drive` starts it.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod hands;
mod pauses;
mod site;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use gtk4::{self as gtk, gio, glib, prelude::*};
use hands::Hands;
use pauses::{Frames, Pauses};
use site::Site;

/// The main loop never stands still for longer: three frames of a screen are lost then, which an eye can see.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Longer than anything here takes on a busy machine; a test that hangs ends.
const PATIENCE: Duration = Duration::from_secs(120);

/// The size of the picture that ./drive makes.
const PICTURE: (i32, i32) = (1600, 1000);

fn main() {
    // A panic ends one future; the application would go on without it.
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        std::process::exit(1);
    }));
    let site = Rc::new(Site::start(path_from("PICTURE")));
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join("Downloads");
    std::fs::create_dir(&folder).expect("a folder");
    let application = gtk::Application::builder()
        .application_id(gtk_app::ID)
        .flags(gio::ApplicationFlags::NON_UNIQUE)
        .build();
    let done = Rc::new(Cell::new(false));
    application.connect_activate({
        let (done, folder) = (Rc::clone(&done), folder.clone());
        move |application| {
            let window =
                gtk_app::open(application, &gio::File::for_path(&folder)).expect("descriptors are free");
            window.present();
            let (done, folder, site) = (Rc::clone(&done), folder.clone(), Rc::clone(&site));
            glib::spawn_future_local(async move {
                drive(&window, &site, &folder).await;
                window.close();
                done.set(true);
            });
        }
    });
    application.run_with_args::<&str>(&[]);
    assert!(done.get(), "the application ended by itself");
    assert!(!folder.join("whole-disk.img").exists(), "a closed window leaves nothing behind");
}

async fn drive(window: &gtk::ApplicationWindow, site: &Site, folder: &Path) {
    let entry = only::<gtk::Entry>(window);
    let spinner = only::<gtk::Spinner>(window);
    let hands = Hands::on(window).await;
    assert!(!spinner.is_spinning() && rows(window).is_empty());
    let pauses = Pauses::measure();

    // Addresses, one after the other, each of which starts while the earlier ones go on.
    for (count, path) in (1..).zip(site::PATHS) {
        hands.click(&entry).await;
        hands.write(&site.url(path)).await;
        match count {
            2 => hands.click(&button(window, |button| button.label().is_some())).await,
            _ => hands.enter().await,
        }
        until("a row for each address", || rows(window).len() == count).await;
        assert_eq!(entry.text(), "");
    }
    assert!(spinner.is_spinning());
    let frames = Frames::count(&spinner);

    // The disk's copy would take minutes.
    until("some of the disk is there", || row(window, site::ENDLESS).fraction > 0.0).await;
    assert!(folder.join("whole-disk.img").exists());
    hands.click(&row(window, site::ENDLESS).button("Cancel")).await;
    until("it is cancelled", || row(window, site::ENDLESS).status == "Cancelled").await;
    until("a cancelled download leaves nothing behind", || !folder.join("whole-disk.img").exists()).await;

    until("the maps are there", || row(window, site::FAST).status == "24.0 MB · Complete").await;
    until("the picture is there", || row(window, site::PICTURE).status.ends_with("Complete")).await;
    let picture = only::<gtk::Picture>(window).paintable().expect("a picture is shown");
    assert_eq!((picture.intrinsic_width(), picture.intrinsic_height()), PICTURE);
    until("what is missing says so", || {
        row(window, site::MISSING).status == "The server answered 404 Not Found"
    })
    .await;

    // The concert is still being played: its last part is held back.
    until("most of the concert is there", || row(window, site::SLOW).fraction > 0.5).await;
    let slow = row(window, site::SLOW);
    assert!(slow.fraction < 1.0 && slow.status.contains(" of 8.0 MB · "), "{}", slow.status);
    assert!(spinner.is_spinning());
    // The X server serves nobody else while it is being copied from, which is not the window's doing.
    pauses.halt();
    hands.screenshot(&path_from("SCREENSHOT")).await;
    pauses.go_on();
    site.release();
    until("the concert is there", || row(window, site::SLOW).status == "8.0 MB · Complete").await;
    assert!((row(window, site::SLOW).fraction - 1.0).abs() < f64::EPSILON);
    assert!(!spinner.is_spinning());
    hands.click(&row(window, site::MISSING).button("Remove from the list")).await;
    until("its row is gone", || rows(window).len() == site::PATHS.len() - 1).await;

    // Once more, and this time the window is closed meanwhile.
    hands.click(&row(window, site::ENDLESS).button("Try again")).await;
    until("some of the disk is there again", || row(window, site::ENDLESS).status.contains(" of 900.0 MB"))
        .await;
    assert!(folder.join("whole-disk.img").exists() && spinner.is_spinning());

    println!("{pauses}\n{frames}");
    assert_eq!(site::check(&folder.join("evening-concert.flac")), 8_000_000);
    assert_eq!(site::check(&folder.join("town-maps.zip")), 24_000_000);
    let longest = pauses.longest();
    if longest >= LONGEST_PAUSE {
        // All else was well, which is what ./drive has to know.
        std::fs::write(path_from("PAUSED"), "").expect("a mark");
        panic!("the main loop stood still for {longest:?}");
    }
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "waited in vain until {what}");
        glib::timeout_future(Duration::from_millis(10)).await;
    }
}

fn path_from(variable: &str) -> PathBuf {
    std::env::var_os(variable).unwrap_or_else(|| panic!("{variable} names a file")).into()
}

/// What a person sees of a row.
struct Row {
    name: String,
    status: String,
    fraction: f64,
    widget: gtk::Widget,
}

impl Row {
    fn button(&self, tooltip: &str) -> gtk::Button {
        button(&self.widget, |button| button.tooltip_text().as_deref() == Some(tooltip))
    }
}

fn rows(window: &gtk::ApplicationWindow) -> Vec<Row> {
    every::<gtk::ListBoxRow>(window)
        .into_iter()
        .map(|row| {
            let labels = every::<gtk::Label>(&row);
            let (names, others): (Vec<_>, Vec<_>) =
                labels.into_iter().partition(|label| label.has_css_class("name"));
            Row {
                name: names[0].text().into(),
                status: others[0].text().into(),
                fraction: only::<gtk::ProgressBar>(&row).fraction(),
                widget: row.upcast(),
            }
        })
        .collect()
}

/// The row of the file that a path ends in.
fn row(window: &gtk::ApplicationWindow, path: &str) -> Row {
    let name = path.rsplit('/').next().unwrap_or_default();
    rows(window).into_iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no row for {name}"))
}

fn button(root: &impl IsA<gtk::Widget>, is_it: impl Fn(&gtk::Button) -> bool) -> gtk::Button {
    let mut found =
        every::<gtk::Button>(root).into_iter().filter(|button| button.is_mapped() && is_it(button));
    found.next().expect("such a button is shown")
}

fn only<T: IsA<gtk::Widget>>(root: &impl IsA<gtk::Widget>) -> T {
    let mut all = every::<T>(root);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// All widgets of a kind below one, in the order they are shown in.
fn every<T: IsA<gtk::Widget>>(root: &impl IsA<gtk::Widget>) -> Vec<T> {
    let mut found = Vec::new();
    let mut next = root.as_ref().first_child();
    while let Some(widget) = next {
        found.extend(every::<T>(&widget));
        next = widget.next_sibling();
        found.extend(widget.downcast::<T>());
    }
    found
}
