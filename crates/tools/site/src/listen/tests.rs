use super::*;

#[test]
fn addresses_are_read_as_people_type_them() {
    let tcp = |text: &str| Listen::Tcp(text.to_owned());
    assert_eq!(Listen::parse("127.0.0.1:0").unwrap(), tcp("127.0.0.1:0"));
    assert_eq!(Listen::parse(" 2020 ").unwrap(), tcp("127.0.0.1:2020"));
    assert_eq!(Listen::parse(":2020").unwrap(), tcp("127.0.0.1:2020"));
    assert_eq!(Listen::parse("[::1]:80").unwrap(), tcp("[::1]:80"));
    assert_eq!(Listen::parse("localhost:80").unwrap(), tcp("localhost:80"));
    assert_eq!(Listen::parse("unix:/a b").unwrap(), Listen::Unix("/a b".into()));
}

#[test]
fn an_invalid_address_is_reported_with_the_fix() {
    for text in ["", "localhost", "127.0.0.1:65536", "127.0.0.1:", "::1:80", "unix:", "a:-1"] {
        let message = Listen::parse(text).unwrap_err().to_string();
        assert!(message.starts_with(&format!("{text:?} is not an address")), "{message}");
        assert!(message.contains("127.0.0.1:2020"), "{message}");
    }
}

#[test]
fn a_port_in_use_is_reported() {
    let (first, address) = Listener::bind(&Listen::parse("127.0.0.1:0").unwrap(), 16).unwrap();
    let again = Listen::parse(&address.to_string()).unwrap();
    let message = Listener::bind(&again, 16).unwrap_err().to_string();
    assert_eq!(
        message,
        format!(
            "cannot listen on {address}: the port is taken by another program; choose another, or \
             0 for a free one"
        )
    );
    assert!(first.is_tcp());
}

#[test]
fn an_address_of_another_machine_is_refused() {
    // 192.0.2.0/24 is reserved for documentation (RFC 5737)
    let message =
        Listener::bind(&Listen::parse("192.0.2.1:0").unwrap(), 16).unwrap_err().to_string();
    assert!(message.contains("no interface of this machine"), "{message}");
}

/// Linux queues one connection more than requested.
#[test]
fn a_unix_socket_keeps_its_backlog() {
    let path = std::env::temp_dir().join(format!("site-backlog-{}.sock", std::process::id()));
    let (_listener, _) = Listener::bind(&Listen::Unix(path.clone()), 2).unwrap();
    let waiting: Vec<Socket> = (0..10)
        .map_while(|_| {
            let client = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
            client.set_nonblocking(true).unwrap();
            client.connect(&socket2::SockAddr::unix(&path).unwrap()).ok().map(|()| client)
        })
        .collect();
    std::fs::remove_file(path).unwrap();
    assert_eq!(waiting.len(), 3);
}
