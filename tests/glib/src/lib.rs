//! The cases of `tests/cases` on a GLib main context. A package of its own, because it needs the system's GLib.
