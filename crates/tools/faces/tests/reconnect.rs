//! A tool that reconnects at once does so here too: an added pause would change its throughput.

use faces::{Files, Reading, SystemError, Tool, read};
use units::Nanos;

/// Machine without files.
struct Bare;

impl Files for Bare {
    fn read(&self, _path: &str) -> Result<Vec<u8>, SystemError> {
        Err(SystemError { number: 2, text: "No such file or directory".into() })
    }
}

#[test]
fn ab_siege_and_wrk_reconnect_at_once() {
    for (tool, args) in [
        (Tool::Ab, vec!["-n", "10", "-c", "2"]),
        (Tool::Siege, vec!["-b", "-c2", "-r5"]),
        (Tool::Wrk, vec!["-t1", "-c2", "-d1"]),
    ] {
        let args: Vec<String> =
            args.into_iter().chain(["http://127.0.0.1:1/"]).map(str::to_owned).collect();
        match read(tool, tool.name(), &args, &Bare) {
            Reading::Run(job) => {
                let pause = job.plan.connection.reconnect_pause;
                assert_eq!(pause, Nanos::ZERO, "{}", tool.name());
            }
            other => panic!("{} runs nothing: {other:?}", tool.name()),
        }
    }
}
