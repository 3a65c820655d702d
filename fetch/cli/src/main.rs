//! `fetch URL`: curl's manners over Fetch.
//!
//! * `options`: the command line; `question`: the request it asks for; `piped`: a body of it that comes when it likes.
//! * `transfer`: one URL from the request to the last byte.
//! * `output`: where the body goes; `json`: how JSON is shown on a terminal; `trace`: what `-v` and `-i` tell.
//! * `harmless`: what a peer sent, as a terminal may be shown it.
//! * `failure`: what is told when something fails, and the exit code.

#![forbid(unsafe_code)]

mod failure;
mod harmless;
mod json;
mod options;
mod output;
mod piped;
mod question;
mod trace;
mod transfer;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use hyperman_fetch::tls::{Authorities, ClientTls, Identity};
use hyperman_fetch::{Client, Redirects};
use hyperman_loop::Handle;

use crate::failure::Failure;
use crate::options::Options;
use crate::question::Question;

fn main() -> ExitCode {
    let options = Options::parse();
    match hyperman_loop::block_on(|handle| run(handle, &options)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            tell(&options, &Failure::new(2, format!("no event loop: {error}")));
            ExitCode::from(2)
        }
    }
}

/// One URL after the other, on one client, so that they share connections. The exit code is that of the last failure.
async fn run(handle: Handle, options: &Options) -> u8 {
    let question = match Question::new(options) {
        Ok(question) => question,
        Err(failure) => return tell(options, &failure),
    };
    let client = match client(handle, options) {
        Ok(client) => client,
        Err(failure) => return tell(options, &failure),
    };
    let mut code = 0;
    for (index, url) in options.urls.iter().enumerate() {
        if let Err(failure) = transfer::transfer(&client, options, &question, index, url).await {
            code = tell(options, &failure);
        }
    }
    code
}

fn client(handle: Handle, options: &Options) -> Result<Client<Handle>, Failure> {
    let redirects = if options.location { Redirects::Follow(options.max_redirs) } else { Redirects::Stay };
    let mut builder = Client::builder(handle)
        .redirects(redirects)
        .timeout(options.max_time.filter(|limit| !limit.is_zero()))
        .max_body(options.max_filesize)
        .local_address(options.interface)
        .http2(!options.http1_1);
    if options.http2_prior_knowledge {
        builder = builder.http2_prior_knowledge();
    }
    if let Some(limit) = options.connect_timeout.filter(|limit| !limit.is_zero()) {
        builder = builder.connect_timeout(limit);
    }
    for (host, address) in &options.resolve {
        builder = builder.resolve(host, [*address]);
    }
    if let Some(tls) = tls(options)? {
        builder = builder.tls(&tls);
    }
    Ok(builder.build())
}

/// The TLS configuration, where the options ask for another than the usual one.
fn tls(options: &Options) -> Result<Option<ClientTls>, Failure> {
    if !options.insecure && options.cacert.is_none() && options.cert.is_none() {
        return Ok(None);
    }
    let mut builder = ClientTls::builder();
    if let Some(file) = &options.cacert {
        builder = builder.only_authorities(Authorities::from_file(file));
    }
    if let Some(certificate) = &options.cert {
        builder =
            builder.identity(Identity::from_files(certificate, options.key.as_ref().unwrap_or(certificate)));
    }
    if options.insecure {
        builder = builder.danger_accept_invalid_certificates();
    }
    builder
        .build()
        .map(Some)
        .map_err(|error| Failure::new(if options.cert.is_some() { 58 } else { 77 }, error.to_string()))
}

fn tell(options: &Options, failure: &Failure) -> u8 {
    if !failure.is_quiet() && (!options.silent || options.show_error) {
        // Where nobody can be told, the exit code says it.
        let _ = writeln!(std::io::stderr(), "fetch: {failure}");
    }
    failure.code()
}
