use super::*;
use crate::framing;
use dialogue::text::Values;

fn values() -> Values {
    Values { path: "/p".into(), host: "h".into(), post: "/q".into(), ..Values::default() }
}

#[test]
fn every_request_is_one_of_its_name_and_most_can_be_misread() {
    let all = requests().unwrap();
    let mut told = String::new();
    for request in &all {
        let bytes = request.bytes(&values(), "A: b\r\n").unwrap();
        let reading = framing::read(&bytes);
        let faults: Vec<&str> = reading.faults.iter().map(|fault| fault.text()).collect();
        let whole = if reading.is_exact(bytes.len()) { "clear" } else { "not clear" };
        told.push_str(
            format!("{}: {}: {whole}; {}", request.class.id(), request.name, faults.join(", "))
                .trim_end_matches("; "),
        );
        told.push('\n');
        assert_eq!(all.iter().filter(|other| other.name == request.name).count(), 1);
    }
    insta::assert_snapshot!(told);
}

#[test]
fn lengths_cover_what_they_say() {
    let all = requests().unwrap();
    let made = |name: &str| {
        let request = all.iter().find(|request| request.name == name).unwrap();
        request.bytes(&values(), "").unwrap().escape_ascii().to_string()
    };
    assert_eq!(
        made("both lengths, the length is longer"),
        r"POST /q HTTP/1.1\r\nHost: h\r\nContent-Length: 33\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /p HTTP/1.1\r\nHost: h\r\n\r\n"
    );
    assert_eq!(
        made("both lengths, the chunks are longer"),
        r"POST /q HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n1c\r\nGET /p HTTP/1.1\r\nHost: h\r\n\r\n\r\n0\r\n\r\n"
    );
}

#[test]
fn what_a_proxy_changed_is_told() {
    let sent =
        b"POST /q HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n\
                 3;a\r\nabc\r\n0\r\n\r\n";
    let arrived =
        b"POST /q HTTP/1.0\r\nHost: i\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc";
    assert_eq!(
        changes(sent, arrived),
        [
            "the first line is POST /q HTTP/1.0",
            "framed by Content-Length 3 in place of chunked",
            "added: connection",
            "removed: transfer-encoding",
            "changed: content-length, host",
            "both lengths is gone",
            "extensions are gone",
        ]
    );
    assert!(changes(sent, sent).is_empty());
    let arrival = |bytes: &[u8]| Arrival { bytes: bytes.to_vec() };
    assert_eq!(Handling::of(&[arrival(arrived)], true), Handling::MadeClear);
    assert_eq!(Handling::of(&[arrival(sent)], true), Handling::PassedOn);
    assert_eq!(Handling::of(&[arrival(arrived), arrival(sent)], true), Handling::Split);
    assert_eq!(Handling::of(&[], true), Handling::Refused);
    assert_eq!(Handling::of(&[], false), Handling::Waits);
    assert_eq!(
        [arrived.to_vec(), sent.to_vec()].map(|one| arrival(&one).may_go_on()),
        [false, true]
    );
}
