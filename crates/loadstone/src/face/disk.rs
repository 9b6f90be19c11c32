//! Files named by a tool's arguments.

use crate::caller::Caller;
use engine::exchange::{Caller as _, Message, Outgoing};
use faces::{FOLDER_FILES_MAX, FileReader, Files, PageRequest, Reference, SystemError};
use protocol::http1::response::Asked;
use session::console::{stdin, variable, variables};
use session::{Env, Session};
use std::io::Read;
use std::net::IpAddr;
use std::sync::Arc;
use units::Nanos;

/// The file system; `-` is an ordinary file name.
pub(super) struct Disk;

/// Maximum number of bytes read: they are held in memory.
const BYTES_MAX: u64 = 1 << 30;
/// Time limit of a connection to a page.
const CONNECT: Nanos = Nanos::from_secs(5);

impl Files for Disk {
    fn read(&self, path: &str) -> Result<Vec<u8>, SystemError> {
        let mut bytes = Vec::new();
        std::fs::File::open(path)
            .and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes))
            .map_err(|error| system_error(&error))?;
        if bytes.len() as u64 > BYTES_MAX {
            return Err(SystemError { number: 27, text: "File too large".to_owned() });
        }
        Ok(bytes)
    }

    fn read_folder(&self, path: &str) -> Result<Vec<Vec<u8>>, SystemError> {
        let fault = |error: std::io::Error| system_error(&error);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path).map_err(fault)?.take(FOLDER_FILES_MAX) {
            let path = entry.map_err(fault)?.path();
            // a link may lead to a plain file
            if std::fs::metadata(&path).is_ok_and(|facts| facts.is_file()) {
                names.push(path);
            }
        }
        names.sort();
        names.iter().map(|path| self.read(&path.to_string_lossy())).collect()
    }

    fn read_input(&self) -> Result<Vec<u8>, SystemError> {
        let mut bytes = Vec::new();
        stdin()
            .take(BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| system_error(&error))?;
        if bytes.len() as u64 > BYTES_MAX {
            return Err(SystemError { number: 27, text: "File too large".to_owned() });
        }
        Ok(bytes)
    }

    fn now(&self) -> faces::Date {
        faces::Date {
            at: net::reactor::monotonic(),
            unix_s: crate::wall_clock::unix_seconds(),
            utc_offset_s: crate::wall_clock::utc_offset_s(),
        }
    }

    fn cores(&self) -> u64 {
        std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64)
    }

    fn resolve(&self, host: &str) -> Result<IpAddr, String> {
        let found = host::resolve(host, 1, host::Family::Any).map_err(|error| error.to_string())?;
        let first = found.0.first().ok_or_else(|| format!("{host} has no address"))?;
        Ok(first.ip())
    }

    fn look_at(&self, page: &PageRequest<'_>) -> Result<Vec<Reference>, String> {
        let tls = page.tls;
        let settings = net::tls::Settings {
            insecure: tls.insecure,
            ca: tls.ca.clone(),
            cert: tls.cert.clone(),
            key: tls.key.clone(),
            ..net::tls::Settings::default()
        };
        let outgoing = Outgoing {
            url: page.url.clone(),
            message: Message::Http1 { bytes: page.request.to_vec(), asked: Asked::Ordinary },
            timeout: page.timeout,
            negotiates: false,
        };
        let mut heard = Caller::new(CONNECT, settings)?.exchange(vec![outgoing]);
        let heard = heard.pop().ok_or("no response")?;
        let reply = heard.result.map_err(|trouble| trouble.text)?;
        let found = workload::links(&reply.body, page.url).into_iter();
        Ok(found.map(|link| Reference { element: link.element, url: link.url }).collect())
    }

    fn describe(&self, plan: &plan::Plan) -> Result<Vec<u8>, String> {
        let env = Arc::new(Env::without_calibration());
        let mut session = Session::open(plan, "", &env).map_err(|error| format!("{error:#}"))?;
        session.describe_grpc().map_err(|failure| failure.text)
    }

    fn process_id(&self) -> u32 {
        std::process::id()
    }

    fn variable(&self, name: &str) -> Option<String> {
        variable(name).map(|value| value.to_string_lossy().into_owned())
    }

    fn variables(&self) -> Vec<(String, String)> {
        let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        variables().into_iter().map(|(name, value)| (lossy(name), lossy(value))).collect()
    }

    fn reader(&self) -> FileReader {
        Box::new(|path| Disk.read(path).map_err(|error| error.text))
    }
}

pub(super) fn system_error(error: &std::io::Error) -> SystemError {
    SystemError { number: error.raw_os_error().unwrap_or(5), text: sentence(error) }
}

/// Returns the C library's message, without the number that the standard library adds.
pub(super) fn sentence(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" (os error ").map_or(text.clone(), |(sentence, _)| sentence.to_owned())
}
