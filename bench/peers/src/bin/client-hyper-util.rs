//! hyper-util's pooled client: one request after the other on one connection.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

fn main() {
    let target: hyper::Uri = format!("http://{}/", bench_peers::address()).parse().expect("a URI");
    bench_peers::runtime().block_on(async {
        let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
        for _ in 0..bench_peers::requests() {
            let response = client.get(target.clone()).await.expect("an answer");
            let body = response.into_body().collect().await.expect("a body").to_bytes();
            assert_eq!(body.len(), bench_peers::BODY.len());
        }
    });
}
