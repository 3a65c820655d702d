//! Fetch on our own loop: one request after the other on one connection.

use hyperman_fetch::Client;

fn main() {
    let target: hyperman_fetch::Url = format!("http://{}/", bench_ours::address()).parse().expect("a URL");
    hyperman_loop::block_on(|handle| async move {
        let client = Client::new(handle);
        for _ in 0..bench_ours::requests() {
            let body = client.get(&target).send().await.expect("an answer").bytes().await.expect("a body");
            assert_eq!(body.len(), bench_ours::BODY.len());
        }
    })
    .expect("a loop");
}
