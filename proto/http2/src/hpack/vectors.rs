//! The interoperability vectors of the HTTP working group (http2jp/hpack-test-case), read where they lie.

use std::ops::ControlFlow;
use std::path::PathBuf;

use bytes::BytesMut;
use http::header::HeaderName;
use serde_json::Value;

use super::{Decoder, Encoder, Field, Pseudo};

fn folder() -> Option<PathBuf> {
    let place = std::env::var_os("HYPERMAN_VECTORS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/vectors")),
        PathBuf::from,
    );
    let folder = place.join("hpack");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("without the HPACK vectors: {} is absent", folder.display());
    None
}

fn stories(set: &str) -> Vec<Value> {
    let Some(folder) = folder() else { return Vec::new() };
    let mut files: Vec<PathBuf> =
        folder.join(set).read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn fields(case: &Value) -> Vec<(String, String)> {
    let fields = case["headers"].as_array().unwrap();
    let one = |field: &Value| {
        let (name, value) = field.as_object().unwrap().iter().next().unwrap();
        (name.clone(), value.as_str().unwrap().to_owned())
    };
    fields.iter().map(one).collect()
}

/// A few values in the vectors end with blanks, which RFC 9113 §8.2.1 forbids: they are to be found malformed.
fn expected(fields: &[(String, String)]) -> Vec<(String, String)> {
    let judge = |(name, value): &(String, String)| {
        if value.trim() == value {
            (name.clone(), value.clone())
        } else {
            (MALFORMED.to_owned(), String::new())
        }
    };
    fields.iter().map(judge).collect()
}

const MALFORMED: &str = "(malformed)";

fn decode(decoder: &mut Decoder, block: &[u8]) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    decoder
        .decode(block, |field, _| {
            match field {
                Field::Pseudo(pseudo, value) => fields.push((pseudo.name().to_owned(), text(&value))),
                Field::Regular(name, value) => fields.push((name.to_string(), text(value.as_bytes()))),
                Field::Malformed => fields.push((MALFORMED.to_owned(), String::new())),
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    fields
}

#[test]
fn what_others_encoded_is_decoded() {
    let mut blocks = 0;
    for set in ["nghttp2", "nghttp2-change-table-size"] {
        for story in stories(set) {
            let mut decoder = Decoder::new(4096);
            for case in story["cases"].as_array().unwrap() {
                if let Some(size) = case["header_table_size"].as_u64() {
                    decoder.set_allowed(size as usize);
                }
                let block = unhex(case["wire"].as_str().unwrap());
                assert_eq!(decode(&mut decoder, &block), expected(&fields(case)));
                blocks += 1;
            }
        }
    }
    assert!(blocks > 3_000 || folder().is_none(), "{blocks} blocks");
}

#[test]
fn what_is_encoded_comes_back_and_is_small() {
    let (mut ours, mut theirs) = (0, 0);
    for story in stories("nghttp2") {
        let mut encoder = Encoder::new();
        let mut decoder = Decoder::new(4096);
        for case in story["cases"].as_array().unwrap() {
            let mut out = BytesMut::new();
            encoder.begin(&mut out);
            let fields = fields(case);
            for (name, value) in &fields {
                match Pseudo::from_name(name.as_bytes()) {
                    Some(pseudo) => encoder.pseudo(pseudo, value, &mut out),
                    None => {
                        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
                        encoder.field(&name, value.as_bytes(), false, &mut out);
                    }
                }
            }
            assert_eq!(decode(&mut decoder, &out), expected(&fields));
            ours += out.len();
            theirs += case["wire"].as_str().unwrap().len() / 2;
        }
    }
    assert!(ours <= theirs / 10 * 13, "{ours} octets, where the vectors take {theirs}");
}
