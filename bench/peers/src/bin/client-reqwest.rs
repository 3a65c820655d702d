//! reqwest: one request after the other on one connection.

fn main() {
    let target = format!("http://{}/", bench_peers::address());
    bench_peers::runtime().block_on(async {
        let client = reqwest::Client::new();
        for _ in 0..bench_peers::requests() {
            let body = client.get(&target).send().await.expect("an answer").bytes().await.expect("a body");
            assert_eq!(body.len(), bench_peers::BODY.len());
        }
    });
}
