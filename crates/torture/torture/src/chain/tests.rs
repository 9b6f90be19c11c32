use super::*;
use crate::framing;
use dialogue::http2::Protocol;
use dialogue::text::Values;

fn values() -> Values {
    Values { path: "/p".into(), host: "h".into(), post: "/q".into(), ..Values::default() }
}

#[test]
fn request_names_are_unique_and_framing_faults_are_listed() {
    let all = requests().unwrap();
    let mut message = String::new();
    for request in &all {
        let bytes = request.bytes(&values(), "A: b\r\n").unwrap();
        let reading = framing::read(&bytes);
        let faults: Vec<&str> = reading.faults.iter().map(|fault| fault.text()).collect();
        let whole = if reading.is_exact(bytes.len()) { "clear" } else { "not clear" };
        message.push_str(
            format!("{}: {}: {whole}; {}", request.class.id(), request.name, faults.join(", "))
                .trim_end_matches("; "),
        );
        message.push('\n');
        assert_eq!(all.iter().filter(|other| other.name == request.name).count(), 1);
    }
    insta::assert_snapshot!(message);
}

#[test]
fn length_placeholders_match_the_content() {
    let all = requests().unwrap();
    let made = |name: &str| {
        let request = all.iter().find(|request| request.name == name).unwrap();
        request.bytes(&values(), "").unwrap().escape_ascii().to_string()
    };
    assert_eq!(
        made("both framings, the length too long"),
        r"POST /q HTTP/1.1\r\nHost: h\r\nContent-Length: 33\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /p HTTP/1.1\r\nHost: h\r\n\r\n"
    );
    assert_eq!(
        made("both framings, the chunks too long"),
        r"POST /q HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n1c\r\nGET /p HTTP/1.1\r\nHost: h\r\n\r\n\r\n0\r\n\r\n"
    );
}

/// The plain run sends the same requests, so that a server is tested without a proxy.
#[test]
fn a_case_sends_the_requests_to_a_single_server() {
    let cases = crate::catalogue::cases().unwrap();
    let case = cases.iter().find(|case| case.id == "B-13").unwrap();
    let mut left_out = Vec::new();
    for request in requests().unwrap() {
        let Some(exchange) = case.exchanges.iter().find(|one| one.name == request.name) else {
            left_out.push(request.class.id());
            continue;
        };
        let [crate::case::ScriptStep::Send(text)] = &exchange.steps[..] else { panic!() };
        let sent = dialogue::text::bytes(text, &values()).unwrap();
        assert_eq!(sent, request.bytes(&values(), "").unwrap(), "{}", request.name);
    }
    // S-39, S-42 and B-05 have those
    left_out.dedup();
    assert_eq!(left_out, ["control", "0.CL", "chunk extension", "trailers"]);
}

#[test]
fn changes_by_a_proxy_are_listed() {
    let sent =
        b"POST /q HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n\
                 3;a\r\nabc\r\n0\r\n\r\n";
    let arrived =
        b"POST /q HTTP/1.0\r\nHost: i\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc";
    assert_eq!(
        changes(sent, arrived),
        [
            "the first line is POST /q HTTP/1.0",
            "framed by Content-Length 3 instead of chunked",
            "added: connection",
            "removed: transfer-encoding",
            "changed: content-length, host",
            "no longer has both Content-Length and Transfer-Encoding",
            "chunk extensions removed",
        ]
    );
    assert!(changes(sent, sent).is_empty());
    let arrival = |bytes: &[u8]| Arrival { bytes: bytes.to_vec(), cut_off: false };
    assert_eq!(Handling::new(&[arrival(arrived)], true), Handling::MadeClear);
    assert_eq!(Handling::new(&[arrival(sent)], true), Handling::PassedOn);
    assert_eq!(Handling::new(&[arrival(arrived), arrival(sent)], true), Handling::Split);
    assert_eq!(Handling::new(&[], true), Handling::Refused);
    assert_eq!(Handling::new(&[], false), Handling::Waits);
    assert_eq!(
        [arrived.to_vec(), sent.to_vec()].map(|one| arrival(&one).may_continue()),
        [false, true]
    );
}

/// Every HTTP/2 request has a unique name and consists of frames of stream 1, the last of which
/// ends it.
#[test]
fn every_downgrade_is_one_request_with_a_unique_name() {
    use dialogue::http2::{END_STREAM, FRAME_HEAD};
    let all = downgrades(Protocol::Http2).unwrap();
    for request in &all {
        assert_eq!(all.iter().filter(|other| other.name == request.name).count(), 1);
        let bytes = request.bytes(&values(), "A: b\r\n").unwrap();
        let (mut rest, mut flags) = (&bytes[..], 0);
        while !rest.is_empty() {
            let length = usize::from(rest[1]) << 8 | usize::from(rest[2]);
            assert_eq!((rest[0], &rest[5..FRAME_HEAD]), (0, &[0, 0, 0, 1][..]), "{}", request.name);
            flags = rest[4];
            rest = &rest[FRAME_HEAD + length..];
        }
        assert_eq!(flags & END_STREAM, END_STREAM, "{}", request.name);
        let plain = request.in_http1(&values(), "A: b\r\n").unwrap();
        assert!(framing::read(&plain).is_exact(plain.len()), "{}", request.name);
        assert_eq!(
            merge_difference(&[Arrival { bytes: plain, cut_off: false }]),
            None,
            "{}",
            request.name
        );
    }
}

/// Over HTTP/3 the same requests are complete on the first stream and have the same field bytes.
#[test]
fn every_downgrade_is_one_http3_stream() {
    let (all, framed) =
        (downgrades(Protocol::Http3).unwrap(), downgrades(Protocol::Http2).unwrap());
    assert_eq!(all.len(), framed.len());
    let shown = |payload: &[u8]| payload.escape_ascii().to_string();
    for request in &all {
        let bytes = request.bytes(&values(), "A: b\r\n").unwrap();
        let found = dialogue::http3::describe_pieces(&bytes, shown).unwrap();
        assert!(found.starts_with("stream 0, end of stream: \\x01"), "{}: {found}", request.name);
        assert!(request.has_frames() && found.contains(":path"), "{}: {found}", request.name);
    }
    let made = |name: &str| {
        let request = all.iter().find(|request| request.name == name).unwrap();
        dialogue::http3::describe_pieces(&request.bytes(&values(), "").unwrap(), shown).unwrap()
    };
    let odd = made("CR LF in a value");
    assert!(odd.contains(r"#x-a\x10b\r\nx-smuggled: 1"), "{odd}");
    assert!(made("a length that is too short").contains("abcdeGET /p HTTP/1.1"));
}

/// Delimiters in names and values are sent unchanged.
#[test]
fn http1_delimiters_stay_inside_one_field() {
    let all = downgrades(Protocol::Http2).unwrap();
    let made = |name: &str| {
        let request = all.iter().find(|request| request.name == name).unwrap();
        request.bytes(&values(), "").unwrap().escape_ascii().to_string()
    };
    assert!(made("CR LF in a value").contains(r"\x03x-a\x10b\r\nx-smuggled: 1"));
    assert!(made("a space in the method").contains(r"\x07:method\nGET /admin"));
    let shorter = made("a length that is too short");
    assert!(shorter.contains(r"\x0econtent-length\x015"), "{shorter}");
    assert!(
        shorter.ends_with(r"abcdeGET /p HTTP/1.1\r\nHost: h\r\nx-smuggled: 1\r\n\r\n"),
        "{shorter}"
    );
    assert!(made("a length that is too long").contains(r"\x0econtent-length\x0210"));
    // pseudo-header fields precede all others, except where this is tested
    assert!(made("a pseudo-header field after a regular field").ends_with(r"\x05:path\x02/p"));
}

#[test]
fn a_request_split_by_the_proxy_is_detected() {
    let mismatch_of = |arrived: &[&str]| {
        let all: Vec<Arrival> = arrived
            .iter()
            .map(|text| Arrival { bytes: text.as_bytes().to_vec(), cut_off: false })
            .collect();
        merge_difference(&all).unwrap_or_default()
    };
    let plain = "POST /q HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabcde";
    assert_eq!(mismatch_of(&[]), "");
    assert_eq!(mismatch_of(&[plain]), "");
    assert_eq!(mismatch_of(&[plain, plain]), "is 2 messages");
    let smuggled = plain.replace("Host", "X-Smuggled: 1\r\nHost");
    assert_eq!(mismatch_of(&[&smuggled]), "has a field that was part of another field");
    let words = plain.replace("/q", "/q HTTP/1.1 x");
    assert_eq!(mismatch_of(&[&words]), "begins with a request line of 5 words");
    assert_eq!(
        mismatch_of(&[&format!("{plain}GET / HTTP/1.1\r\n\r\n")]),
        "continues after its end, with 18 bytes of another request"
    );
    let more = plain.replace('5', "6");
    assert_eq!(mismatch_of(&[&more]), "declares more content than it has");
    // closing the connection cancels the message
    let cut = [Arrival { bytes: more.into_bytes(), cut_off: true }];
    assert_eq!((merge_difference(&cut), Handling::new(&cut, true)), (None, Handling::CutOff));
    // the field may occur in the content
    assert_eq!(mismatch_of(&[&plain.replace("5\r\n\r\nabcde", "10\r\n\r\nx-smuggled")]), "");
}
