//! Peers that go away, or end one direction.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use http::{Request, Response};
use hyperman::{Body, Config, Shutdown, service_fn};
use hyperman_tests::caller::Caller;
use hyperman_tests::carrier::Carrier;
use hyperman_tests::peer::Peer;
use hyperman_transport::{Runtime, Timer};

use super::{SOON, Text, Told, get, text};
use crate::Rt;

hyperman_tests::cases! {
    EVERY:
        the_peers_disconnect_drops_the_handler;
    ONE:
        half_close_is_tolerated_by_option;
}

fn the_peers_disconnect_drops_the_handler(on: Carrier) {
    let (tell, told) = mpsc::channel();
    let service = move |_| {
        service_fn(move |request: Request<Body>| {
            let tell = tell.clone();
            async move {
                if request.uri().path() == "/ready" {
                    return text("ready");
                }
                let _told = Told(tell.clone(), "dropped");
                let _ = tell.send("called");
                pending::<Result<Response<Text>, Infallible>>().await
            }
        })
    };
    with_server!(on, service, Config::default(), |address, _: &Shutdown| {
        for how in ["close", "reset", "cancel"] {
            let mut caller = Caller::connect(on, address);
            caller.get("/");
            assert_eq!(told.recv_timeout(SOON), Ok("called"));
            let gone = Instant::now();
            let stays = match how {
                "close" => {
                    drop(caller);
                    None
                }
                "reset" => {
                    caller.reset();
                    None
                }
                _ => caller.cancel(),
            };
            assert_eq!(told.recv_timeout(SOON), Ok("dropped"));
            assert!(gone.elapsed() < Duration::from_secs(1), "{how}: {:?}", gone.elapsed());
            if let Some(mut caller) = stays {
                assert_eq!(caller.get("/ready").answer().text(), "ready");
            }
        }
    });
}

fn half_close_is_tolerated_by_option(on: Carrier) {
    let (release, released) = mpsc::channel::<()>();
    let released = Arc::new(std::sync::Mutex::new(released));
    let service = move |runtime: Rt| {
        service_fn(move |_request: Request<Body>| {
            let (runtime, released) = (runtime.clone(), Arc::clone(&released));
            async move {
                let mut timer = runtime.timer();
                loop {
                    if released.lock().expect("lock").try_recv().is_ok() {
                        return text("late");
                    }
                    let soon = runtime.now() + Duration::from_millis(5);
                    poll_fn(|cx| timer.poll_deadline(soon, cx)).await;
                }
            }
        })
    };
    let config = Config { half_close: true, ..Config::default() };
    with_server!(on, service, config, |address, _: &Shutdown| {
        let mut peer = Peer::connect(on, address);
        peer.send(get("/")).finish();
        release.send(()).expect("release");
        assert_eq!(peer.answer().text(), "late");
        peer.expect_end();
    });
}
