//! HTTP/2: many exchanges on one connection, without a task that would drive it.
//!
//! A client cannot start tasks, so a connection is driven by whoever waits for something on it: each exchange that is
//! polled moves the whole connection, and what comes for others goes to their mailboxes.
//!
//! # Why no wake-up is lost
//!
//! The socket and the timer are never armed with the waker of an exchange. They hold that of the connection's
//! [`Relay`](relay::Relay), which belongs to nobody that could go away. Three things hold whenever the connection's lock
//! is free:
//!
//! 1. Either the relay has *rung* since the last turn, or the last turn ended because socket and timer had nothing more,
//!    and both are armed with the relay.
//! 2. An exchange that was told to wait has its waker in the relay, or was woken since: it puts the waker there before
//!    it looks, under the lock, whether there is something to do or to take.
//! 3. A ring wakes *everybody* who waits. Whoever is polled first does the turn; the others find that it is done.
//!
//! So readiness rings, a ring reaches all who wait, and the first of them to be polled makes a turn. It does not matter
//! which of them are dropped meanwhile, or are not polled for a while by a caller who has something else to do: waking
//! a single one and handing on would depend on that one. The price is a short poll for each waiting stream where much is
//! read at once. Something that is put into a mailbox wakes its owner alone.
//!
//! # What goes where
//!
//! `relay` wakes; `hub` is the connection behind its lock; `exchange` is one request and its answer on it; `directory` has
//! the connections of a client by origin; `ending` says how they end; `call` takes one, and makes a request again that was not processed.

mod call;
mod directory;
mod ending;
mod exchange;
mod hub;
mod relay;

pub(crate) use directory::Directory;
pub(crate) use exchange::Exchange;

#[cfg(all(test, feature = "native"))]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::time::Duration;

    use hyperman_http2::{Error as Fault, Timeout};

    use crate::error::ErrorKind;

    /// SETTINGS without an entry.
    const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

    /// A client that loses patience soon.
    fn impatient(handle: hyperman_loop::Handle) -> crate::Client<hyperman_loop::Handle> {
        let moment = Duration::from_millis(20);
        let builder = crate::Client::builder(handle).http2_prior_knowledge().http2_ping(moment, moment);
        builder.timeout(Duration::from_secs(20)).build()
    }

    #[test]
    fn a_server_that_says_nothing_any_more_is_found_by_a_ping() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        // Its SETTINGS, and then nothing: the connection stays open.
        let silent = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            stream.write_all(SETTINGS).expect("a write");
            stream
        });
        let outcome =
            hyperman_loop::block_on(|handle| async move { impatient(handle).get(&url).send().await });
        let error = outcome.expect("a loop").expect_err("no answer");
        assert!(matches!(error.kind(), ErrorKind::Http2(Fault::Timeout(Timeout::Pong))), "{error:?}");
        assert!(error.request_may_have_been_processed());
        drop(silent.join());
    }

    #[test]
    fn a_kept_connection_that_is_dead_is_replaced() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let server = std::thread::spawn(move || {
            let mut streams = Vec::new();
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().expect("a connection");
                let mut came = [0; 4096];
                let mut length = 0;
                while !has_headers(&came[..length]) {
                    length += stream.read(&mut came[length..]).expect("a read");
                }
                stream.write_all(SETTINGS).expect("a write");
                // HEADERS with END_STREAM on stream 1: `:status: 200`.
                stream.write_all(&[0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88]).expect("a write");
                // It stays open, and nobody reads it any more.
                streams.push(stream);
            }
            streams
        });
        let outcome = hyperman_loop::block_on(|handle| async move {
            let client = impatient(handle);
            for _ in 0..2 {
                assert_eq!(client.get(&url).send().await?.status(), 200);
            }
            Ok::<_, crate::Error>(())
        });
        outcome.expect("a loop").expect("both answers");
        assert_eq!(server.join().expect("the server").len(), 2);
    }

    /// Whether the preface and a HEADERS frame are there.
    fn has_headers(mut came: &[u8]) -> bool {
        const PREFACE: usize = 24;
        came = came.get(PREFACE..).unwrap_or_default();
        while let [high, middle, low, kind, ..] = came {
            if *kind == 1 {
                return true;
            }
            let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
            came = came.get(9 + length..).unwrap_or_default();
        }
        false
    }
}
