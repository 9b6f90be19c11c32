//! `loadstone torture shrink`: finds the fewest bytes of a recorded failure that fail in the same
//! way.

use super::print;
use super::scene;
use crate::exit::{Code, Failure};
use crate::files;
use args::ShrinkArgs;
use campaign::shrink::Budget;
use campaign::{CampaignEvent, Settings, Watcher, Watchers, World};
use report::torture::shrunk_text;
use std::path::Path;
use torture::case::Case;
use torture::judge::Plain;
use torture::record;
use torture::record::Execution;
use torture::record::{Run, Transcript};
use torture::result::{AFTER, Shrunk, is_accused};
use torture::safety::Class;
use world::evidence::{self, Kept};

/// # Errors
/// Fails for evidence that cannot be read or written, a server that may not be tested, or a
/// third-party server.
pub(super) fn shrink(args: &ShrinkArgs, cases: &[Case]) -> Result<Code, Failure> {
    let folders = evidence::folders(&args.again.folder)?;
    let mut kept = evidence::read(&folders, cases)?;
    kept.retain(is_random);
    if kept.is_empty() {
        return Err(Failure {
            code: Code::NoConnection,
            text: "nothing to shrink: only random data is shrunk; the other cases are already \
                minimal"
                .to_owned(),
        });
    }
    let mut scene = scene::scene(&args.again, &kept)?;
    let url = &scene.url;
    if !matches!(scene.reached.class, Class::Local | Class::Private) {
        return Err(Failure::usage(format!(
            "{url} is not local: shrinking sends failing data many times, which is not allowed \
            on public servers"
        )));
    }
    let search = Some(Budget { executions: args.executions, span: args.time });
    let settings = Settings { search, ..Settings::default() };
    let zero_unix_ns = (crate::wall_clock::unix_seconds() * 1e9) as u64;
    let mut writer = Writer {
        run: Run {
            loadstone: env!("CARGO_PKG_VERSION").to_owned(),
            target: url.to_string(),
            zero_unix_ns: zero_unix_ns.saturating_sub(scene.sockets.now().0),
            plain: Plain::default(),
        },
        kept: &kept,
        done: Ok(()),
    };
    let failures: Vec<campaign::Failure> = kept.iter().map(|one| one.failure.clone()).collect();
    let mut log = scene.writer();
    let mut watchers = Watchers(vec![&mut writer]);
    watchers.0.extend(log.iter_mut().map(|one| one as &mut dyn Watcher));
    let (target, sockets) = (&scene.reached.target, &mut scene.sockets);
    let found = campaign::shrink_failures(target, &settings, &failures, sockets, &mut watchers);
    drop(watchers);
    let code = match &found {
        _ if crate::signals::received_signal() > 0 => Code::Interrupted,
        Ok(found) if found.iter().any(Option::is_some) => Code::Done,
        _ => Code::NoConnection,
    };
    scene.end(found.as_ref().err().cloned(), code);
    let found = found.map_err(|text| Failure { code: Code::NoConnection, text })?;
    let written = writer.done.map_err(|error| Failure::not_written(&error));
    let names: Vec<String> = kept
        .iter()
        .map(|one| one.folder.file_name().unwrap_or_default().to_string_lossy().into_owned())
        .collect();
    print(&shrunk_text(&names, &found))?;
    written?;
    Ok(code)
}

/// Returns whether it is random data or the suspected cause of a server failure. Findings of memory
/// growth are excluded, because shrinking would repeat them too often.
fn is_random(kept: &Kept) -> bool {
    let name = &kept.failure.transcript.name;
    let is_random = kept.failure.case.fuzz.is_some() || is_accused(name);
    is_random && !name.starts_with(AFTER)
}

/// Writes the shrunk form into the folder of the failure.
struct Writer<'k> {
    run: Run,
    kept: &'k [Kept],
    done: anyhow::Result<()>,
}

impl Watcher for Writer<'_> {
    fn observe(&mut self, event: CampaignEvent<'_>) {
        match event {
            CampaignEvent::Ready(plain) => self.run.plain = plain.clone(),
            CampaignEvent::FailureShrunk { shrunk, execution } => self.keep(shrunk, execution),
            _ => {}
        }
    }
}

impl Writer<'_> {
    fn keep(&mut self, shrunk: &Shrunk, execution: &Execution<'_>) {
        let own = |one: &&Kept| {
            let transcript = &one.failure.transcript;
            transcript.case == shrunk.case && transcript.name == shrunk.name
        };
        let Some(kept) = self.kept.iter().find(own) else { return };
        if self.done.is_ok() {
            let transcript = record::write(&Transcript::new(&self.run, execution));
            self.done = write(&kept.folder, &transcript, &shrunk.bytes());
        }
    }
}

fn write(folder: &Path, transcript: &str, bytes: &[u8]) -> anyhow::Result<()> {
    files::write_whole(&folder.join("shrunk.lsw"), transcript)?;
    host::state::store_atomic(&folder.join("shrunk.bin"), bytes)?;
    Ok(())
}
