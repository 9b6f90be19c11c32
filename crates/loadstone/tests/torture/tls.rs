//! TLS before HTTP: a server that refuses odd records, and one that waits for what will never come.

use crate::outcome;
use crate::support::run;
use crate::support::tls::{TlsOptions, TlsServer};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::thread;

/// In front of a TLS server: lets records of usual sizes through, and closes on others, or leaves
/// them without a word. Gives the port that it listens on.
fn front(behind: u16, mute: bool) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut left_alone = Vec::new();
        for client in listener.incoming().flatten() {
            let mut head = [0; 5];
            let seen = client.peek(&mut head).unwrap_or(0);
            let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
            let usual = seen == head.len() && head[0] == 0x16 && (100..16_384).contains(&length);
            match usual {
                true => relay(client, behind),
                false if mute => left_alone.push(client),
                false => client.shutdown(Shutdown::Both).unwrap_or(()),
            }
        }
    });
    port
}

/// Both ways, a thread each.
fn relay(client: TcpStream, behind: u16) {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, behind)).unwrap();
    let ways = [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)];
    for (mut from, mut to) in ways {
        thread::spawn(move || {
            let mut buffer = [0; 16_384];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                if to.write_all(&buffer[..count]).is_err() {
                    break;
                }
            }
            // the other side is told, whatever it makes of it
            to.shutdown(Shutdown::Write).unwrap_or(());
        });
    }
}

#[test]
fn odd_records_are_refused_or_wait_for_ever() {
    let server = TlsServer::start(&TlsOptions::default());
    for (mute, code, pieces, records) in
        [(false, 0, "advisory", "pass-alternative"), (true, 1, "fail", "fail")]
    {
        let url = format!("https://localhost:{}/", front(server.port(), mute));
        let only = ["torture", "--insecure", "--only", "T-02,T-05,T-06", "--json", "-", &url];
        let json = run(&only).expect(&[code]).json();
        assert_eq!(outcome(&json, "T-02"), pieces, "{json:#}");
        assert_eq!(outcome(&json, "T-05"), records, "{json:#}");
        assert_eq!(outcome(&json, "T-06"), "pass", "{json:#}");
    }
}
