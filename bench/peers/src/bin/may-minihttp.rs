//! may_minihttp: stackful coroutines, a small parser, no `http` types. One worker thread.

use std::io;

use may_minihttp::{HttpService, HttpServiceFactory, Request, Response};

struct Answer;

impl HttpService for Answer {
    fn call(&mut self, _: Request, response: &mut Response) -> io::Result<()> {
        response.body(bench_peers::BODY);
        Ok(())
    }
}

struct Answers;

impl HttpServiceFactory for Answers {
    type Service = Answer;
    fn new_service(&self, _: usize) -> Answer {
        Answer
    }
}

fn main() {
    may::config().set_workers(1);
    Answers.start(bench_peers::address()).expect("a free port").join().expect("serves until it is stopped");
}
