//! What the program says when it starts, and when it cannot.

use std::fmt::Write;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use hyperman::Listen;

use crate::port_holder;

/// How the addresses are secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// None is.
    Cleartext,
    /// TCP by TLS, the last `cleartext` addresses excepted, which redirect there.
    Tls {
        /// How many there are.
        cleartext: usize,
        /// The certificate was made on the spot.
        made: bool,
    },
}

/// The message of a server that has started: what it serves, where, and how it is stopped.
pub fn started(directory: &Path, addresses: &[Listen], mode: Mode, hint: Option<&str>) -> String {
    let mut text = format!("hyperman {} serves {}\n\n", env!("CARGO_PKG_VERSION"), directory.display());
    let encrypted = match mode {
        Mode::Cleartext => 0,
        Mode::Tls { cleartext, .. } => addresses.len().saturating_sub(cleartext),
    };
    for (index, address) in addresses.iter().enumerate() {
        match address {
            Listen::Tcp(address) if index < encrypted => push_urls("https", *address, &mut text),
            Listen::Tcp(address) => push_urls("http", *address, &mut text),
            Listen::Unix(path) => {
                let path = path.display();
                // Writing to a string does not fail.
                let _ = writeln!(text, "    unix:{path}  (curl --unix-socket {path} http://localhost/)");
            }
        }
    }
    if mode != Mode::Cleartext && encrypted < addresses.len() {
        text.push_str("\nWhat comes by http is redirected to https.\n");
    }
    if let Mode::Tls { made: true, .. } = mode {
        text.push_str(
            "\nThe certificate was made just now, for development: clients have to be told to accept it (curl -k).\n\
             --cert FILE and --key FILE serve a real one.\n",
        );
    }
    if let Some(hint) = hint {
        let _ = write!(text, "\n{hint}\n");
    }
    text.push_str("\nCtrl-C stops it.\n");
    text
}

/// The URLs by which an address can be reached, one per line.
fn push_urls(scheme: &str, address: SocketAddr, text: &mut String) {
    let port = address.port();
    let ip = match address.ip() {
        everything if everything.is_unspecified() => {
            let _ = writeln!(
                text,
                "    {}  (this machine)",
                url(scheme, SocketAddr::new(loopback(&everything), port))
            );
            match outward(&everything) {
                Some(own) => {
                    let own = url(scheme, SocketAddr::new(own, port));
                    let _ = writeln!(text, "    {own}  (from other machines)");
                }
                None => text.push_str("    and every other address of this machine\n"),
            }
            return;
        }
        ip => ip,
    };
    let _ = writeln!(text, "    {}", url(scheme, SocketAddr::new(ip, port)));
}

/// The URL of an address. The default port is left out, as browsers do.
pub fn url(scheme: &str, address: SocketAddr) -> String {
    let host = match address.ip() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    match (scheme, address.port()) {
        ("http", 80) | ("https", 443) => format!("{scheme}://{host}/"),
        (_, port) => format!("{scheme}://{host}:{port}/"),
    }
}

fn loopback(family_of: &IpAddr) -> IpAddr {
    match family_of {
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    }
}

/// The address by which this machine speaks to others. Connecting a datagram socket picks it, and sends nothing.
pub fn outward(family_of: &IpAddr) -> Option<IpAddr> {
    // Addresses of the documentation (RFC 5737, RFC 3849): routed like any far one, and nobody's.
    let (own, far): (IpAddr, IpAddr) = match family_of {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(192, 0, 2, 1).into()),
        IpAddr::V6(_) => {
            (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into())
        }
    };
    let socket = UdpSocket::bind((own, 0)).ok()?;
    socket.connect((far, 9)).ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

/// Why the folder cannot be served, and what to do about it.
pub fn no_folder(directory: &Path, error: &io::Error) -> String {
    let shown = directory.display();
    match error.kind() {
        io::ErrorKind::NotFound => format!("there is no folder {shown}"),
        io::ErrorKind::NotADirectory => {
            let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
            let parent = parent.unwrap_or(Path::new("."));
            format!("{shown} is a file; to serve the folder it is in: hyperman serve {}", parent.display())
        }
        io::ErrorKind::PermissionDenied => format!("the folder {shown} may not be read by this user"),
        _ => format!("the folder {shown} cannot be opened: {error}"),
    }
}

/// Why the program cannot listen, and what to do about it. `error` names the address.
pub fn no_listener<'a>(asked: impl Iterator<Item = &'a Listen>, error: &io::Error) -> String {
    let mut text = error.to_string();
    let asked: Vec<&Listen> = asked.collect();
    if error.kind() == io::ErrorKind::AddrInUse
        && let Some(path) = unix_path_in(&text, &asked)
    {
        let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
        text.push_str(if is_socket {
            "\nanother server listens there"
        } else {
            "\nthere is a file, which is no socket: remove it, or choose another path"
        });
        return text;
    }
    let tcp: Vec<SocketAddr> = asked
        .into_iter()
        .filter_map(|listen| match listen {
            Listen::Tcp(address) => Some(*address),
            Listen::Unix(_) => None,
        })
        // Of several, the one that the error names.
        .filter(|address| error.to_string().contains(&address.to_string()))
        .collect();
    let Some(address) = tcp.first() else { return text };
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            if let Some(holder) = port_holder::find(address.port()) {
                let _ = write!(text, "\nit is taken by {} (process {})", holder.name, holder.process);
            }
            let next = address.port().checked_add(1).unwrap_or(8080);
            let other = SocketAddr::new(address.ip(), next);
            let free = SocketAddr::new(address.ip(), 0);
            let _ = write!(text, "\ntry --listen {other}, or --listen {free} for any free port");
        }
        io::ErrorKind::PermissionDenied => {
            text.push_str("\nports below 1024 are for privileged users; try --listen ");
            let _ = write!(text, "{}", SocketAddr::new(address.ip(), 8080));
        }
        io::ErrorKind::AddrNotAvailable => {
            let _ = write!(text, "\n{} is no address of this machine", address.ip());
        }
        _ => {}
    }
    text
}

fn unix_path_in<'a>(text: &str, asked: &[&'a Listen]) -> Option<&'a Path> {
    asked.iter().find_map(|listen| match listen {
        Listen::Unix(path) if text.contains(&listen.to_string()) => Some(path.as_path()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(address: &str) -> Listen {
        Listen::Tcp(address.parse().unwrap())
    }

    #[test]
    fn each_address_has_a_url_to_click() {
        let text = started(
            Path::new("/srv"),
            &[tcp("127.0.0.1:8080"), tcp("[::1]:80"), Listen::Unix("/run/x".into()), tcp("0.0.0.0:81")],
            Mode::Cleartext,
            Some("A hint."),
        );
        for part in [
            " serves /srv\n",
            "    http://127.0.0.1:8080/\n",
            "    http://[::1]/\n",
            "    unix:/run/x  (curl --unix-socket /run/x http://localhost/)\n",
            "    http://127.0.0.1:81/  (this machine)\n",
            "\nA hint.\n",
            "Ctrl-C stops it.\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn tls_is_said_with_what_is_made_and_what_is_redirected() {
        let mode = Mode::Tls { cleartext: 1, made: true };
        let text = started(Path::new("/srv"), &[tcp("127.0.0.1:443"), tcp("127.0.0.1:80")], mode, None);
        for part in
            ["    https://127.0.0.1/\n", "    http://127.0.0.1/\n", "made just now", "is redirected to https"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn errors_say_what_to_do() {
        let error = |kind| io::Error::new(kind, "cannot listen on 127.0.0.1:80: no");
        let asked = [tcp("127.0.0.1:8080"), tcp("127.0.0.1:80")];
        let said = |kind| no_listener(asked.iter(), &error(kind));
        assert!(
            said(io::ErrorKind::AddrInUse).contains("try --listen 127.0.0.1:81, or --listen 127.0.0.1:0 ")
        );
        assert!(said(io::ErrorKind::PermissionDenied).contains("try --listen 127.0.0.1:8080"));
        assert!(said(io::ErrorKind::AddrNotAvailable).contains("127.0.0.1 is no address of this machine"));
        assert_eq!(said(io::ErrorKind::Other), "cannot listen on 127.0.0.1:80: no");
        let said = no_folder(Path::new("a/b.txt"), &io::ErrorKind::NotADirectory.into());
        assert!(said.ends_with("hyperman serve a"), "{said}");
    }
}
