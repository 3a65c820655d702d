//! What comes of a request, in words.

use http::Method;
use hyperman_fetch::{Client, Error};

/// Status and body, or the error and whether the request may have been processed.
pub async fn ask(
    client: &Client<hyperman_loop::Handle>,
    method: &Method,
    url: &str,
    body: &'static str,
) -> String {
    let asked = async {
        let answer = client.request(method.clone(), url).body(body).send().await?;
        let status = answer.status().as_u16();
        Ok::<_, Error>(format!("{status} {}", answer.text().await?))
    };
    match asked.await {
        Ok(told) => told,
        Err(error) => {
            let processed = if error.request_may_have_been_processed() { "perhaps" } else { "not" };
            format!("{:?}, {processed} processed", error.kind())
        }
    }
}
