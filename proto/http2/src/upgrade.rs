//! The start of HTTP/2 by `Upgrade: h2c` (RFC 7540 §3.2), which RFC 9113 no longer describes but clients still send.

use http::header::HeaderName;
use http::{Method, Version};

use crate::connection::Connection;
use crate::error::Misuse;
use crate::frame::{SETTING_LENGTH, StreamId};
use crate::message::is_connection_field;

/// The field that carries the payload of the client's SETTINGS, in base64url.
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");

/// Makes an HTTP/1.1 request stream 1 of a connection that has just begun.
pub(crate) fn adopt(connection: &mut Connection, mut request: http::Request<()>) -> Result<(), Misuse> {
    let headers = request.headers_mut();
    let mut fields = headers.get_all(&HTTP2_SETTINGS).iter();
    let (Some(settings), None) = (fields.next(), fields.next()) else { return Err(Misuse::BadField) };
    let settings = decode_base64url(settings.as_bytes()).ok_or(Misuse::BadField)?;
    if !settings.len().is_multiple_of(SETTING_LENGTH) {
        return Err(Misuse::BadField);
    }
    headers.remove(&HTTP2_SETTINGS);
    let stale: Vec<HeaderName> = headers.keys().filter(|name| is_connection_field(name)).cloned().collect();
    for name in stale {
        headers.remove(name);
    }
    *request.version_mut() = Version::HTTP_2;
    let head = request.method() == Method::HEAD;
    connection.adopt(StreamId(1), request, head, &settings)
}

/// Base64 with the alphabet for URLs and without padding (RFC 7540 §3.2.1, RFC 4648 §5).
fn decode_base64url(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for group in text.chunks(4) {
        let mut bits: u32 = 0;
        for &byte in group {
            let value = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                b'-' => 62,
                b'_' => 63,
                _ => return None,
            };
            bits = (bits << 6) | u32::from(value);
        }
        let [_, a, b, c] = (bits << (6 * (4 - group.len()))).to_be_bytes();
        match group.len() {
            4 => out.extend_from_slice(&[a, b, c]),
            3 => out.extend_from_slice(&[a, b]),
            2 => out.push(a),
            _ => return None,
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64url_is_decoded() {
        let settings = [0, 3, 0, 0, 0, 100, 0, 4, 0x40, 0, 0, 0, 0, 2, 0, 0, 0, 0];
        assert_eq!(decode_base64url(b"AAMAAABkAARAAAAAAAIAAAAA").unwrap(), settings);
        assert_eq!(decode_base64url(b"-_8").unwrap(), [0xfb, 0xff]);
        assert_eq!(decode_base64url(b""), Some(Vec::new()));
        assert_eq!(decode_base64url(b"A"), None);
        assert_eq!(decode_base64url(b"AAA="), None);
    }
}
