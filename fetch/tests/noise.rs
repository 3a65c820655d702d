//! Servers that say anything: frames of any kind in any order, heads and bodies with bytes thrown in. Whatever it is, each
//! request ends, in an answer or in an error, and none of them waits for its deadline.

#![cfg(feature = "native")]
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)] // a test fails where it panics

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use hyperman_fetch::Client;

mod frames;

use frames::together;

/// How many servers of each kind there are, unless `HYPERMAN_NOISE_SEEDS` says otherwise; `HYPERMAN_NOISE_SEED` plays a single
/// one again.
const SEEDS: u64 = 300;

/// xorshift64*: numbers that look random, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % sides
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.roll(from.len() as u64)).unwrap()]
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        let length = self.roll(most + 1);
        (0..length).map(|_| u8::try_from(self.roll(256)).unwrap()).collect()
    }
}

/// A frame: half of them as they should be, as far as that can be without looking.
fn frame(dice: &mut Dice) -> Vec<u8> {
    const HEAD: &[u8] = &[0x88];
    let kind = dice.pick(&[0, 0, 0, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 0x10, 0xfa]);
    let stream = dice.pick(&[0_u32, 1, 1, 3, 3, 5, 5, 2, 7]);
    let good = dice.roll(2) == 0;
    let (flags, payload) = match kind {
        0 if good => (dice.pick(&[0, 1]), dice.bytes(40)),
        1 if good => (dice.pick(&[4, 5]), HEAD.to_vec()),
        3 if good => (0, vec![0, 0, 0, dice.pick(&[0, 2, 7, 8])]),
        4 if good => (0, vec![0, dice.pick(&[3, 4, 5]), 0, 0, 0x40, dice.pick(&[0, 1])]),
        6 if good => (0, vec![0; 8]),
        7 if good => (0, vec![0, 0, 0, dice.pick(&[0, 1, 3, 5]), 0, 0, 0, dice.pick(&[0, 2])]),
        8 if good => (0, vec![0, 0, dice.pick(&[0, 1]), 1]),
        _ => (u8::try_from(dice.roll(256)).unwrap(), dice.bytes(20)),
    };
    let stream = if good && matches!(kind, 4 | 6 | 7) { 0 } else { stream };
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), &payload].concat()
}

/// Everything that a server says over HTTP/2.
fn frames_of(dice: &mut Dice) -> Vec<u8> {
    let mut said = vec![0, 0, 0, 4, 0, 0, 0, 0, 0];
    for _ in 0..dice.roll(30) {
        said.extend(frame(dice));
    }
    said
}

/// Everything that a server says over HTTP/1: good pieces in any order, and some with bytes in their middle.
fn pieces_of(dice: &mut Dice) -> Vec<u8> {
    const PIECES: [&[u8]; 14] = [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 103 Early Hints\r\n\r\n",
        b"HTTP/1.0 204 No Content\r\n",
        b"Content-Length: 5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close\r\n",
        b"X: y\r\n z\r\n",
        b"\r\n",
        b"\r\n",
        b"hello",
        b"5\r\nhello\r\n",
        b"0\r\n\r\n",
        b"0\r\nTrailer: x\r\n\r\n",
    ];
    let mut said = Vec::new();
    for _ in 0..dice.roll(12) {
        let piece = dice.pick(&PIECES);
        if dice.roll(6) == 0 {
            let (front, back) = piece.split_at(piece.len() / 2);
            said.extend([front, &dice.bytes(3), back].concat());
        } else {
            said.extend(piece);
        }
    }
    said
}

/// Says it in pieces of any size, and ends.
fn serve(mut stream: TcpStream, mut dice: Dice, said: &[u8]) {
    stream.set_nodelay(true).unwrap();
    // Something of a request is there before the first word.
    let _ = stream.read(&mut [0; 4096]);
    let mut rest = said;
    while !rest.is_empty() {
        let length = usize::try_from(dice.roll(60) + 1).unwrap().min(rest.len());
        let (now, later) = rest.split_at(length);
        if stream.write_all(now).is_err() {
            return;
        }
        rest = later;
    }
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.read_to_end(&mut Vec::new());
}

fn noise(say: fn(&mut Dice) -> Vec<u8>, http2: bool) {
    let asked = |name: &str| std::env::var(name).ok().map(|number| number.parse::<u64>().expect("a number"));
    let single = asked("HYPERMAN_NOISE_SEED");
    let (first, last) = match single {
        Some(seed) => (seed, seed),
        None => (1, asked("HYPERMAN_NOISE_SEEDS").unwrap_or(SEEDS)),
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    // The seed, and how many connections were made under it: each of them hears something else.
    let round = Arc::new(Mutex::new((0, 0)));
    let current = round.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (seed, number) = {
                let mut round = current.lock().unwrap();
                round.1 += 1;
                *round
            };
            let mut dice = Dice(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15) ^ number);
            let said = say(&mut dice);
            thread::spawn(move || serve(stream.unwrap(), dice, &said));
        }
    });
    let (mut answers, mut errors) = (0, 0);
    for seed in first..=last {
        *round.lock().unwrap() = (seed, 0);
        hyperman_loop::block_on(async |handle| {
            let builder = Client::builder(handle).timeout(Duration::from_secs(20));
            let client = if http2 { builder.http2_prior_knowledge() } else { builder }.build();
            let asked = (0..3).map(|_| async { client.post(&url).body("abc").send().await?.bytes().await });
            for outcome in together(asked.collect()).await {
                match outcome {
                    Ok(_) => answers += 1,
                    Err(error) => {
                        assert!(
                            !error.is_timeout(),
                            "a request was left waiting: HYPERMAN_NOISE_SEED={seed}"
                        );
                        errors += 1;
                    }
                }
            }
        })
        .unwrap();
    }
    // Not all of it is noise, and not all of it sense.
    assert!(single.is_some() || answers > 0 && errors > 0, "{answers} answers, {errors} errors");
}

#[test]
fn any_frames_are_survived() {
    noise(frames_of, true);
}

#[test]
fn any_pieces_of_http_1_are_survived() {
    noise(pieces_of, false);
}
