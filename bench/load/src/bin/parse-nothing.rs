//! The floor: whatever arrives is answered with the same bytes, through epoll, one `read` and one `write` a request.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::epoll;
use rustix::net::{SocketFlags, acceptfrom_with};

fn main() {
    let port: u16 =
        std::env::args().nth(1).and_then(|port| port.parse().ok()).expect("the first argument is a port");
    let listener = std::net::TcpListener::bind(("127.0.0.1", port)).expect("a free port");
    listener.set_nonblocking(true).expect("non-blocking");
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 256\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n{}",
        "x".repeat(256)
    );
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("epoll");
    let everything = epoll::EventFlags::IN | epoll::EventFlags::ET;
    let listening = listener.as_raw_fd() as u64;
    epoll::add(&epoll, &listener, epoll::EventData::new_u64(listening), everything).expect("registered");

    // Indexed by descriptor number.
    let mut connections: Vec<Option<OwnedFd>> = Vec::new();
    let mut events = [MaybeUninit::<epoll::Event>::uninit(); 256];
    let mut buffer = [0_u8; 4096];
    loop {
        let (ready, _) = match epoll::wait(&epoll, &mut events, None) {
            Ok(ready) => ready,
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => panic!("{error}"),
        };
        for event in ready {
            let number = event.data.u64();
            if number == listening {
                accept_all(listener.as_fd(), epoll.as_fd(), everything, &mut connections);
                continue;
            }
            let place = &mut connections[number as usize];
            let Some(connection) = place else { continue };
            match rustix::io::read(&*connection, &mut buffer) {
                Ok(1..) => {
                    let _ = rustix::io::write(&*connection, answer.as_bytes());
                }
                Err(rustix::io::Errno::AGAIN) => {}
                Ok(0) | Err(_) => *place = None,
            }
        }
    }
}

fn accept_all(
    listener: BorrowedFd<'_>,
    epoll: BorrowedFd<'_>,
    interest: epoll::EventFlags,
    connections: &mut Vec<Option<OwnedFd>>,
) {
    while let Ok((connection, _)) = acceptfrom_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
        let number = connection.as_raw_fd() as usize;
        epoll::add(epoll, &connection, epoll::EventData::new_u64(number as u64), interest)
            .expect("registered");
        if connections.len() <= number {
            connections.resize_with(number + 1, || None);
        }
        connections[number] = Some(connection);
    }
}
