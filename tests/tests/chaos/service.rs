//! The server's side: does with each request what its target says, and counts.

use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyperman::Body;
use hyperman_tests::body::Paced;
use hyperman_tests::chaos::{Chaos, ChaosTimer};
use hyperman_transport::{Runtime, Timer};

use crate::plan::{Kind, Plan};

type BoxError = Box<dyn Error + Send + Sync>;
type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// How often each request came to the handler, and how often the wrong thing did.
#[derive(Debug, Default)]
pub struct Seen {
    pub calls: HashMap<u64, u32>,
    pub wrong: Vec<String>,
}

pub async fn answer<R: Runtime>(
    chaos: Chaos<R>,
    seen: Arc<Mutex<Seen>>,
    request: Request<Body>,
) -> Result<Answer, BoxError> {
    let Some(plan) = Plan::from_target(request.uri().path()) else {
        seen.lock().expect("lock").wrong.push(format!("a target out of nowhere: {}", request.uri()));
        return Err("no such target".into());
    };
    *seen.lock().expect("lock").calls.entry(plan.id).or_default() += 1;
    let body = request.into_body();
    let paced = |timer: ChaosTimer, sized| {
        Paced::new(timer, plan.payload(), plan.piece, plan.gap, sized).map_err(never).boxed_unsync()
    };
    let answer = match plan.kind {
        Kind::Ready | Kind::Ignored => whole(plan.payload()),
        Kind::Waits => {
            let mut timer = chaos.timer();
            let until = chaos.now() + plan.gap;
            poll_fn(|cx| timer.poll_deadline(until, cx)).await;
            whole(plan.payload())
        }
        Kind::Streamed => paced(chaos.timer(), false),
        Kind::StreamedSized => paced(chaos.timer(), true),
        Kind::Echo | Kind::EchoStreamed => {
            let body = body.collect().await?.to_bytes();
            if body != plan.payload() {
                seen.lock().expect("lock").wrong.push(format!("request {} has the wrong body", plan.id));
            }
            whole(body)
        }
        Kind::Pipe => body.map_err(Into::into).boxed_unsync(),
    };
    Ok(Response::new(answer))
}

fn never(never: Infallible) -> BoxError {
    match never {}
}

fn whole(body: Bytes) -> UnsyncBoxBody<Bytes, BoxError> {
    Full::new(body).map_err(never).boxed_unsync()
}
