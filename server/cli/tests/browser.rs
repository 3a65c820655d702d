//! A browser loads a page over HTTP/2 from the program, as whoever starts it with `--tls` would.
#![allow(clippy::unwrap_used, reason = "a test's helpers fail by panicking")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// How many small files the page asks for at once.
const PIECES: usize = 50;

/// The page says what came, and over which protocol, once all of it has. It brings its icon along,
/// which a browser would ask for whenever it likes.
const PAGE: &str = r#"<!doctype html>
<title>A page</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="style.css">
<script src="script.js"></script>
<img src="image.svg" alt="">
<pre id="told">nothing yet</pre>
<script>
addEventListener("load", async () => {
  const numbers = [...Array(PIECES).keys()];
  const texts = await Promise.all(numbers.map(number => fetch(`pieces/${number}.txt`).then(answer => answer.text())));
  const right = texts.filter((text, number) => text === `piece ${number}\n`).length;
  const entries = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  const others = entries.filter(entry => entry.nextHopProtocol !== "h2" && entry.name.startsWith(location.origin));
  const styled = getComputedStyle(document.body).color === "rgb(1, 2, 3)";
  const image = document.querySelector("img").naturalWidth;
  told.textContent = `${right} pieces, ${others.length} of them not over h2, styled ${styled}, script ${ran}, image ${image}`;
});
</script>
"#;

/// The program, running. Ends with it.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Serves `folder` over TLS, with a certificate of its own making; gives the URL as it is told to the user.
fn serve(folder: &Path) -> (Program, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hyperman"))
        .arg("serve")
        .arg(folder)
        .args(["--tls", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let messages = BufReader::new(child.stderr.take().unwrap());
    let program = Program(child);
    let mut lines = messages.lines().map(Result::unwrap);
    let url = lines.find(|line| line.trim().starts_with("https://")).unwrap();
    // What it says later must find a reader.
    std::thread::spawn(move || lines.for_each(drop));
    (program, url.trim().to_owned())
}

#[test]
fn a_browser_loads_a_page_over_http_2() {
    let site = TempDir::new().unwrap();
    let write = |name: &str, text: &str| fs::write(site.path().join(name), text).unwrap();
    write("index.html", &PAGE.replace("PIECES", &PIECES.to_string()));
    write("style.css", "body { color: rgb(1, 2, 3) }");
    write("script.js", "const ran = true;");
    write("image.svg", r#"<svg xmlns="http://www.w3.org/2000/svg" width="7" height="7"></svg>"#);
    fs::create_dir(site.path().join("pieces")).unwrap();
    for number in 0..PIECES {
        write(&format!("pieces/{number}.txt"), &format!("piece {number}\n"));
    }
    let (_program, url) = serve(site.path());

    let profile = TempDir::new().unwrap();
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        // The certificate is signed by nobody that the browser knows.
        .arg("--ignore-certificate-errors")
        // How long the page's own clock runs before it is shown; it stands still while something is on its way.
        .args(["--virtual-time-budget=30000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(&url)
        .output()
        .expect("chromium is installed, see ./test");
    let page = String::from_utf8_lossy(&output.stdout);
    let told = page.split_once("<pre id=\"told\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    assert_eq!(
        told.map(|(told, _)| told),
        Some(&*format!("{PIECES} pieces, 0 of them not over h2, styled true, script true, image 7")),
        "{page}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
