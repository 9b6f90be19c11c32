//! TXT records, which the operating system's resolver does not return: a question to the name
//! servers of /etc/resolv.conf, by UDP, and by TCP where the answer is too long for that.

use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, TYPE};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// Time limit for each try.
const WAIT: Duration = Duration::from_secs(3);
/// Tries of each name server.
const TRIES: usize = 2;
/// Maximum number of name servers queried, as by the C library (resolv.conf(5)).
const SERVERS_MAX: usize = 3;
/// Maximum number of records read from an answer.
const RECORDS_MAX: usize = 64;
const UDP_MAX: usize = 4_096;
const PORT: u16 = 53;

/// Returns the TXT records of a name, the strings of each concatenated; an empty result is not an
/// error.
///
/// # Errors
/// Fails with the name servers' error, or if none of them answered.
pub fn txt(name: &str) -> Result<Vec<Vec<u8>>, String> {
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let servers: Vec<SocketAddr> =
        servers(&text).into_iter().map(|address| SocketAddr::new(address, PORT)).collect();
    txt_from(name, &servers)
}

/// Like [`txt`], from name servers chosen by the caller.
///
/// # Errors
/// Fails like [`txt`].
pub fn txt_from(name: &str, servers: &[SocketAddr]) -> Result<Vec<Vec<u8>>, String> {
    let mut trouble = "no name server is configured".to_owned();
    for server in servers.iter().take(SERVERS_MAX) {
        for _ in 0..TRIES {
            match query_server(name, *server) {
                Ok(found) => return found,
                Err(error) => trouble = format!("the name server {server} did not answer: {error}"),
            }
        }
    }
    Err(trouble)
}

/// Returns the configured name servers, or this machine if there are none.
fn servers(text: &str) -> Vec<IpAddr> {
    let named = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next()?.parse().ok())?
    });
    let found: Vec<IpAddr> = named.collect();
    if found.is_empty() { vec![Ipv4Addr::LOCALHOST.into()] } else { found }
}

type TxtRecords = Result<Vec<Vec<u8>>, String>;

fn query_server(name: &str, server: SocketAddr) -> io::Result<TxtRecords> {
    let (id, question) = question(name)?;
    let reply = by_udp(server, &question, id)?;
    let cut = Packet::parse(&reply).is_ok_and(|packet| packet.has_flags(PacketFlag::TRUNCATION));
    let reply = if cut { by_tcp(server, &question)? } else { reply };
    understand(&reply, id)
}

fn question(name: &str) -> io::Result<(u16, Vec<u8>)> {
    let wrong = |error: simple_dns::SimpleDnsError| io::Error::other(error.to_string());
    let mut id = [0; 2];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut id)?;
    let id = u16::from_be_bytes(id);
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let name = Name::new(name).map_err(wrong)?;
    let (kind, class) = (QTYPE::TYPE(TYPE::TXT), QCLASS::CLASS(CLASS::IN));
    packet.questions.push(Question::new(name, kind, class, false));
    Ok((id, packet.build_bytes_vec().map_err(wrong)?))
}

fn by_udp(server: SocketAddr, question: &[u8], id: u16) -> io::Result<Vec<u8>> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(WAIT))?;
    socket.send(question)?;
    let mut buffer = vec![0; UDP_MAX];
    // a message with another id is not the reply to this question
    for _ in 0..RECORDS_MAX {
        let count = socket.recv(&mut buffer)?;
        if buffer[..count].get(..2) == Some(&id.to_be_bytes()) {
            buffer.truncate(count);
            return Ok(buffer);
        }
    }
    Err(io::Error::other("answers to queries that were not sent"))
}

fn by_tcp(server: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&server, WAIT)?;
    stream.set_read_timeout(Some(WAIT))?;
    stream.set_write_timeout(Some(WAIT))?;
    let length = u16::try_from(question.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), question].concat())?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut reply = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut reply)?;
    Ok(reply)
}

fn understand(reply: &[u8], id: u16) -> io::Result<TxtRecords> {
    let packet = Packet::parse(reply).map_err(|error| io::Error::other(error.to_string()))?;
    if packet.id() != id || !packet.has_flags(PacketFlag::RESPONSE) {
        return Err(io::Error::other("it does not answer the query"));
    }
    match packet.rcode() {
        RCODE::NoError | RCODE::NameError => {}
        other => return Ok(Err(format!("the name server answered {other:?}"))),
    }
    let records = packet.answers.iter().filter_map(|record| match &record.rdata {
        // a proof is ASCII: anything that is not UTF-8 is not a proof
        RData::TXT(text) => String::try_from(text.clone()).ok().map(String::into_bytes),
        _ => None,
    });
    Ok(Ok(records.take(RECORDS_MAX).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use simple_dns::ResourceRecord;
    use simple_dns::rdata::TXT;
    use std::net::TcpListener;
    use std::thread;

    #[test]
    fn name_servers_are_read() {
        let text = "# x\nsearch a\nnameserver 192.0.2.1\nnameserver ::1\nnameserver fe80::1%eth0\n";
        assert_eq!(servers(text), ["192.0.2.1", "::1"].map(|at| at.parse::<IpAddr>().unwrap()));
        assert_eq!(servers(""), ["127.0.0.1".parse::<IpAddr>().unwrap()]);
    }

    /// Returns an answer to a question, in pieces of 200 bytes, with these flags and this code.
    fn answer(question: &[u8], records: &[String], flags: PacketFlag, code: RCODE) -> Vec<u8> {
        let asked = Packet::parse(question).unwrap();
        let mut packet = Packet::new_reply(asked.id());
        packet.set_flags(flags);
        *packet.rcode_mut() = code;
        for text in records {
            let mut record = TXT::new();
            for piece in text.as_bytes().chunks(200) {
                record.add_string(std::str::from_utf8(piece).unwrap()).unwrap();
            }
            let name = asked.questions[0].qname.clone();
            packet.answers.push(ResourceRecord::new(name, CLASS::IN, 60, RData::TXT(record)));
        }
        packet.build_bytes_vec().unwrap()
    }

    /// Starts a name server for `count` questions, on loopback; returns its address.
    fn serve(count: usize, reply: impl Fn(&[u8]) -> Vec<u8> + Send + 'static) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        thread::spawn(move || {
            for _ in 0..count {
                let mut buffer = [0; 512];
                let (count, from) = socket.recv_from(&mut buffer).unwrap();
                socket.send_to(&reply(&buffer[..count]), from).unwrap();
            }
        });
        address
    }

    #[test]
    fn records_are_complete() {
        let long = "loadstone ".repeat(60);
        let (none, ok) = (PacketFlag::empty(), RCODE::NoError);
        let records = vec!["v=spf1 -all".to_owned(), long.clone()];
        let server = serve(1, move |asked| answer(asked, &records, none, ok));
        let found = txt_from("_loadstone-torture.example.org", &[server]).unwrap();
        assert_eq!(found, [b"v=spf1 -all".to_vec(), long.into_bytes()]);
    }

    #[test]
    fn the_name_servers_error_is_reported() {
        let none = PacketFlag::empty();
        let server = serve(1, move |asked| answer(asked, &[], none, RCODE::NameError));
        assert_eq!(txt_from("no.example.org", &[server]), Ok(Vec::new()));
        let server = serve(1, move |asked| answer(asked, &[], none, RCODE::Refused));
        let error = txt_from("no.example.org", &[server]).unwrap_err();
        assert!(error.contains("the name server answered Refused"), "{error}");
        let error = txt_from("no.example.org", &[]).unwrap_err();
        assert!(error.contains("no name server is configured"), "{error}");
        let error = txt_from(&"a".repeat(300), &[server]).unwrap_err();
        assert!(error.contains("did not answer"), "{error}");
    }

    #[test]
    fn a_long_answer_uses_tcp() {
        let of_both = || {
            let stream = TcpListener::bind("127.0.0.1:0").ok()?;
            let socket = UdpSocket::bind(stream.local_addr().ok()?).ok()?;
            Some((stream, socket))
        };
        let (stream, socket) =
            (0..50).find_map(|_| of_both()).expect("a port that is free in both");
        let address = stream.local_addr().unwrap();
        thread::spawn(move || {
            let mut buffer = [0; 512];
            let (count, from) = socket.recv_from(&mut buffer).unwrap();
            let cut = answer(&buffer[..count], &[], PacketFlag::TRUNCATION, RCODE::NoError);
            socket.send_to(&cut, from).unwrap();
            let (mut peer, _) = stream.accept().unwrap();
            let mut length = [0; 2];
            peer.read_exact(&mut length).unwrap();
            let mut asked = vec![0; usize::from(u16::from_be_bytes(length))];
            peer.read_exact(&mut asked).unwrap();
            let whole = answer(&asked, &["long".into()], PacketFlag::empty(), RCODE::NoError);
            let length = u16::try_from(whole.len()).unwrap().to_be_bytes();
            peer.write_all(&[&length[..], &whole].concat()).unwrap();
        });
        assert_eq!(txt_from("example.org", &[address]), Ok(vec![b"long".to_vec()]));
    }
}
