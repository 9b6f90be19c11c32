//! idleconn, distributed with httperf 0.9.0: idle connections that are kept open.

use crate::words::atoi;
use crate::{Ending, Reading};

/// Connections to keep open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idle {
    pub program: String,
    pub server: String,
    pub port: u16,
    pub connections: u32,
}

/// Maximum number of connections that one machine can hold.
const CONNECTIONS_MAX: i32 = 1_000_000;

/// Reads idleconn's command line.
pub fn read(program: &str, args: &[String]) -> Reading {
    let program = program.rsplit('/').next().unwrap_or(program);
    let [server, port, count] = args else {
        return Reading::End(Ending::error(format!("Usage: {program} server port numidle\n"), 255));
    };
    let (Ok(port), count @ 0..=CONNECTIONS_MAX) = (u16::try_from(atoi(port)), atoi(count)) else {
        let text =
            format!("{program}: {port} is not a port, or {count} is not a number of connections\n");
        return Reading::End(Ending::error(text, 255));
    };
    Reading::Idle(Idle {
        program: program.to_owned(),
        server: server.clone(),
        port,
        connections: count.unsigned_abs(),
    })
}

impl Idle {
    pub fn opening(&self) -> String {
        let Idle { program, connections, .. } = self;
        format!("{program}: creating and maintaining {connections} idle connections\n")
    }

    pub fn no_address(&self) -> Ending {
        let err = format!("{}: invalid server address {}\n", self.program, self.server);
        Ending { out: self.opening(), ..Ending::error(err, 255) }
    }

    /// Returns the final report. `created`: total of opened connections; `closed`: connections that
    /// the server closed.
    pub fn ending(&self, created: u64, closed: u64, seconds: f64) -> Ending {
        let rate = crate::httperf::general(closed as f64 / seconds.max(1e-9));
        let program = &self.program;
        Ending::text(format!(
            "{program}: total # conn. created = {created}, close() rate = {rate} conn/sec\n"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_and_texts_are_the_original_s() {
        let read = |line: &str| {
            let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            read("/usr/bin/idleconn", &args)
        };
        let Reading::Idle(idle) = read("www 80 30") else { panic!("a good command line") };
        assert_eq!(idle.opening(), "idleconn: creating and maintaining 30 idle connections\n");
        assert_eq!((idle.port, idle.connections), (80, 30));
        let over = idle.ending(35, 5, 2.0).out;
        assert_eq!(over, "idleconn: total # conn. created = 35, close() rate = 2.5 conn/sec\n");
        assert_eq!(idle.no_address().err, "idleconn: invalid server address www\n");
        for bad in ["", "www 80", "www 80 1 2", "www 99999 1", "www 80 -1"] {
            let Reading::End(ending) = read(bad) else { panic!("{bad} runs") };
            assert_eq!(ending.code, 255, "{bad}");
        }
    }
}
