//! The command line. The letters are curl's.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

/// Gets what a URL names, or sends something there.
#[derive(Debug, Parser)]
#[command(name = "fetch", version, about, disable_help_flag = true)]
#[command(
    after_help = "Servers are asked directly: proxies, and http_proxy and its like, are not used. Bodies are not decompressed."
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Options {
    /// What to ask for. Without a scheme it is http://
    #[arg(required = true, value_name = "URL")]
    pub(crate) urls: Vec<String>,

    /// The request method [default: GET, or what the other options ask for]
    #[arg(short = 'X', long = "request", value_name = "METHOD")]
    pub(crate) method: Option<String>,

    /// Adds a field; "Name:" leaves a default one out, "Name;" sends an empty one
    #[arg(short = 'H', long = "header", value_name = "FIELD", allow_hyphen_values = true)]
    pub(crate) headers: Vec<String>,

    /// Sends a form by POST; @FILE reads one, without its line ends
    #[arg(
        short = 'd',
        long = "data",
        visible_alias = "data-ascii",
        value_name = "DATA",
        allow_hyphen_values = true
    )]
    pub(crate) data: Vec<String>,

    /// Like --data, but @ means nothing
    #[arg(long, value_name = "DATA", allow_hyphen_values = true)]
    pub(crate) data_raw: Vec<String>,

    /// Like --data, but @FILE is sent as it is
    #[arg(long, value_name = "DATA", allow_hyphen_values = true)]
    pub(crate) data_binary: Vec<String>,

    /// Sends JSON by POST, and asks for JSON; @FILE reads it
    #[arg(long, value_name = "DATA", allow_hyphen_values = true)]
    pub(crate) json: Vec<String>,

    /// Puts the data into the URL's query and asks by GET
    #[arg(short = 'G', long)]
    pub(crate) get: bool,

    /// Sends a file by PUT; - is the standard input. A URL that ends in / gets the file's name
    #[arg(short = 'T', long, value_name = "FILE", conflicts_with_all = ["data", "data_raw", "data_binary", "json"])]
    pub(crate) upload_file: Option<PathBuf>,

    /// Writes the body to a file; - is the standard output. The second -o is for the second URL
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,

    /// Writes the body to a file with the name that the URL has
    #[arg(short = 'O', long)]
    pub(crate) remote_name: bool,

    /// Shows the head of the answer before the body
    #[arg(short = 'i', long, visible_alias = "show-headers")]
    pub(crate) include: bool,

    /// Asks by HEAD and shows the head of the answer
    #[arg(short = 'I', long)]
    pub(crate) head: bool,

    /// Tells on the standard error what happens
    #[arg(short = 'v', long)]
    pub(crate) verbose: bool,

    /// Shows no progress and no errors
    #[arg(short = 's', long)]
    pub(crate) silent: bool,

    /// Shows errors also when silent
    #[arg(short = 'S', long)]
    pub(crate) show_error: bool,

    /// Takes a status of 400 or more for an error, and shows no body then
    #[arg(short = 'f', long)]
    pub(crate) fail: bool,

    /// How many seconds everything may take; 0 is no limit
    #[arg(short = 'm', long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) max_time: Option<Duration>,

    /// How many seconds connecting may take; 0 is the usual limit
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) connect_timeout: Option<Duration>,

    /// Takes any certificate: anybody on the way can read and change what is exchanged
    #[arg(short = 'k', long)]
    pub(crate) insecure: bool,

    /// Trusts the authorities in this file (PEM) instead of the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,

    /// Shows this certificate (PEM, with its chain) to the server
    #[arg(short = 'E', long, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,

    /// The private key of --cert (PEM), if it is not in the same file
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,

    /// Follows redirects
    #[arg(short = 'L', long)]
    pub(crate) location: bool,

    /// How many redirects are followed
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    pub(crate) max_redirs: u32,

    /// The longest body that is taken, in bytes
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_filesize: Option<u64>,

    /// Who asks
    #[arg(short = 'A', long, value_name = "NAME")]
    pub(crate) user_agent: Option<String>,

    /// Logs in by user name and password
    #[arg(short = 'u', long, value_name = "USER:PASSWORD")]
    pub(crate) user: Option<String>,

    /// Asks for a part, such as 0-99
    #[arg(short = 'r', long, value_name = "RANGE")]
    pub(crate) range: Option<String>,

    /// Speaks HTTP/1.0
    #[arg(short = '0', long = "http1.0")]
    pub(crate) http1_0: bool,

    /// Speaks HTTP/1.1 also where the server would speak HTTP/2
    #[arg(long = "http1.1", overrides_with_all = ["http2", "http2_prior_knowledge"])]
    pub(crate) http1_1: bool,

    /// Speaks HTTP/2 where the server does, over https: the default
    #[arg(long, overrides_with_all = ["http1_1", "http2_prior_knowledge"])]
    pub(crate) http2: bool,

    /// Speaks HTTP/2 without asking the server, over http too
    #[arg(long, overrides_with_all = ["http1_1", "http2"])]
    pub(crate) http2_prior_knowledge: bool,

    /// Gives a host's address in place of a lookup
    #[arg(long, value_name = "HOST:PORT:ADDRESS", value_parser = resolved)]
    pub(crate) resolve: Vec<(String, SocketAddr)>,

    /// The address to connect from
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) interface: Option<IpAddr>,

    /// Shows this after each answer, with %{name} replaced: http_code, http_version, content_type, num_redirects,
    /// remote_ip, remote_port, size_download, time_total, url_effective
    #[arg(short = 'w', long, value_name = "FORMAT", allow_hyphen_values = true)]
    pub(crate) write_out: Option<String>,

    /// Shows this help
    #[arg(short = 'h', long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(number).map_err(|error| error.to_string())
}

/// `HOST:PORT:ADDRESS`, where an IPv6 address may stand in brackets.
fn resolved(text: &str) -> Result<(String, SocketAddr), String> {
    let parts = || {
        let (host, rest) = text.split_once(':')?;
        let (port, address) = rest.split_once(':')?;
        let address = address.trim_start_matches('[').trim_end_matches(']');
        Some((host.to_owned(), SocketAddr::new(address.parse().ok()?, port.parse().ok()?)))
    };
    parts().ok_or_else(|| "not HOST:PORT:ADDRESS".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn seconds_may_have_a_fraction_and_no_sign() {
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        assert!(seconds("-1").is_err());
        assert!(seconds("soon").is_err());
        assert!(seconds("inf").is_err());
    }

    #[test]
    fn an_address_is_given_for_a_host_and_port() {
        assert_eq!(resolved("a:80:1.2.3.4"), Ok(("a".to_owned(), "1.2.3.4:80".parse().expect("an address"))));
        assert_eq!(resolved("a:80:[::1]"), Ok(("a".to_owned(), "[::1]:80".parse().expect("an address"))));
        assert!(resolved("a:1.2.3.4").is_err());
    }
}
