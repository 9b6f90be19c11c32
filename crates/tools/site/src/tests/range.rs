//! The firing range over sockets: decisions of its state machine take effect on real connections.

use std::net::TcpStream;

use super::*;

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[test]
fn it_answers_as_in_simulations_and_counts() {
    let site = site(&[("range", "none")]);
    let page = ask(&site, last("GET /page"));
    assert!(page.ends_with(faulty::PAGE), "{page}");
    assert_eq!(first_line(&ask(&site, "GET /page HTTP/1.1\r\n\r\n")), "HTTP/1.1 400 Bad Request");
    let mut client = Client::new(&site);
    let half = client.send("GET /page HTTP/1.1\r\nHo");
    half.0.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.rest(), "");
    let served = site.stop().unwrap();
    assert_eq!((served.requests, served.connections), (2, 3));
}

#[test]
fn unread_data_waits_and_arrives_completely() {
    let site = site(&[("range", "none")]);
    let mut client = Client::new(&site);
    client.send(last("GET /big"));
    let mut first = [0; 12];
    client.0.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    // the server receives another request while 20 MiB wait
    assert_eq!(first_line(&ask(&site, last("HEAD /page"))), "HTTP/1.1 200 OK");
    let mut rest = Vec::new();
    client.0.read_to_end(&mut rest).unwrap();
    let head = rest.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    assert_eq!(rest.len() - head - 4, faulty::BIG_LEN);
}

#[test]
fn refusals_arrive_while_the_client_still_sends() {
    let body = faulty::BODY_MAX as usize + 1;
    let head = format!("POST /post HTTP/1.1\r\nHost: h\r\nContent-Length: {body}\r\n\r\n");
    for (switches, seen) in
        [("none", &["HTTP/1.1 413 Content Too Large"][..]), ("lost-error", &["", "[reset]"])]
    {
        let site = site(&[("range", switches)]);
        let mut client = Client::new(&site);
        client.send(&head);
        // may fail once the server has reset the connection
        client.0.write_all(&vec![b'x'; body]).ok();
        let text = client.rest();
        assert!(seen.contains(&first_line(&text)), "{switches}: {text}");
    }
}

/// Returns whether it serves now.
fn answers(site: &Site) -> bool {
    let Ok(mut stream) = TcpStream::connect(site.address().to_string()) else { return false };
    let mut text = String::new();
    stream.write_all(last("GET /page").as_bytes()).is_ok()
        && stream.read_to_string(&mut text).is_ok()
        && text.starts_with("HTTP/1.1 200 OK")
}

#[test]
fn a_crash_refuses_until_the_restart_and_a_death_ends_the_site() {
    let nul = || last("GET /page?%00");
    let crashing = site(&[("range", "crashes")]);
    assert_eq!(first_line(&ask(&crashing, nul())), "HTTP/1.1 200 OK");
    assert_eq!(first_line(&ask(&crashing, nul())), "HTTP/1.1 200 OK");
    let mut idle = Client::new(&crashing);
    assert_eq!(ask(&crashing, nul()), "[reset]");
    assert_eq!(idle.rest(), "[reset]");
    let end = std::time::Instant::now() + PATIENCE;
    while !answers(&crashing) {
        assert!(std::time::Instant::now() < end, "it never came back");
        std::thread::yield_now();
    }

    let dying = site(&[("range", "dies-on-nul")]);
    assert_eq!(ask(&dying, nul()), "[reset]");
    assert!(dying.wait(PATIENCE));
}

#[test]
fn contradictions_are_refused() {
    for options in [
        &[("range", "none"), ("delay", "1ms")][..],
        &[("range", "none"), ("null", "")],
        &[("range", "none"), ("listen", "unix:/tmp/nowhere.sock")],
        &[("range", "none"), ("threads", "2")],
    ] {
        assert!(Site::start(config(options)).is_err(), "{options:?}");
    }
    let error = Config::default().parse_option("range", "no-host,xx").unwrap_err();
    assert!(error.to_string().contains("\"xx\" is not a switch"), "{error}");
}
