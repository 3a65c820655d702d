//! Where to listen, as it is written on the command line.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use hyperman::Listen;

/// What one `--listen` stands for: a name can have several addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenArgument(pub Vec<Listen>);

/// Reads `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`, `8080` (this machine only), `:8080` (every IPv4 address of
/// this machine) and `unix:/path`. Port 0 lets the kernel pick one.
///
/// # Errors
/// A sentence that says what is wrong and how it is written.
pub fn parse(text: &str) -> Result<ListenArgument, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        if path.is_empty() {
            return Err("the path of the socket is missing: unix:/run/hyperman.sock".to_owned());
        }
        return Ok(ListenArgument(vec![Listen::Unix(PathBuf::from(path))]));
    }
    let inet = |address| Ok(ListenArgument(vec![Listen::Tcp(address)]));
    let (host, port) = match text.rsplit_once(':') {
        _ if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            return inet(SocketAddr::from((Ipv4Addr::LOCALHOST, port_of(text)?)));
        }
        Some((host, port)) if !host.contains(':') || host.starts_with('[') => (host, port_of(port)?),
        Some(_) => return Err(format!("an IPv6 address goes in brackets: [{text}]:8080")),
        None => return Err(format!("the port is missing: {text}:8080")),
    };
    if host.is_empty() {
        return inet(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)));
    }
    let addresses = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(literal) => format!("[{literal}]:{port}").to_socket_addrs(),
        None => (host, port).to_socket_addrs(),
    };
    let mut found: Vec<Listen> = Vec::new();
    for address in addresses.map_err(|error| format!("{host} is no address of this machine: {error}"))? {
        if !found.contains(&Listen::Tcp(address)) {
            found.push(Listen::Tcp(address));
        }
    }
    if found.is_empty() { Err(format!("{host} has no address")) } else { Ok(ListenArgument(found)) }
}

fn port_of(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("{text:?} is no port: 0 to 65535"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(address: &str) -> Vec<Listen> {
        vec![Listen::Tcp(address.parse().unwrap())]
    }

    #[test]
    fn every_way_to_write_an_address() {
        for (text, expected) in [
            ("127.0.0.1:8080", tcp("127.0.0.1:8080")),
            ("0.0.0.0:0", tcp("0.0.0.0:0")),
            ("[::1]:80", tcp("[::1]:80")),
            ("[::]:65535", tcp("[::]:65535")),
            ("8080", tcp("127.0.0.1:8080")),
            ("0", tcp("127.0.0.1:0")),
            (":8080", tcp("0.0.0.0:8080")),
            ("unix:/run/x.sock", vec![Listen::Unix("/run/x.sock".into())]),
            ("unix:x", vec![Listen::Unix("x".into())]),
        ] {
            assert_eq!(parse(text), Ok(ListenArgument(expected)), "{text}");
        }
        let ListenArgument(localhost) = parse("localhost:80").unwrap();
        assert!(localhost.contains(&tcp("127.0.0.1:80")[0]), "{localhost:?}");
    }

    #[test]
    fn what_is_wrong_is_said_with_the_right_way_to_write_it() {
        for (text, part) in [
            ("", "port is missing"),
            ("localhost", "localhost:8080"),
            ("127.0.0.1", "127.0.0.1:8080"),
            ("::1", "[::1]:8080"),
            ("::1:80", "[::1:80]:8080"),
            ("127.0.0.1:", "no port"),
            ("127.0.0.1:http", "\"http\" is no port"),
            ("127.0.0.1:65536", "0 to 65535"),
            ("99999", "0 to 65535"),
            ("unix:", "path of the socket"),
            ("[::1:80", "no address"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
