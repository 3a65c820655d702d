//! What the `hyperman` program is made of: a service that answers requests with the files of a folder, and the parts
//! around it.
//!
//! The way of a request through the service, one module per step:
//!
//! 1. [`path`] decodes the target and refuses what is not an ordinary path;
//! 2. [`root`] opens it below the folder, name by name where the kernel cannot confine an open;
//! 3. [`coding`] and [`media`] choose the form of the file and name its type;
//! 4. [`validators`] and [`conditional`] decide whether the client has it already;
//! 5. [`range`] chooses the parts to send, [`body`] reads them;
//! 6. [`service`] puts the answer together; [`refusal`], [`page`] and [`listing`] make the answers that are no file.
//!
//! [`tls`] has the certificate, and [`redirect`] sends cleartext there.
//!
//! Around it: [`options`] and [`listen`] are the command line, [`run`] starts the server, [`announce`] says so,
//! [`access_log`] and [`diagnostics`] write down what happens, [`hangup`] hears SIGHUP, [`descriptors`] asks the system
//! for as many as it gives.
#![forbid(unsafe_code)]

pub mod access_log;
pub mod announce;
pub mod body;
pub mod calendar;
pub mod coding;
pub mod conditional;
pub mod descriptors;
pub mod diagnostics;
pub mod hangup;
pub mod http_date;
pub mod lines;
pub mod listen;
pub mod listing;
pub mod media;
pub mod options;
pub mod page;
pub mod path;
pub mod port_holder;
pub mod range;
pub mod redirect;
pub mod refusal;
pub mod root;
pub mod run;
pub mod service;
pub mod tls;
pub mod validators;
mod walk;
