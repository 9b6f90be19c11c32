//! The servers of torture.pl's figure 1 under a small load: a static page, a static page with a
//! process for each request, a CGI script, and the same script in an embedded interpreter.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use support::apache::Apache;
use support::process::measure;
use support::{outcomes, program};

/// Norm site with its own tree, as `loadstone site --norm` serves it.
struct Norm {
    child: Child,
    port: u16,
}

impl Norm {
    fn start() -> Norm {
        let mut command = program(&["site", "--norm", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().trim_end_matches('/').rsplit_once(':').unwrap().1.parse().unwrap();
        Norm { child, port }
    }

    /// Returns the content of a page.
    fn content(&self, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.0\r\nHost: x\r\n\r\n");
        let text = page(self.port, &request);
        let (head, content) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 OK\r\n"), "{path}: {text}");
        content.to_owned()
    }

    /// Pages touched by its ended children: no child, no page (proc(5): `cminflt`).
    fn child_page_faults(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let (_, after_name) = stat.rsplit_once(") ").unwrap();
        after_name.split(' ').nth(8).unwrap().parse().unwrap()
    }
}

impl Drop for Norm {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
        self.child.wait().ok();
    }
}

/// Requests a page on a new connection, and returns the complete response.
fn page(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Form in Perl, embedded in Apache, that greets by name and reports how many answers its process
/// has made.
const FORM: &str = r#"
package Loadstone::Form;
use strict;
use warnings;
use Apache2::RequestRec ();
use Apache2::RequestIO ();
use APR::Table ();
use Apache2::Const -compile => 'OK';

my $answers = 0;

sub decoded {
    my $text = shift // '';
    $text =~ tr/+/ /;
    $text =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge;
    $text =~ s/&/&amp;/g;
    $text =~ s/</&lt;/g;
    $text =~ s/>/&gt;/g;
    $text =~ s/"/&quot;/g;
    return $text;
}

sub handler {
    my $request = shift;
    my $sent = $request->args // '';
    $request->read($sent, 65536) if $request->method eq 'POST';
    my %fields = map { my ($name, $value) = split /=/, $_, 2; ($name => decoded($value)) } split /&/, $sent;
    my $title = join ' ', grep { length } map { $fields{$_} // '' } qw(given family);
    $title = length $title ? "Hello $title" : 'What is your name?';
    $answers++;
    $request->headers_out->set('X-Answers', $answers);
    $request->content_type('text/html; charset=utf-8');
    $request->print(<<"PAGE");
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>A form</title></head><body>
<h1>$title</h1>
<form method="post">
<p><label>Given name <input name="given"></label></p>
<p><label>Family name <input name="family"></label></p>
<p><input type="submit" name="Submit" value="Send"></p>
</form>
</body></html>
PAGE
    return Apache2::Const::OK;
}

1;
"#;

/// Apache with one process, so that a single interpreter answers all requests.
fn mod_perl() -> Apache {
    Apache::start(&["perl"], |folder: &Path| {
        std::fs::write(folder.join("form.pl"), FORM).unwrap();
        format!(
            "StartServers 1\nServerLimit 1\nMaxRequestWorkers 1\nKeepAlive On\n\
             PerlRequire {}/form.pl\n\
             <Location /form>\n SetHandler modperl\n PerlResponseHandler Loadstone::Form\n\
             </Location>\n",
            folder.display()
        )
    })
}

#[test]
fn an_interpreter_kept_inside_apache_answers_a_run() {
    let apache = mod_perl();
    let url = apache.url("/form?given=Fred&family=Flintstone");
    let json = measure(&["-c", "1", "-n", "20", &url]);
    assert_eq!(outcomes(&json), [20, 20, 0, 0, 0, 0], "{}", apache.error_log());
    assert_eq!(json["status"], serde_json::json!({"200": 20}), "{}", apache.error_log());
    let body = "given=Fred&family=Flintstone&Submit=Send";
    let length = body.len();
    let request = format!(
        "POST /form HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let text = page(apache.port, &request);
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}\n{}", apache.error_log());
    assert!(text.contains("<h1>Hello Fred Flintstone</h1>"), "{text}");
    // the plain first call, the run, and this one: all in one interpreter
    assert!(text.contains("\r\nX-Answers: 22\r\n"), "{text}");
}

#[test]
fn the_norm_site_replaces_each_of_the_four() {
    let norm = Norm::start();
    let query = "?given=Fred&family=Flintstone";
    for (path, by_process) in [
        ("/index.html", false),
        ("/lua/form", false),
        ("/process/index.html", true),
        ("/cgi/form-handler", true),
    ] {
        let before = norm.child_page_faults();
        let url = format!("http://127.0.0.1:{}{path}{query}", norm.port);
        let json = measure(&["-c", "4", "-n", "40", &url]);
        assert_eq!(outcomes(&json), [40, 40, 0, 0, 0, 0], "{path}");
        assert_eq!(json["status"], serde_json::json!({"200": 40}), "{path}");
        let touched = norm.child_page_faults() - before;
        let expected = if by_process { 40..=u64::MAX } else { 0..=0 };
        assert!(expected.contains(&touched), "{path}: {touched}");
        assert_eq!(json["bytes"]["body"], 40 * norm.content(&format!("{path}{query}")).len());
    }
    assert_eq!(norm.content("/index.html"), norm.content("/process/index.html"));
    // one script, by a process and by the interpreter inside
    let by_process = norm.content(&format!("/cgi/form-handler{query}"));
    let inside = norm.content(&format!("/lua/form{query}"));
    assert!(inside.contains("<h1>Hello Fred Flintstone</h1>"), "{inside}");
    assert_eq!(by_process, inside.replace("/lua/form", "/cgi/form-handler"));
}
