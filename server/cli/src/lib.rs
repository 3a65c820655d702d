//! What the `hyperman` program is made of: a service that answers requests with the files of a folder, and the parts
//! around it.
//!
//! The way of a request through the service, one module per step:
//!
//! 1. [`path`] decodes the target and refuses what is not an ordinary path;
//! 2. [`root`] opens it below the folder (with [`walk`](root) where the kernel cannot confine an open);
//! 3. [`coding`] and [`media`] choose the form of the file and name its type;
//! 4. [`validators`] and [`conditional`] decide whether the client has it already;
//! 5. [`range`] chooses the parts to send, [`body`] reads them;
//! 6. [`service`] puts the answer together; [`listing`] and [`page`] draw what is no file.
#![forbid(unsafe_code)]

pub mod body;
pub mod calendar;
pub mod coding;
pub mod conditional;
pub mod listing;
pub mod media;
pub mod page;
pub mod path;
pub mod range;
pub mod refusal;
pub mod root;
pub mod service;
pub mod validators;
mod walk;
