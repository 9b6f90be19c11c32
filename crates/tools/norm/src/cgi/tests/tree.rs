//! The scripts of the tree that `--init` writes.

use super::{Stage, get, post, whole};
use crate::breaks::Breaks;
use crate::cgi::CgiScript;
use std::path::{Path, PathBuf};

fn script(stage: &Stage, name: &str) -> CgiScript {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tree/cgi-bin");
    let program: PathBuf = folder.join(name);
    let text = std::fs::read_to_string(program).expect("a script of the tree");
    stage.program(&text, 0o755)
}

fn breaks(names: &str) -> Breaks {
    Breaks::parse(names).expect("names of switches")
}

/// Returns only the headings and paragraphs of the page.
async fn output_of(script: &CgiScript, ask: crate::exchange::Ask, breaks: &Breaks) -> String {
    let text = whole(script.answer(ask, breaks).await).await;
    let (status, _) = text.split_once('\n').expect("a status");
    let lines = text.lines().filter(|line| line.starts_with("<h1>") || line.starts_with("<p>The"));
    format!("{status} {}", lines.collect::<Vec<_>>().join(" "))
}

const FORM: &str = "application/x-www-form-urlencoded";

#[tokio::test]
async fn printenv_shows_the_environment() {
    let stage = Stage::new();
    let script = script(&stage, "printenv");
    let ask = super::with(get(Some("name=fred%20flintstone&page=3")), &[("user-agent", "test/1")]);
    let text = whole(script.answer(ask, &Breaks::default()).await).await;
    assert!(text.starts_with("200\ncontent-type: text/plain; charset=utf-8\n"), "{text}");
    for line in [
        "HTTP_USER_AGENT=test/1",
        "QUERY_STRING=name=fred%20flintstone&page=3",
        "SERVER_SOFTWARE=Loadstone/1",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line} in {text}");
    }
    for name in ["PATH=/", "SHELL=/"] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{name} in {text}");
    }
}

#[tokio::test]
async fn the_post_script_echoes_standard_input() {
    let stage = Stage::new();
    let script = script(&stage, "test-post");
    let sent = "given=Flintstone&family=Fred&Submit=Send";
    let text = whole(script.answer(post(FORM, sent), &Breaks::default()).await).await;
    assert!(text.contains("\nCONTENT_LENGTH=40\n"), "{text}");
    assert!(text.ends_with(&format!("\n\nstdin contained:\n{sent}\n")), "{text}");
    let text = whole(script.answer(post(FORM, sent), &breaks("cgi-stdin")).await).await;
    assert!(text.ends_with("\n\nstdin contained:\n\n"), "{text}");
}

#[tokio::test]
async fn the_form_requests_a_name_and_greets() {
    let stage = Stage::new();
    let script = script(&stage, "form-handler");
    let none = Breaks::default();
    assert_eq!(output_of(&script, get(None), &none).await, "200 <h1>What is your name?</h1>");
    for (sent, greeting) in [
        ("given=Fred&family=Flintstone&Submit=Send", "Hello Fred Flintstone"),
        ("family=Flintstone&Submit=Send&given=Fred", "Hello Fred Flintstone"),
        ("given=Fred&family=", "Hello Fred"),
        ("family=Flintstone", "Hello Flintstone"),
        ("given=&family=&Submit=Send", "What is your name?"),
        (
            "given=%3Cb%3E+J%C3%BCrgen&family=%26%22%00%0A%zz%4",
            "Hello &lt;b&gt; Jürgen &amp;&quot;%zz%4",
        ),
        ("given=<script>&family=a=b", "Hello &lt;script&gt; a=b"),
        ("given=a%2bb+c%20d&family=100%25", "Hello a+b c d 100%"),
        ("giver=Fred&=x&&given", "What is your name?"),
        ("given=%5Cn%5C%5C&family=\\t%26amp%3B", "Hello \\n\\\\ \\t&amp;amp;"),
    ] {
        let expected = format!("200 <h1>{greeting}</h1>");
        assert_eq!(output_of(&script, post(FORM, sent), &none).await, expected, "{sent}");
        assert_eq!(output_of(&script, get(Some(sent)), &none).await, expected, "{sent}");
    }
    let swapped =
        output_of(&script, post(FORM, "given=Fred&family=Flintstone"), &breaks("form-greeting"))
            .await;
    assert_eq!(swapped, "200 <h1>Hello Flintstone Fred</h1>");
    assert_eq!(stage.log(), "");
}

#[tokio::test]
async fn the_form_shows_its_values_and_links_to_itself() {
    let stage = Stage::new();
    let script = script(&stage, "form-handler");
    let mut ask = post(FORM, "given=%22Fred%22&family=F");
    ask.node_path = "/cgi/\"<x>".to_owned();
    let text = whole(script.answer(ask, &Breaks::default()).await).await;
    for part in [
        "<form method=\"post\" action=\"/cgi/&quot;&lt;x&gt;\">",
        "<input name=\"given\" value=\"&quot;Fred&quot;\">",
        "<input name=\"family\" value=\"F\">",
        "<input type=\"submit\" name=\"Submit\" value=\"Send\">",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// Returns a form with a file and a button, as browsers send it.
fn upload(name: &str, file: &[u8]) -> Vec<u8> {
    let head = format!(
        "--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
         Content-Type: text/plain\r\n\r\n"
    );
    let rest =
        "\r\n--XX\r\nContent-Disposition: form-data; name=\"Submit\"\r\n\r\nSend\r\n--XX--\r\n";
    [head.as_bytes(), file, rest.as_bytes()].concat()
}

#[tokio::test]
async fn the_line_counter_counts_lines_and_bytes() {
    const KIND: &str = "multipart/form-data; boundary=XX";
    let stage = Stage::new();
    let script = script(&stage, "line-counter");
    let none = Breaks::default();
    let long: String = (0..20_000).map(|number| format!("{number}\n")).collect();
    for (file, lines) in [
        ("", 0),
        ("a", 1),
        ("a\n", 1),
        ("a\nb", 2),
        ("a\nb\n", 2),
        ("\n", 1),
        ("\n\n", 2),
        ("a\r\nb\r\n", 2),
        ("\r", 1),
        ("--XXY\n--X\n-- XX--", 3),
        ("\0\u{1}\u{ff}\n\0", 2),
        (&long, 20_000),
    ] {
        let page = output_of(&script, post(KIND, upload("a<&>.txt", file.as_bytes())), &none).await;
        let bytes = file.len();
        let expected = format!(
            "200 <h1>a&lt;&amp;&gt;.txt</h1> <p>The file has {lines} lines and {bytes} bytes.</p>"
        );
        assert_eq!(page, expected, "{:?}", &file[..file.len().min(20)]);
    }
    let page = output_of(&script, post(KIND, upload("f", b"a\n")), &breaks("line-count")).await;
    assert_eq!(page, "200 <h1>f</h1> <p>The file has 2 lines and 2 bytes.</p>");
    assert_eq!(stage.log(), "");
}

#[tokio::test]
async fn the_line_counter_refuses_non_files() {
    let stage = Stage::new();
    let script = script(&stage, "line-counter");
    let none = Breaks::default();
    assert_eq!(output_of(&script, get(None), &none).await, "200 <h1>Line counter</h1>");
    let quoted = "Multipart/Form-Data; charset=x; Boundary=\"XX\"";
    let page = output_of(&script, post(quoted, upload("f", b"a\n")), &none).await;
    assert_eq!(page, "200 <h1>f</h1> <p>The file has 1 lines and 2 bytes.</p>");
    let kind = "multipart/form-data; boundary=XX";
    assert_eq!(
        output_of(&script, post(kind, upload("", b"")), &none).await,
        "200 <h1>No file was chosen</h1>"
    );
    assert_eq!(
        output_of(&script, post(kind, "--XX--\r\n"), &none).await,
        "200 <h1>No file was chosen</h1>"
    );
    let whole = upload("f", b"a\nb\n");
    for (kind, body) in [
        (kind, whole[..whole.len() - 8].to_vec()),
        (kind, b"rubbish".to_vec()),
        (kind, Vec::new()),
        ("multipart/form-data", whole.clone()),
        ("text/plain", whole.clone()),
        ("multipart/form-data; boundary=YY", whole.clone()),
    ] {
        let page = output_of(&script, post(kind, body), &none).await;
        assert_eq!(page, "400 <h1>That was no file</h1>", "{kind}");
    }
}
