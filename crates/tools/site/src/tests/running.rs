//! A site as a whole: its address, its counters, its end.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::*;
use crate::{AccessLog, Lateness, Listen};

#[derive(Clone, Default)]
struct Shown(Arc<Mutex<Vec<u8>>>);

impl Write for Shown {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Options that choose each engine, without changing a plain response.
const ENGINES: [&[(&str, &str)]; 2] = [&[], &[("delay", "0")]];

#[test]
fn the_counters_agree_with_the_client_and_the_log() {
    for options in ENGINES {
        let shown = Shown::default();
        let mut config = config(options);
        config.log = Some(AccessLog::with_writer(shown.clone()));
        let site = Site::start(config).unwrap();
        let (mut sent, mut received) = (0, 0);
        for _ in 0..3 {
            let mut client = Client::new(&site);
            for line in ["GET /bytes/1000", "GET /status/404", "HEAD /hw", "GET /bytes/x"] {
                sent += request(line).len() as u64;
                client.send(request(line));
            }
            let mut bytes = Vec::new();
            client.no_more_after(&last("GET /hw"), &mut bytes);
            sent += last("GET /hw").len() as u64;
            received += bytes.len() as u64;
        }
        let served = site.stop().unwrap();
        assert_eq!((served.connections, served.requests, served.unanswered), (3, 15, 0));
        let responses: Vec<(u16, u64)> = served.responses.into_iter().collect();
        assert_eq!(responses, [(200, 9), (400, 3), (404, 3)]);
        assert_eq!((served.bytes_received, served.bytes_sent), (sent, received), "{options:?}");
        let log = String::from_utf8(shown.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<&str> = log.lines().collect();
        assert_eq!((lines.len(), served.log_lines_lost), (15, 0));
        assert!(lines[0].starts_with("127.0.0.1 - - ["), "{log}");
        assert!(lines[0].ends_with("] \"GET /bytes/1000 HTTP/1.1\" 200 1000"), "{log}");
    }
}

impl Client {
    fn no_more_after(&mut self, text: &str, bytes: &mut Vec<u8>) {
        self.send(text).0.read_to_end(bytes).unwrap();
    }
}

#[test]
fn an_unwritable_log_is_reported() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut config = config(&[]);
    config.log = Some(AccessLog::with_writer(Full));
    let site = Site::start(config).unwrap();
    assert!(ask(&site, last("GET /hw")).ends_with("hello world"));
    assert!(site.stop().unwrap().log_lines_lost > 0);
}

#[test]
fn stopping_closes_the_port_and_connections() {
    for options in [ENGINES[0], ENGINES[1], &[("null", "")], &[("threads", "2")]] {
        let site = site(options);
        let address = site.address().to_string();
        assert_eq!(site.url(), format!("http://{address}"));
        let mut client = Client::new(&site);
        client.send(request("GET /hw")).response(false);
        let served = site.stop().unwrap();
        assert_eq!((served.requests, served.answered()), (1, 1), "{options:?}");
        assert_eq!(client.rest(), "", "{options:?}");
        assert_eq!(
            TcpStream::connect(&address).unwrap_err().kind(),
            io::ErrorKind::ConnectionRefused,
            "{options:?}"
        );
    }
}

#[test]
fn dropping_a_site_stops_it_while_a_request_sleeps() {
    let site = site(&[]);
    let mut client = Client::new(&site);
    client.send(request("GET /sleep?3600"));
    drop(site);
    assert!(["", "[reset]"].contains(&client.rest().as_str()));
}

#[test]
fn a_unix_socket_serves_and_its_path_is_cleaned_up() {
    for (index, options) in ENGINES.into_iter().enumerate() {
        let name = format!("site-{}-{index}.sock", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut config = config(options);
        config.listen = Listen::Unix(path.clone());
        let site = Site::start(config.clone()).unwrap();
        assert_eq!(site.url(), format!("unix:{}", path.display()));
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(last("GET /hw").as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.ends_with("hello world"), "{text}");
        let message = Site::start(config.clone()).unwrap_err().to_string();
        assert!(message.contains("another program listens there"), "{message}");
        drop(site);
        assert!(!path.exists());
        // files of a killed process do not prevent a start
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        drop(Site::start(config).unwrap());
        std::fs::write(&path, "precious").unwrap();
        let taken = Site::start(Config { listen: Listen::Unix(path.clone()), ..Config::default() });
        assert!(taken.unwrap_err().to_string().contains("the path is a file that is not a socket"));
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn sleeping_requests_are_serialized_by_default() {
    let serial = site(&[("threads", "2")]);
    let begin = Instant::now();
    let mut clients: Vec<Client> = (0..3).map(|_| Client::new(&serial)).collect();
    for client in &mut clients {
        client.send(last("GET /sleep?20ms"));
    }
    for client in &mut clients {
        assert!(client.rest().ends_with("Slept for 0.02 seconds"));
    }
    assert!(begin.elapsed() >= Duration::from_millis(60));

    // one hour's sleep does not delay another response
    let parallel = site(&[("sleep-parallel", "")]);
    let mut long = Client::new(&parallel);
    long.send(request("GET /sleep?3600"));
    assert!(ask(&parallel, last("GET /sleep?1ms")).ends_with("Slept for 0.001 seconds"));
}

#[test]
fn connections_beyond_the_maximum_wait_their_turn() {
    for options in ENGINES {
        let site = site(&[options, &[("connections-max", "1")]].concat());
        let mut first = Client::new(&site);
        let mut second = Client::new(&site);
        second.send(last("GET /bytes/3"));
        assert!(first.send(last("GET /hw")).rest().ends_with("hello world"));
        drop(first);
        assert!(second.rest().ends_with("\n\n012"), "{options:?}");
        drop(second);
        assert_eq!(site.stop().unwrap().connections, 2);
    }
}

#[test]
fn impossible_settings_are_refused_at_the_start() {
    let taken = site(&[]);
    let mut again = config(&[]);
    again.listen = Listen::parse(&taken.address().to_string()).unwrap();
    let message = Site::start(again).unwrap_err().to_string();
    assert!(message.contains("the port is taken by another program"), "{message}");
    let message = Site::start(config(&[("cpus", "1023")])).unwrap_err().to_string();
    assert!(message.contains("cannot run on CPUs [1023]"), "{message}");
    let none = Config { threads: 0, ..config(&[]) };
    assert!(Site::start(none).unwrap_err().to_string().contains("--threads must be 1–64"));
    let cpus = Config { cpus: vec![u32::MAX], ..config(&[]) };
    assert!(Site::start(cpus).is_err());
}

#[test]
fn threads_run_on_their_cpus() {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu = (0..1024).find(|cpu| allowed.is_set(*cpu)).unwrap();
    let site = site(&[("cpus", &cpu.to_string()), ("threads", "2")]);
    assert!(ask(&site, last("GET /hw")).ends_with("hello world"));
    // the caller's thread is not bound along with them
    assert_eq!(rustix::thread::sched_getaffinity(None).unwrap(), allowed);
}

#[test]
fn the_null_server_answers_anything_in_order() {
    let site = site(&[("null", ""), ("threads", "2")]);
    let response = "HTTP/1.1 200 OK\nServer: null\nDate: *\nContent-Type: text/plain\n\
                  Content-Length: 13\nConnection: keep-alive\n\nHello, world!";
    let mut client = Client::new(&site);
    assert_eq!(client.send(request("GET /any")).response(false), response);
    assert_eq!(client.send("no HTTP\r\n\r\n").response(false), response);
    client.send("\r\n").send("\r").send("\n").response(false);
    // more than a batch, and more than the socket holds
    let many = 20_000;
    let mut writer = client.0.try_clone().unwrap();
    let sender = std::thread::spawn(move || {
        writer.write_all("\r\n\r\n".repeat(many).as_bytes()).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let rest = client.rest();
    sender.join().unwrap();
    assert!(rest == response.repeat(many), "{} bytes", rest.len());
    assert_eq!(site.lateness(), Lateness::default());
    let served = site.stop().unwrap();
    assert_eq!((served.requests, served.responses[&200]), (20_003, 20_003));
}

#[test]
fn an_idle_site_can_be_waited_for() {
    let site = site(&[]);
    assert!(!site.wait(Duration::ZERO));
}
