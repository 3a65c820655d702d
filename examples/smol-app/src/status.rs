//! The state of the work as a web page: `/` for people, `/jobs` for programs.

use std::convert::Infallible;
use std::fmt::Write;
use std::future::{Ready, ready};
use std::rc::Rc;

use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyperman::{Body, ServiceFn, service_fn};

use crate::board::Board;

/// Every answer is there at once.
type Answer = Ready<Result<Response<Body>, Infallible>>;

/// The service. It shares the board with the workers, which are on the same thread.
pub fn service(board: &Rc<Board>) -> ServiceFn<impl FnMut(Request<Body>) -> Answer + Clone + 'static> {
    let board = Rc::clone(board);
    service_fn(move |request: Request<Body>| ready(Ok(answer(&board, &request))))
}

fn answer(board: &Board, request: &Request<Body>) -> Response<Body> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut refusal = of(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "this only tells\n".to_owned());
        refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refusal;
    }
    match request.uri().path() {
        "/" => of(StatusCode::OK, "text/plain; charset=utf-8", page(board)),
        "/jobs" => match serde_json::to_string(&board.jobs()) {
            Ok(jobs) => of(StatusCode::OK, "application/json", jobs),
            Err(error) => of(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", error.to_string()),
        },
        _ => of(StatusCode::NOT_FOUND, "text/plain", "/ and /jobs are what there is\n".to_owned()),
    }
}

fn page(board: &Board) -> String {
    let mut page = format!("{board}\n\n");
    for job in board.jobs() {
        // Writing to a string does not fail.
        let _ = writeln!(page, "{} {job}", if job.has_ended() { "*" } else { " " });
    }
    page
}

fn of(status: StatusCode, kind: &'static str, text: String) -> Response<Body> {
    let mut answer = Response::new(Body::from(text));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}
