//! The first bytes of a client: is it TLS at all, and which host does it ask for? (RFC 8446 §4.1.2, RFC 6066 §3)
//!
//! The host name decides which configuration serves the connection, so it has to be known before the connection has
//! one. The bytes are only looked at here; the engine then reads them from the start.

use std::io::Read;

use rustls::server::Acceptor;

use super::error::{Alert, Error};

/// The content type of a handshake record (RFC 8446 §5.1).
const HANDSHAKE: u8 = 22;

/// How many bytes the library's reader is given in one go. It takes no more at a time.
const STEP: usize = 4096;

/// Reads a ClientHello.
pub(super) struct Hello {
    acceptor: Acceptor,
    seen: usize,
}

/// What the client asks for.
pub(super) struct Asked {
    /// The host name, in lower case; no name for an IP address or an old client.
    pub(super) server_name: Option<String>,
}

impl Hello {
    pub(super) fn new() -> Self {
        Hello { acceptor: Acceptor::default(), seen: 0 }
    }

    /// Looks at all that has arrived so far. `None`: more is needed.
    ///
    /// # Errors
    /// The reason, and the alert to write.
    pub(super) fn look(&mut self, received: &[u8]) -> Result<Option<Asked>, (Error, Vec<u8>)> {
        if received.first().is_some_and(|first| *first != HANDSHAKE) {
            return not_tls(received).map(|()| None);
        }
        loop {
            let mut rest = received.get(self.seen..).unwrap_or_default().take(STEP as u64);
            if rest.get_ref().is_empty() {
                return Ok(None);
            }
            match self.acceptor.read_tls(&mut rest) {
                Ok(0) => return Ok(None),
                Ok(read) => self.seen += read,
                Err(error) => return Err((Error::Protocol(error.to_string()), Vec::new())),
            }
            match self.acceptor.accept() {
                Ok(None) => {}
                Ok(Some(accepted)) => {
                    let server_name = accepted.client_hello().server_name().map(str::to_ascii_lowercase);
                    return Ok(Some(Asked { server_name }));
                }
                Err((rustls::Error::PeerIncompatible(_), _)) if is_old(received) => {
                    return Err((Error::NoCommonVersion, plain_alert(Alert::PROTOCOL_VERSION.code).to_vec()));
                }
                Err((error, mut alert)) => {
                    let mut bytes = Vec::new();
                    // Writing to memory does not fail.
                    let _ = alert.write_all(&mut bytes);
                    return Err((error.into(), bytes));
                }
            }
        }
    }
}

/// Whether the newest version that a ClientHello offers is older than TLS 1.2. Such a client misses extensions too, and
/// the library complains about those first.
fn is_old(received: &[u8]) -> bool {
    // After the record's head come the message's type and length, then the version (RFC 8446 §4.1.2).
    const VERSION: usize = 5 + 1 + 3;
    const TLS_1_2: [u8; 2] = [3, 3];
    received.get(VERSION..VERSION + 2).is_some_and(|version| *version < TLS_1_2[..])
}

/// Methods that a plain HTTP client may begin with, and the preface of HTTP/2.
const HTTP_BEGINNINGS: [&[u8]; 10] = [
    b"GET ",
    b"HEAD ",
    b"POST ",
    b"PUT ",
    b"DELETE ",
    b"OPTIONS ",
    b"PATCH ",
    b"CONNECT ",
    b"TRACE ",
    b"PRI ",
];

/// `Ok` while the bytes may still turn out to be HTTP.
fn not_tls(received: &[u8]) -> Result<(), (Error, Vec<u8>)> {
    if HTTP_BEGINNINGS.iter().any(|beginning| received.starts_with(beginning)) {
        return Err((Error::PlainHttp, Vec::new()));
    }
    if HTTP_BEGINNINGS.iter().any(|beginning| beginning.starts_with(received)) {
        return Ok(());
    }
    Err((Error::NotTls, Vec::new()))
}

/// A fatal alert before any key is agreed (RFC 8446 §6).
pub(super) fn plain_alert(code: u8) -> [u8; 7] {
    const ALERT: u8 = 21;
    const FATAL: u8 = 2;
    [ALERT, 3, 3, 0, 2, FATAL, code]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(bytes: &[u8]) -> &'static str {
        match Hello::new().look(bytes) {
            Ok(None) => "more",
            Ok(Some(_)) => "hello",
            Err((Error::PlainHttp, alert)) if alert.is_empty() => "http",
            Err((Error::NotTls, alert)) if alert.is_empty() => "not tls",
            Err((_, _)) => "broken",
        }
    }

    #[test]
    fn plain_http_is_told_from_noise_as_soon_as_it_can_be() {
        assert_eq!(verdict(b""), "more");
        assert_eq!(verdict(b"G"), "more");
        assert_eq!(verdict(b"GET"), "more");
        assert_eq!(verdict(b"GET / HTTP/1.1\r\n"), "http");
        assert_eq!(verdict(b"PRI * HTTP/2.0\r\n"), "http");
        assert_eq!(verdict(b"GEX"), "not tls");
        assert_eq!(verdict(b"\x80\x2e\x01\x00\x02"), "not tls", "an SSL 2 hello");
        assert_eq!(verdict(b"SSH-2.0-x\r\n"), "not tls");
    }

    #[test]
    fn a_broken_hello_is_refused_with_an_alert() {
        // A handshake record whose message is no ClientHello (type 2, length 0).
        let Err((error, alert)) = Hello::new().look(&[22, 3, 1, 0, 4, 2, 0, 0, 0]) else {
            panic!("accepted")
        };
        assert!(matches!(error, Error::Protocol(_)), "{error:?}");
        assert_eq!(alert[..5], [21, 3, 3, 0, 2]);
    }

    #[test]
    fn a_record_that_claims_too_much_is_refused_before_it_arrives() {
        assert_eq!(verdict(&[22, 3, 1, 0xff, 0xff, 1, 0, 0]), "broken");
    }
}
