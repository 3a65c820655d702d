//! Downloads into a folder, with a window: `gtk-app [FOLDER]`, by default the user's folder for downloads.

#![forbid(unsafe_code)]

use std::path::PathBuf;

use gtk4::{self as gtk, gio, glib, prelude::*};

fn main() -> glib::ExitCode {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.or_else(|| glib::user_special_dir(glib::UserDirectory::Downloads));
    let folder = gio::File::for_path(folder.unwrap_or_else(glib::home_dir));
    let application = gtk::Application::builder().application_id(gtk_app::ID).build();
    application.connect_activate(move |application| match gtk_app::open(application, &folder) {
        Ok(window) => window.present(),
        Err(error) => eprintln!("gtk-app: {error}"),
    });
    application.run_with_args::<&str>(&[])
}
