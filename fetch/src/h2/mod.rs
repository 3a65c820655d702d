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
//! the connections of a client by origin; `call` takes one, and makes a request again that was not processed.

mod call;
mod directory;
mod exchange;
mod hub;
mod relay;

pub(crate) use directory::Directory;
pub(crate) use exchange::Exchange;

#[cfg(all(test, feature = "native"))]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::time::Duration;

    use hyperman_http2::{Config, Error as Fault, Timeout};

    use crate::error::ErrorKind;

    #[test]
    fn a_server_that_says_nothing_any_more_is_found_by_a_ping() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        // Its SETTINGS, and then nothing: the connection stays open.
        let silent = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).expect("a write");
            stream
        });
        let error = hyperman_loop::block_on(|handle| async move {
            let mut config = Config::client();
            config.timeouts.ping = Some(Duration::from_millis(20));
            config.timeouts.pong = Duration::from_millis(20);
            let mut builder = crate::Client::builder(handle).http2_prior_knowledge();
            builder.config.http2_machine = Arc::new(config);
            builder.build().get(&url).timeout(Duration::from_secs(20)).send().await
        });
        let error = error.expect("a loop").expect_err("no answer");
        assert!(matches!(error.kind(), ErrorKind::Http2(Fault::Timeout(Timeout::Pong))), "{error:?}");
        assert!(error.request_may_have_been_processed());
        drop(silent.join());
    }
}
