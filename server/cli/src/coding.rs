//! Content codings: which of a file's forms a client accepts, by its `Accept-Encoding` (RFC 9110 §12.5.3).

use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

/// A form in which a file may lie in its folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// Brotli, beside the file with `.br` behind its name.
    Brotli,
    /// gzip, with `.gz` behind its name.
    Gzip,
    /// The file itself.
    Identity,
}

impl Coding {
    /// What is behind the name of the file that has this form.
    pub fn suffix(self) -> &'static str {
        match self {
            Coding::Brotli => ".br",
            Coding::Gzip => ".gz",
            Coding::Identity => "",
        }
    }

    /// What the `Content-Encoding` field says; nothing for the file itself.
    pub fn token(self) -> Option<&'static str> {
        match self {
            Coding::Brotli => Some("br"),
            Coding::Gzip => Some("gzip"),
            Coding::Identity => None,
        }
    }
}

/// The forms that a client accepts, the most welcome first. Empty when it refuses them all.
///
/// Without the field the file itself is sent: who says nothing may be unable to decode.
pub fn accepted(fields: &HeaderMap) -> impl Iterator<Item = Coding> + use<> {
    let weights = Weights::read(fields);
    let mut forms = [
        (Coding::Brotli, weights.brotli.or(weights.any).unwrap_or(0)),
        (Coding::Gzip, weights.gzip.or(weights.any).unwrap_or(0)),
        // Acceptable unless it is ruled out; by itself the least wanted.
        (Coding::Identity, weights.identity.or(weights.any).unwrap_or(1)),
    ];
    // Stable: of equals, the smaller form stays first.
    forms.sort_by_key(|&(_, weight)| std::cmp::Reverse(weight));
    forms.into_iter().filter(|&(_, weight)| weight > 0).map(|(form, _)| form)
}

/// What the field says of each coding, in thousandths.
#[derive(Default)]
struct Weights {
    brotli: Option<u16>,
    gzip: Option<u16>,
    identity: Option<u16>,
    any: Option<u16>,
}

impl Weights {
    fn read(fields: &HeaderMap) -> Self {
        let mut weights = Weights::default();
        let lines = fields.get_all(ACCEPT_ENCODING).iter();
        for element in lines.flat_map(|line| line.as_bytes().split(|&byte| byte == b',')) {
            let mut pieces = element.splitn(2, |&byte| byte == b';').map(<[u8]>::trim_ascii);
            let name = pieces.next().unwrap_or_default();
            let Some(weight) = pieces.next().map_or(Some(1000), weight) else { continue };
            let place = match name {
                b"*" => &mut weights.any,
                name if name.eq_ignore_ascii_case(b"br") => &mut weights.brotli,
                // RFC 9110 §8.4.1.3: x-gzip is the same.
                name if name.eq_ignore_ascii_case(b"gzip") || name.eq_ignore_ascii_case(b"x-gzip") => {
                    &mut weights.gzip
                }
                name if name.eq_ignore_ascii_case(b"identity") => &mut weights.identity,
                _ => continue,
            };
            *place = Some(weight);
        }
        weights
    }
}

/// Reads `q=0.125` as 125 (RFC 9110 §12.4.2); `None` when it is anything else.
fn weight(parameter: &[u8]) -> Option<u16> {
    let (name, value) = parameter.split_at_checked(2)?;
    if !name.eq_ignore_ascii_case(b"q=") {
        return None;
    }
    let (whole, fraction) = match value {
        [whole] => (whole, &[][..]),
        [whole, b'.', fraction @ ..] if fraction.len() <= 3 => (whole, fraction),
        _ => return None,
    };
    let thousandths = [100, 10, 1].iter().zip(fraction).try_fold(0_u16, |sum, (&place, digit)| {
        digit.is_ascii_digit().then(|| sum + place * u16::from(digit - b'0'))
    })?;
    match (whole, thousandths) {
        (b'0', thousandths) => Some(thousandths),
        (b'1', 0) => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Coding::{Brotli, Gzip, Identity};
    use super::*;
    use http::HeaderValue;

    fn order(lines: &[&'static str]) -> Vec<Coding> {
        let mut fields = HeaderMap::new();
        for line in lines {
            fields.append(ACCEPT_ENCODING, HeaderValue::from_static(line));
        }
        accepted(&fields).collect()
    }

    #[test]
    fn weights_decide_and_small_forms_win_ties() {
        let table: &[(&[&'static str], &[Coding])] = &[
            (&[], &[Identity]),
            (&[""], &[Identity]),
            (&["gzip"], &[Gzip, Identity]),
            (&["x-gzip"], &[Gzip, Identity]),
            (&["GZIP"], &[Gzip, Identity]),
            (&["gzip, deflate, br, zstd"], &[Brotli, Gzip, Identity]),
            (&["gzip", "br"], &[Brotli, Gzip, Identity]),
            (&["br;q=0.5, gzip"], &[Gzip, Brotli, Identity]),
            (&["br;q=0.5,gzip;q=0.501"], &[Gzip, Brotli, Identity]),
            (&["br;q=0, gzip"], &[Gzip, Identity]),
            (&["gzip;q=0.000"], &[Identity]),
            (&["*"], &[Brotli, Gzip, Identity]),
            (&["*;q=0"], &[]),
            (&["*;q=0, gzip"], &[Gzip]),
            (&["*;q=0, identity"], &[Identity]),
            (&["gzip;q=0, *"], &[Brotli, Identity]),
            (&["identity;q=0"], &[]),
            (&["br, identity;q=0"], &[Brotli]),
            (&["br;q=0.2, identity;q=0.5"], &[Identity, Brotli]),
            (&["identity, gzip;q=0.9"], &[Identity, Gzip]),
            (&["deflate"], &[Identity]),
            // A weight that cannot be read is not a wish.
            (&["gzip;q=2"], &[Identity]),
            (&["gzip;q=1.001"], &[Identity]),
            (&["gzip;q=0.1234"], &[Identity]),
            (&["gzip;q=-1"], &[Identity]),
            (&["gzip;level=9"], &[Identity]),
            (&["gzip ; q=1.000"], &[Gzip, Identity]),
            (&["gzip;Q=0.1"], &[Gzip, Identity]),
            (&["gzip;q=1."], &[Gzip, Identity]),
        ];
        for (lines, expected) in table {
            assert_eq!(order(lines), *expected, "{lines:?}");
        }
    }
}
