//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderName, HeaderValue};
use hyperman::{Config, Listen};

use crate::access_log::LogFormat;
use crate::listen::{self, ListenArgument};
use crate::service::FileOptions;

/// An HTTP server.
#[derive(Debug, Parser)]
#[command(name = "hyperman", version, about, disable_help_subcommand = true)]
pub struct Options {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the files of a folder.
    Serve(Box<ServeOptions>),
}

/// How a folder is served.
#[derive(Args, Debug)]
pub struct ServeOptions {
    /// The folder whose files are served.
    #[arg(value_name = "DIR", default_value = ".")]
    pub directory: PathBuf,

    // The words are the program's help, where brackets are only brackets.
    #[allow(rustdoc::broken_intra_doc_links)]
    /// Where to listen: ADDR:PORT, [IPV6]:PORT, PORT (this machine only), :PORT (every IPv4 address) or unix:PATH.
    /// Port 0 picks a free one. May be given several times.
    #[arg(short, long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8080", value_parser = listen::parse)]
    pub listen: Vec<ListenArgument>,

    /// Speak TLS on every TCP address of --listen, with HTTP/2 and HTTP/1.1. Without --cert a certificate for development
    /// is made on the spot, which no client trusts by itself.
    #[arg(long, help_heading = "TLS")]
    pub tls: bool,

    /// The certificate chain, PEM. SIGHUP reads it and the key again.
    #[arg(long, value_name = "FILE", help_heading = "TLS", requires = "tls", requires = "key")]
    pub cert: Option<PathBuf>,

    /// The private key of the certificate, PEM.
    #[arg(long, value_name = "FILE", help_heading = "TLS", requires = "cert")]
    pub key: Option<PathBuf>,

    /// Also listen here, without TLS, and redirect to the first TCP address of --listen. May be given several times.
    #[arg(long, value_name = "ADDR:PORT", help_heading = "TLS", requires = "tls", value_parser = listen::parse)]
    pub redirect_from: Vec<ListenArgument>,

    /// What is sent for a folder: the first of these files that is there. May be given several times.
    #[arg(long, value_name = "NAME", default_value = "index.html", value_parser = index_name)]
    pub index: Vec<String>,

    /// List a folder that has no index file.
    #[arg(long)]
    pub list: bool,

    /// Serve and list names that begin with a dot. Without it only /.well-known is served.
    #[arg(long)]
    pub hidden: bool,

    /// Follow symbolic links that lead out of the folder.
    #[arg(long)]
    pub follow_symlinks: bool,

    /// The Cache-Control field of every file, e.g. "max-age=3600".
    #[arg(long, value_name = "VALUE", value_parser = field_value)]
    pub cache_control: Option<HeaderValue>,

    /// A field of every answer. May be given several times.
    #[arg(short = 'H', long, value_name = "NAME: VALUE", value_parser = field)]
    pub header: Vec<(HeaderName, HeaderValue)>,

    /// How each request is written to the standard output.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub log: LogFormat,

    /// Do not write the requests down.
    #[arg(long, conflicts_with = "log")]
    pub no_log: bool,

    /// Also say why connections were closed.
    #[arg(short, long)]
    pub verbose: bool,

    #[allow(rustdoc::broken_intra_doc_links)]
    /// How many connections may be open at once; further ones wait [default: 65536, or as many as there are file
    /// descriptors for].
    #[arg(long, value_name = "NUMBER", help_heading = "Limits", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_connections: Option<u32>,

    #[allow(rustdoc::broken_intra_doc_links)]
    /// How long a request's head may take, e.g. 500ms, 30s, 2m [default: 30s].
    #[arg(long, value_name = "TIME", help_heading = "Limits", value_parser = duration)]
    pub head_timeout: Option<Duration>,

    #[allow(rustdoc::broken_intra_doc_links)]
    /// How long a connection may wait for its next request [default: 60s].
    #[arg(long, value_name = "TIME", help_heading = "Limits", value_parser = duration)]
    pub idle_timeout: Option<Duration>,

    #[allow(rustdoc::broken_intra_doc_links)]
    /// How long a client may take nothing of its answer [default: 60s].
    #[arg(long, value_name = "TIME", help_heading = "Limits", value_parser = duration)]
    pub write_timeout: Option<Duration>,

    #[allow(rustdoc::broken_intra_doc_links)]
    /// How long answers may go on after the first Ctrl-C [default: 30s].
    #[arg(long, value_name = "TIME", help_heading = "Limits", value_parser = duration)]
    pub drain_timeout: Option<Duration>,
}

impl ServeOptions {
    /// Every address to listen on.
    pub fn addresses(&self) -> impl Iterator<Item = &Listen> {
        self.listen.iter().flat_map(|argument| &argument.0)
    }

    /// Every address to redirect from.
    pub fn redirected(&self) -> impl Iterator<Item = &Listen> {
        self.redirect_from.iter().flat_map(|argument| &argument.0)
    }

    /// What the file service is to do.
    pub fn files(&self) -> FileOptions {
        FileOptions {
            indexes: self.index.clone(),
            list: self.list,
            hidden: self.hidden,
            cache_control: self.cache_control.clone(),
            fields: self.header.clone(),
        }
    }

    /// The server's settings.
    pub fn config(&self) -> Config {
        let mut config = Config::default();
        let set = |place: &mut Duration, asked: Option<Duration>| *place = asked.unwrap_or(*place);
        set(&mut config.timeouts.head, self.head_timeout);
        set(&mut config.timeouts.idle, self.idle_timeout);
        set(&mut config.timeouts.write_stall, self.write_timeout);
        set(&mut config.drain_deadline, self.drain_timeout);
        if let Some(connections) = self.max_connections {
            config.connections = usize::try_from(connections).unwrap_or(usize::MAX);
        }
        config
    }
}

fn index_name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(['/', '\0']) || text == "." || text == ".." {
        return Err("an index is the name of a file, without a slash".to_owned());
    }
    Ok(text.to_owned())
}

fn field_value(text: &str) -> Result<HeaderValue, String> {
    HeaderValue::from_str(text).map_err(|_| "a field's value has no control characters".to_owned())
}

/// Fields that the server writes by itself: a second word on how long a message is could only contradict it.
const OWN_FIELDS: [HeaderName; 7] =
    [CONNECTION, CONTENT_LENGTH, DATE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

fn field(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let Some((name, value)) = text.split_once(':') else {
        return Err("a colon is missing: 'Name: value'".to_owned());
    };
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("{name:?} is no field name"))?;
    if OWN_FIELDS.contains(&name) {
        return Err(format!("{name} is set by the server itself"));
    }
    Ok((name, field_value(value.trim_matches([' ', '\t']))?))
}

/// Reads `30`, `30s`, `1.5s`, `500ms`, `2m`, `1h`. Without a unit, seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("{unit:?} is no unit: ms, s, m or h")),
    };
    let number: f64 = number.parse().map_err(|_| "a time is written as 30s, 500ms or 2m".to_owned())?;
    match Duration::try_from_secs_f64(number * seconds) {
        Ok(duration) if !duration.is_zero() && duration <= MOST => Ok(duration),
        _ => Err("a time is more than nothing and at most a year".to_owned()),
    }
}

/// The longest time that can be asked for, a year: any sum with the clock's time stays in range.
const MOST: Duration = Duration::from_secs(365 * 86_400);

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn serve(arguments: &[&str]) -> Result<ServeOptions, String> {
        let all = ["hyperman", "serve"].iter().chain(arguments);
        let Command::Serve(options) =
            Options::try_parse_from(all).map_err(|error| error.to_string())?.command;
        Ok(*options)
    }

    #[test]
    fn the_command_line_holds_together() {
        Options::command().debug_assert();
    }

    #[test]
    fn defaults_are_safe() {
        let options = serve(&["dir"]).unwrap();
        assert_eq!(options.directory, PathBuf::from("dir"));
        let addresses: Vec<String> = options.addresses().map(ToString::to_string).collect();
        assert_eq!(addresses, ["127.0.0.1:8080"]);
        assert_eq!(options.index, ["index.html"]);
        assert!(!options.list && !options.hidden && !options.follow_symlinks && !options.no_log);
        assert_eq!(options.config().timeouts.head, Config::default().timeouts.head);
        assert_eq!(serve(&[]).unwrap().directory, PathBuf::from("."));
    }

    #[test]
    fn the_help_tells_the_defaults_as_they_are() {
        let help = Options::command().find_subcommand_mut("serve").unwrap().render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let config = Config::default();
        assert!(help.contains(&format!("[default: {}, or", config.connections)), "{help}");
        for (option, default) in [
            ("--head-timeout", config.timeouts.head),
            ("--idle-timeout", config.timeouts.idle),
            ("--write-timeout", config.timeouts.write_stall),
            ("--drain-timeout", config.drain_deadline),
        ] {
            let said = help.split_once(option).unwrap().1.split_once("[default: ").unwrap().1;
            assert_eq!(said.split_once(']').unwrap().0, format!("{}s", default.as_secs()), "{option}");
        }
    }

    #[test]
    fn options_reach_the_settings() {
        let options = serve(&[
            "--listen",
            "8081",
            "-l",
            "unix:/x",
            "--index",
            "a",
            "--index",
            "b",
            "-H",
            "X-A: 1",
            "--header",
            "x-b:2",
            "--idle-timeout",
            "2m",
            "--head-timeout",
            "500ms",
            "--max-connections",
            "7",
            "--log",
            "json",
            "--write-timeout",
            "1.5",
            "--drain-timeout",
            "1h",
        ])
        .unwrap();
        let addresses: Vec<String> = options.addresses().map(ToString::to_string).collect();
        assert_eq!(addresses, ["127.0.0.1:8081", "unix:/x"]);
        assert_eq!(options.index, ["a", "b"]);
        assert_eq!(options.header.len(), 2);
        assert_eq!(options.log, LogFormat::Json);
        let config = options.config();
        assert_eq!(config.connections, 7);
        assert_eq!(config.timeouts.idle, Duration::from_secs(120));
        assert_eq!(config.timeouts.head, Duration::from_millis(500));
        assert_eq!(config.timeouts.write_stall, Duration::from_millis(1500));
        assert_eq!(config.drain_deadline, Duration::from_secs(3600));
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_reason() {
        for (arguments, reason) in [
            (["--header", "no colon"], "colon is missing"),
            (["--header", "bad name: x"], "no field name"),
            (["--header", "x: a\r\nb"], "control characters"),
            (["--header", "Content-Length: 5"], "by the server itself"),
            (["--header", "transfer-encoding: chunked"], "by the server itself"),
            (["--index", "../x"], "without a slash"),
            (["--listen", "nonsense"], "port is missing"),
            (["--idle-timeout", "0"], "more than nothing"),
            (["--idle-timeout", "5 parsecs"], "no unit"),
            (["--idle-timeout", "-1"], "'-1'"),
            (["--idle-timeout", "9999999h"], "at most a year"),
            (["--max-connections", "0"], "0 is not in"),
            (["--cache-control", "a\nb"], "control characters"),
        ] {
            let error = serve(&arguments).unwrap_err();
            assert!(error.contains(reason), "{arguments:?}: {error}");
        }
    }
}
