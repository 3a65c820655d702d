//! Clients: Fetch makes one request after the other.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use hyperman_fetch::{Body, Client, Error, ErrorKind};
use hyperman_tests::body::Paced;
use hyperman_tests::chaos::Chaos;
use hyperman_transport::{Runtime, Timer, tls};

use crate::plan::{Plan, Scenario};

/// How a request ended.
#[derive(Debug)]
pub enum Outcome {
    Answered,
    Failed(Error),
    Dropped,
    Wrong(String),
}

pub async fn pause<R: Runtime>(chaos: &Chaos<R>, time: Duration) {
    let mut timer = chaos.timer();
    let until = chaos.now() + time;
    poll_fn(|cx| timer.poll_deadline(until, cx)).await;
}

/// Makes a request and waits for its answer, as far as the caller's patience goes.
pub async fn request<R: Runtime>(
    chaos: &Chaos<R>,
    client: &Client<Chaos<R>>,
    base: &str,
    plan: &Plan,
) -> Outcome {
    pause(chaos, plan.pause).await;
    let exchange = async {
        match exchange(chaos, client, base, plan).await {
            Err(error) => Outcome::Failed(error),
            Ok((200, body)) if body == plan.payload() => Outcome::Answered,
            Ok((status, body)) => {
                Outcome::Wrong(format!("{status} with {} bytes: {}", body.len(), body.escape_ascii()))
            }
        }
    };
    let Some(patience) = plan.drop_after else { return exchange.await };
    let lose_patience = async {
        pause(chaos, patience).await;
        Outcome::Dropped
    };
    smol::future::or(exchange, lose_patience).await
}

async fn exchange<R: Runtime>(
    chaos: &Chaos<R>,
    client: &Client<Chaos<R>>,
    base: &str,
    plan: &Plan,
) -> Result<(u16, Bytes), Error> {
    let mut builder = client.request(plan.method(), format!("{base}{}", plan.target()));
    if plan.kind.is_chunked() {
        let paced = Paced::new(chaos.timer(), plan.payload(), plan.piece, plan.gap, false);
        builder = builder.body(Body::stream(paced));
    } else if plan.kind.has_body() {
        builder = builder.body(plan.payload());
    }
    let response = builder.timeout(plan.timeout).send().await?;
    let status = response.status().as_u16();
    Ok((status, response.bytes().await?))
}

/// Whether this error may come of what the scenario does to a request.
pub fn is_excused(error: &Error, plan: &Plan, loses: bool) -> bool {
    match error.kind() {
        ErrorKind::Timeout => plan.timeout.is_some(),
        ErrorKind::Connect { .. }
        | ErrorKind::Send(_)
        | ErrorKind::Receive(_)
        | ErrorKind::EmptyReply
        | ErrorKind::PartialBody(_) => loses,
        ErrorKind::Tls(tls::Error::Io(_) | tls::Error::HandshakeEof) => loses,
        // A connection may end in the middle of a head.
        ErrorKind::Protocol(hyperman_http1::Error::UnexpectedEofInHead) => loses,
        // Bytes are sent again on a new connection only where the method allows it, and streams never.
        ErrorKind::StaleConnection => loses && plan.kind.has_body(),
        _ => false,
    }
}

/// How often the handler may have been called for a request that ended so.
pub fn calls_fit(outcome: &Outcome, plan: &Plan, scenario: &Scenario, calls: u32) -> bool {
    let most = match scenario.carrier.is_http2() {
        // Only where a kept connection may die is a GET made again; a POST never is.
        _ if !scenario.loses() || plan.kind.has_body() => 1,
        false => 2,
        // On a connection that others keep alive, and may replace by another that dies too.
        true => 4,
    };
    let least = u32::from(matches!(outcome, Outcome::Answered));
    (least..=most).contains(&calls)
}
