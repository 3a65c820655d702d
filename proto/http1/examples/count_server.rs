//! Keep-alive requests through the server's machine without a socket, to count instructions:
//!
//! ```text
//! cargo build --release -p hyperman-http1 --example count_server
//! for n in 2000 12000; do valgrind --tool=callgrind --callgrind-out-file=/dev/null \
//!     target/release/examples/count_server wrk $n 2>&1 | grep Collected; done
//! ```
//!
//! The difference divided by 10,000 is what one request costs: lent storage, head, `http::Request`, a 256-byte answer,
//! storage given back. `browser` in place of `wrk` sends six fields in 460 bytes; `fresh` a target that differs each time;
//! `miss` a field block that differs each time, so that nothing is found in the cache.

use std::hint::black_box;
use std::io::IoSlice;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use hyperman_http1::{HeadCache, Loan, Server, ServerConfig, ServerEvent};

const BROWSER: &str = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/png,*/*;q=0.8\r\n\
    Accept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\
    Cookie: session=0123456789abcdef0123456789abcdef; theme=dark; consent=all; _ga=GA1.1.1234567890.1234567890\r\n";

fn request(kind: &str, number: u64) -> String {
    match kind {
        "browser" => format!("GET / HTTP/1.1\r\nHost: localhost:8080\r\n{BROWSER}\r\n"),
        "fresh" => format!("GET /item/{number} HTTP/1.1\r\nHost: localhost:8080\r\n{BROWSER}\r\n"),
        "miss" => format!("GET / HTTP/1.1\r\nHost: localhost:8080\r\n{BROWSER}X-Id: {number}\r\n\r\n"),
        _ => "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".to_owned(),
    }
}

/// One turn of a driver.
#[inline(never)]
fn turn(
    server: &mut Server,
    loan: &mut Loan,
    now: Instant,
    received: &[u8],
    headers: &HeaderMap,
    body: &Bytes,
) -> usize {
    server.handle_timeout(now);
    server.lend(loan);
    server.read_buf().extend_from_slice(received);
    server.received(received.len());
    if let Ok(Some(ServerEvent::Request { request, .. })) = server.next_event() {
        let request = black_box(request);
        drop(request);
        let sent = server.send_full(StatusCode::OK, headers, body.clone());
        assert_eq!(sent, Ok(()));
    }
    assert!(matches!(server.next_event(), Ok(None)));
    let mut slices = [IoSlice::new(&[]); 8];
    let filled = server.poll_transmit(&mut slices);
    let length = slices.iter().take(filled).map(|slice| slice.len()).sum();
    server.transmitted(length);
    black_box(server.poll_timeout());
    server.reclaim(loan);
    length
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_default();
    let Some(count) = arguments.next().and_then(|count| count.parse().ok()) else {
        eprintln!("usage: count_server wrk|browser|fresh|miss COUNT");
        return ExitCode::FAILURE;
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "the example stands in for the driver, which has the clock"
    )]
    let now = Instant::now();
    let config = Arc::new(ServerConfig::default());
    let mut servers: Vec<_> = (0..50).map(|_| Server::new(Arc::clone(&config), now)).collect();
    let mut loan = Loan {
        read: BytesMut::with_capacity(16 << 10),
        heads: Some(Box::new(HeadCache::new(1))),
        date: *b"Sun, 06 Nov 1994 08:49:37 GMT",
        ..Loan::default()
    };
    let mut headers = HeaderMap::new();
    headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("text/plain"));
    let body = Bytes::from(vec![b'x'; 256]);
    // Rendered before, so that it is not counted: as many as differ.
    let requests: Vec<String> = (0..1000).map(|number| request(&kind, number)).collect();
    let mut sent = 0;
    let turns = servers.len();
    for number in 0..count {
        let server = servers.get_mut(number % turns);
        if let (Some(server), Some(request)) = (server, requests.get(number * 7 % requests.len())) {
            let later = now + Duration::from_millis(number as u64);
            sent += turn(server, &mut loan, later, request.as_bytes(), &headers, &body);
        }
    }
    println!("{} requests, {sent} bytes", count);
    ExitCode::SUCCESS
}
