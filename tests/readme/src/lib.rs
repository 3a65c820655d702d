//! The examples of `README.md`, compiled as doc tests. A package of its own because one of them needs the system's GLib.

#![cfg_attr(doctest, doc = include_str!("../../../README.md"))]
