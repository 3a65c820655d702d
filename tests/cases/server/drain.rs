//! The word to drain: idle connections end, busy ones finish, and late ones are cut.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use http::{Request, Response};
use hyperman::{Body, Config, Shutdown, service_fn};
use hyperman_tests::caller::Caller;
use hyperman_tests::carrier::Carrier;
use hyperman_transport::{Runtime, Timer};

use super::{SOON, Text, Told, text};
use crate::Rt;

hyperman_tests::cases! {
    EVERY:
        a_drain_closes_the_idle_and_lets_the_busy_finish
        an_answer_after_the_word_to_drain_says_that_it_is_the_last
        a_drain_cuts_what_does_not_end_in_time;
}

fn a_drain_closes_the_idle_and_lets_the_busy_finish(on: Carrier) {
    let (release, released) = mpsc::channel::<()>();
    let released = Arc::new(std::sync::Mutex::new(released));
    let (tell, told) = mpsc::channel();
    let service = move |runtime: Rt| {
        service_fn(move |request: Request<Body>| {
            let (runtime, released, tell) = (runtime.clone(), Arc::clone(&released), tell.clone());
            async move {
                if request.uri().path() == "/quick" {
                    return text("quick");
                }
                let _ = tell.send("called");
                let mut timer = runtime.timer();
                while released.lock().expect("lock").try_recv().is_err() {
                    let soon = runtime.now() + Duration::from_millis(5);
                    poll_fn(|cx| timer.poll_deadline(soon, cx)).await;
                }
                text("finished")
            }
        })
    };
    with_server!(on, service, Config::default(), |address, shutdown: &Shutdown| {
        let mut idle = Caller::connect(on, address);
        assert_eq!(idle.get("/quick").answer().text(), "quick");
        let mut busy = Caller::connect(on, address);
        busy.get("/slow");
        assert_eq!(told.recv_timeout(SOON), Ok("called"));
        shutdown.drain();
        idle.expect_end();
        release.send(()).expect("release");
        let answer = busy.answer();
        assert_eq!(answer.text(), "finished");
        busy.expect_last(&answer);
    });
}

fn an_answer_after_the_word_to_drain_says_that_it_is_the_last(on: Carrier) {
    let stop = Arc::new(std::sync::OnceLock::<Shutdown>::new());
    let stopping = Arc::clone(&stop);
    let service = move |_| {
        let stop = Arc::clone(&stopping);
        service_fn(move |_: Request<Body>| {
            // The word comes while the connection is in the middle of its turn.
            stop.get().expect("a handle").drain();
            async { text("last") }
        })
    };
    with_server!(on, service, Config::default(), |address, shutdown: &Shutdown| {
        stop.set(shutdown.clone()).expect("set once");
        let mut caller = Caller::connect(on, address);
        let answer = caller.get("/").answer();
        assert_eq!(answer.text(), "last");
        caller.expect_last(&answer);
    });
}

fn a_drain_cuts_what_does_not_end_in_time(on: Carrier) {
    let (tell, told) = mpsc::channel();
    let service = move |_| {
        service_fn(move |_: Request<Body>| {
            let tell = tell.clone();
            async move {
                let _told = Told(tell.clone(), "dropped");
                let _ = tell.send("called");
                pending::<Result<Response<Text>, Infallible>>().await
            }
        })
    };
    let config = Config { drain_deadline: Duration::from_millis(100), ..Config::default() };
    with_server!(on, service, config, |address, shutdown: &Shutdown| {
        let mut caller = Caller::connect(on, address);
        caller.get("/");
        assert_eq!(told.recv_timeout(SOON), Ok("called"));
        shutdown.drain();
        assert_eq!(told.recv_timeout(SOON), Ok("dropped"));
        caller.expect_cut();
    });
}
