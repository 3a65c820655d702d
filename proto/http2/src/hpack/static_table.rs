//! The static table of HPACK (RFC 7541 Appendix A).

use http::header::{self, HeaderName};

use super::Pseudo;

/// A name of the static table.
pub(super) enum StaticName {
    Pseudo(Pseudo),
    Field(HeaderName),
}

/// The entries of the static table; the first one has index 1.
pub(super) static STATIC: [(StaticName, &str); 61] = [
    (StaticName::Pseudo(Pseudo::Authority), ""),
    (StaticName::Pseudo(Pseudo::Method), "GET"),
    (StaticName::Pseudo(Pseudo::Method), "POST"),
    (StaticName::Pseudo(Pseudo::Path), "/"),
    (StaticName::Pseudo(Pseudo::Path), "/index.html"),
    (StaticName::Pseudo(Pseudo::Scheme), "http"),
    (StaticName::Pseudo(Pseudo::Scheme), "https"),
    (StaticName::Pseudo(Pseudo::Status), "200"),
    (StaticName::Pseudo(Pseudo::Status), "204"),
    (StaticName::Pseudo(Pseudo::Status), "206"),
    (StaticName::Pseudo(Pseudo::Status), "304"),
    (StaticName::Pseudo(Pseudo::Status), "400"),
    (StaticName::Pseudo(Pseudo::Status), "404"),
    (StaticName::Pseudo(Pseudo::Status), "500"),
    (StaticName::Field(header::ACCEPT_CHARSET), ""),
    (StaticName::Field(header::ACCEPT_ENCODING), "gzip, deflate"),
    (StaticName::Field(header::ACCEPT_LANGUAGE), ""),
    (StaticName::Field(header::ACCEPT_RANGES), ""),
    (StaticName::Field(header::ACCEPT), ""),
    (StaticName::Field(header::ACCESS_CONTROL_ALLOW_ORIGIN), ""),
    (StaticName::Field(header::AGE), ""),
    (StaticName::Field(header::ALLOW), ""),
    (StaticName::Field(header::AUTHORIZATION), ""),
    (StaticName::Field(header::CACHE_CONTROL), ""),
    (StaticName::Field(header::CONTENT_DISPOSITION), ""),
    (StaticName::Field(header::CONTENT_ENCODING), ""),
    (StaticName::Field(header::CONTENT_LANGUAGE), ""),
    (StaticName::Field(header::CONTENT_LENGTH), ""),
    (StaticName::Field(header::CONTENT_LOCATION), ""),
    (StaticName::Field(header::CONTENT_RANGE), ""),
    (StaticName::Field(header::CONTENT_TYPE), ""),
    (StaticName::Field(header::COOKIE), ""),
    (StaticName::Field(header::DATE), ""),
    (StaticName::Field(header::ETAG), ""),
    (StaticName::Field(header::EXPECT), ""),
    (StaticName::Field(header::EXPIRES), ""),
    (StaticName::Field(header::FROM), ""),
    (StaticName::Field(header::HOST), ""),
    (StaticName::Field(header::IF_MATCH), ""),
    (StaticName::Field(header::IF_MODIFIED_SINCE), ""),
    (StaticName::Field(header::IF_NONE_MATCH), ""),
    (StaticName::Field(header::IF_RANGE), ""),
    (StaticName::Field(header::IF_UNMODIFIED_SINCE), ""),
    (StaticName::Field(header::LAST_MODIFIED), ""),
    (StaticName::Field(header::LINK), ""),
    (StaticName::Field(header::LOCATION), ""),
    (StaticName::Field(header::MAX_FORWARDS), ""),
    (StaticName::Field(header::PROXY_AUTHENTICATE), ""),
    (StaticName::Field(header::PROXY_AUTHORIZATION), ""),
    (StaticName::Field(header::RANGE), ""),
    (StaticName::Field(header::REFERER), ""),
    (StaticName::Field(header::REFRESH), ""),
    (StaticName::Field(header::RETRY_AFTER), ""),
    (StaticName::Field(header::SERVER), ""),
    (StaticName::Field(header::SET_COOKIE), ""),
    (StaticName::Field(header::STRICT_TRANSPORT_SECURITY), ""),
    (StaticName::Field(header::TRANSFER_ENCODING), ""),
    (StaticName::Field(header::USER_AGENT), ""),
    (StaticName::Field(header::VARY), ""),
    (StaticName::Field(header::VIA), ""),
    (StaticName::Field(header::WWW_AUTHENTICATE), ""),
];

/// The index of the first entry with this field name.
pub(super) fn index_of(name: &str) -> Option<usize> {
    Some(match name {
        "accept-charset" => 15,
        "accept-encoding" => 16,
        "accept-language" => 17,
        "accept-ranges" => 18,
        "accept" => 19,
        "access-control-allow-origin" => 20,
        "age" => 21,
        "allow" => 22,
        "authorization" => 23,
        "cache-control" => 24,
        "content-disposition" => 25,
        "content-encoding" => 26,
        "content-language" => 27,
        "content-length" => 28,
        "content-location" => 29,
        "content-range" => 30,
        "content-type" => 31,
        "cookie" => 32,
        "date" => 33,
        "etag" => 34,
        "expect" => 35,
        "expires" => 36,
        "from" => 37,
        "host" => 38,
        "if-match" => 39,
        "if-modified-since" => 40,
        "if-none-match" => 41,
        "if-range" => 42,
        "if-unmodified-since" => 43,
        "last-modified" => 44,
        "link" => 45,
        "location" => 46,
        "max-forwards" => 47,
        "proxy-authenticate" => 48,
        "proxy-authorization" => 49,
        "range" => 50,
        "referer" => 51,
        "refresh" => 52,
        "retry-after" => 53,
        "server" => 54,
        "set-cookie" => 55,
        "strict-transport-security" => 56,
        "transfer-encoding" => 57,
        "user-agent" => 58,
        "vary" => 59,
        "via" => 60,
        "www-authenticate" => 61,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_of_a_name_leads_back_to_it() {
        let mut fields = 0;
        for (place, (name, _)) in STATIC.iter().enumerate() {
            if let StaticName::Field(name) = name {
                fields += 1;
                assert_eq!(index_of(name.as_str()), Some(place + 1));
            }
        }
        assert_eq!(fields, 47);
        assert_eq!(index_of("x-other"), None);
    }
}
