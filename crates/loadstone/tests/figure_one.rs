//! The servers of torture.pl's figure 1, under a small load: a static page, a static page with a
//! process for each request, a CGI script, and the same script in an interpreter kept inside.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use support::apache::Apache;
use support::{measure, outcomes};

/// A page by a request of its own, whole.
fn page(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// The form that greets by name, in Perl, inside Apache; it tells how often its process has
/// answered.
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

/// Apache with one process, so that its interpreter answers everything.
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
    assert_eq!(outcomes(&json), [20, 20, 0, 0, 0, 0], "{}", apache.said());
    assert_eq!(json["status"], serde_json::json!({"200": 20}), "{}", apache.said());
    let body = "given=Fred&family=Flintstone&Submit=Send";
    let length = body.len();
    let request = format!(
        "POST /form HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let text = page(apache.port, &request);
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}\n{}", apache.said());
    assert!(text.contains("<h1>Hello Fred Flintstone</h1>"), "{text}");
    // the plain call that goes first, the run, and this one: all in one interpreter
    assert!(text.contains("\r\nX-Answers: 22\r\n"), "{text}");
}
