//! Answers every read with one fixed HTTP answer and parses nothing: what the loop itself costs.
//!
//! `cargo run --release -p hyperman-loop --example fixed_response -- [ADDR:PORT]`, then point a load generator at it.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;

use bytes::BytesMut;
use hyperman_loop::{Handle, Loop, Source};
use hyperman_transport::{ByteStream, ListenOptions, Listener, Socket, Spawn, loan};

/// 256 bytes of body, as in the budget of the design.
fn answer() -> Vec<u8> {
    let mut answer = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 256\r\n\r\n".to_vec();
    answer.resize(answer.len() + 256, b'x');
    answer
}

async fn serve(mut socket: Socket<Source>, answer: &'static [u8]) -> io::Result<()> {
    loop {
        let received = poll_fn(|cx| {
            let mut buffer: BytesMut = loan::take();
            let received = socket.poll_recv(cx, &mut buffer);
            loan::give_back(buffer);
            received
        });
        if received.await? == 0 {
            return Ok(());
        }
        let mut sent = 0;
        while let Some(rest) = answer.get(sent..).filter(|rest| !rest.is_empty()) {
            sent += poll_fn(|cx| socket.poll_send(cx, &[IoSlice::new(rest)])).await?;
        }
    }
}

async fn accept(handle: Handle, address: SocketAddr) -> io::Result<()> {
    let answer: &'static [u8] = answer().leak();
    let mut listener = Listener::bind_tcp(handle.clone(), address, &ListenOptions::default())?;
    if let Some(address) = listener.local_addr()? {
        println!("http://{address}/ over {}", handle.backend());
    }
    loop {
        let accepted = poll_fn(|cx| listener.poll_accept(cx)).await?;
        handle.spawn(async move {
            // A client that resets its connection is no news here.
            let _ = serve(accepted.socket, answer).await;
        });
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned()).parse()?;
    let event_loop = Loop::new()?;
    Ok(event_loop.block_on(accept(event_loop.handle(), address))?)
}
