//! One URL, from the request to the last byte of the answer.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use http::header::CONTENT_TYPE;
use hyperman_fetch::{Client, Response};
use hyperman_loop::Handle;
use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::Failure;
use crate::options::Options;
use crate::output::Output;
use crate::question::Question;
use crate::trace::{Trace, head_bytes, version_name};

/// What `-w` can tell.
#[derive(Default)]
struct Figures {
    status: u16,
    version: &'static str,
    content_type: String,
    redirects: u32,
    remote: Option<std::net::SocketAddr>,
    size: u64,
    time: Duration,
    url: String,
}

/// Asks for one URL and writes what comes.
pub(crate) async fn transfer(
    client: &Client<Handle>,
    options: &Options,
    question: &Question,
    index: usize,
    text: &str,
) -> Result<(), Failure> {
    let started = Instant::now();
    let mut figures = Figures { url: text.to_owned(), ..Figures::default() };
    let outcome = ask(client, options, question, index, text, &mut figures).await;
    figures.time = started.elapsed();
    if let Some(format) = &options.write_out {
        let shown = figures.format(format);
        let written = crate::output::write_stdout(shown.as_bytes());
        // What went wrong before tells more.
        return outcome.and(written.map_err(|error| Failure::writing("the standard output", &error)));
    }
    outcome
}

async fn ask(
    client: &Client<Handle>,
    options: &Options,
    question: &Question,
    index: usize,
    text: &str,
    figures: &mut Figures,
) -> Result<(), Failure> {
    let url = question.url(text)?;
    let mut output = Output::new(options, index, &url)?;
    let trace = Trace::new(options.verbose);
    trace.proxies();
    let watch = trace.clone();
    let request = question.request(client, options, url)?.watch(move |notice| watch.notice(&notice));
    let sent = request.send().await;
    let seen = trace.take();
    figures.redirects = seen.redirects;
    let answer = match sent {
        Ok(answer) => answer,
        Err(error) => {
            if options.include && !seen.heads.is_empty() {
                output.heads(&seen.heads)?;
            }
            return Err(error.into());
        }
    };
    trace.answer(answer.head());
    figures.answered(&answer);
    if options.fail && answer.status().as_u16() >= 400 {
        return Err(Failure::new(22, format!("the server answered {}", answer.status())));
    }
    if options.include || options.head {
        let mut heads = seen.heads;
        head_bytes(answer.head(), &mut heads);
        output.heads(&heads)?;
    }
    if options.head {
        // Also where another method brings a body along.
        return output.finish();
    }
    output.suit(answer.headers());
    let bar = progress(options, &output, answer.content_length());
    let outcome = copy(&mut output, answer, &bar, figures).await;
    bar.finish_and_clear();
    outcome.map_err(|failure| match output.is_file() && figures.size > 0 {
        true => failure.with(&format!("; {} bytes of it are in {}", figures.size, output.name())),
        false => failure,
    })
}

/// Writes the body as it comes.
async fn copy(
    output: &mut Output,
    mut answer: Response<Handle>,
    bar: &ProgressBar,
    figures: &mut Figures,
) -> Result<(), Failure> {
    while let Some(chunk) = answer.chunk().await? {
        output.body(&chunk)?;
        figures.size += chunk.len() as u64;
        bar.inc(chunk.len() as u64);
    }
    output.finish()
}

/// A bar on the terminal while a file is filled.
fn progress(options: &Options, output: &Output, length: Option<u64>) -> ProgressBar {
    if options.silent || !output.is_file() || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let template = match length {
        Some(_) => "{bytes:>10} / {total_bytes} [{wide_bar}] {bytes_per_sec}, {eta} left",
        None => "{bytes:>10} {spinner} {bytes_per_sec}",
    };
    let bar = length.map_or_else(ProgressBar::no_length, ProgressBar::new);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

impl Figures {
    fn answered(&mut self, answer: &Response<Handle>) {
        self.status = answer.status().as_u16();
        self.version = version_name(answer.version()).trim_start_matches("HTTP/");
        let media_type = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        self.content_type = media_type.unwrap_or_default().to_owned();
        self.remote = Some(answer.remote_addr());
        self.url = answer.url().to_string();
    }

    /// The format with its names and escapes replaced; what is not known stays as it is.
    fn format(&self, format: &str) -> String {
        let mut shown = String::new();
        let mut rest = format;
        while let Some(at) = rest.find(['%', '\\']) {
            let (before, special) = rest.split_at(at);
            shown.push_str(before);
            let (text, length) = self.special(special);
            shown.push_str(&text);
            rest = special.get(length..).unwrap_or_default();
        }
        shown.push_str(rest);
        shown
    }

    /// What the beginning of `special` stands for, and how long that beginning is.
    fn special(&self, special: &str) -> (String, usize) {
        const ESCAPES: [(&str, &str); 5] =
            [("\\n", "\n"), ("\\r", "\r"), ("\\t", "\t"), ("\\\\", "\\"), ("%%", "%")];
        if let Some((escape, text)) = ESCAPES.iter().find(|(escape, _)| special.starts_with(escape)) {
            return ((*text).to_owned(), escape.len());
        }
        let name = special.strip_prefix("%{").and_then(|rest| rest.split_once('}')).map(|(name, _)| name);
        match name.and_then(|name| Some((self.value(name)?, name.len() + 3))) {
            Some(replaced) => replaced,
            None => (special.chars().take(1).collect(), 1),
        }
    }

    fn value(&self, name: &str) -> Option<String> {
        Some(match name {
            "http_code" | "response_code" => format!("{:03}", self.status),
            "http_version" => if self.version.is_empty() { "0" } else { self.version }.to_owned(),
            "content_type" => self.content_type.clone(),
            "num_redirects" => self.redirects.to_string(),
            "remote_ip" => self.remote.map(|remote| remote.ip().to_string()).unwrap_or_default(),
            "remote_port" => self.remote.map_or(0, |remote| remote.port()).to_string(),
            "size_download" => self.size.to_string(),
            "time_total" => format!("{:.6}", self.time.as_secs_f64()),
            "url_effective" => self.url.clone(),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_out_replaces_what_it_knows() {
        let figures = Figures { status: 204, size: 7, url: "http://a/".to_owned(), ..Figures::default() };
        let shown = figures.format("%{http_code} %{size_download}\\n%{nothing} 100%% %{url_effective}\\q%");
        assert_eq!(shown, "204 7\n%{nothing} 100% http://a/\\q%");
    }
}
