//! `load PORT CONNECTIONS REQUESTS wrk|browser turn|batch|hold`
//!
//! Makes that many requests over that many connections. `turn`: the connections ask one after the other, each waits for
//! its answer. `batch`: all ask, then all wait, so that the server finds many ready at once. `hold`: as `turn`, then the
//! connections stay open until standard input ends.

use std::io::{self, Read};
use std::net::SocketAddr;

use bench_load::{Connection, browser_head, wrk_head};

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, connections, requests, head, order] = &arguments[..] else { panic!("five arguments") };
    let number = |text: &String| text.parse::<usize>().expect("a number");
    let address = SocketAddr::from(([127, 0, 0, 1], number(port) as u16));
    let head = if head == "browser" { browser_head(address) } else { wrk_head(address) };
    let mut connections =
        (0..number(connections)).map(|_| Connection::open(address)).collect::<io::Result<Vec<_>>>()?;

    let mut left = number(requests);
    while left > 0 {
        let round = left.min(connections.len());
        left -= round;
        if order == "batch" {
            for connection in &mut connections[..round] {
                connection.send(&head)?;
            }
            for connection in &mut connections[..round] {
                connection.receive()?;
            }
        } else {
            for connection in &mut connections[..round] {
                connection.send(&head)?;
                connection.receive()?;
            }
        }
    }
    println!("done");
    if order == "hold" {
        io::stdin().read_to_end(&mut Vec::new())?;
    }
    Ok(())
}
