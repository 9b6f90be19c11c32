//! The truth table: `loadstone torture` against real servers with known behavior. Each server has a
//! file in `xtask/truths`; results go to `docs/truths.md`, each difference with its reason.

mod rows;
mod subject;

use crate::{packages, shell};
use anyhow::{Context, bail};
use rows::{From, Row, Verdict};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
pub(crate) use subject::Subject;

/// The page that is written.
const PAGE: &str = "docs/truths.md";
/// Runs without a defect before all servers are run.
const CLEAN_RUNS: u32 = 100;
/// Folder of the subjects' files.
const FOLDER: &str = "xtask/truths";
/// Cases that stress the server: one server at a time.
const PRESSING: [&str; 4] = ["W-1", "C-01", "C-07", "R-"];
/// Case name in rows of a proxy.
const CHAIN: &str = "chain";
/// Groups of cases that end within seconds, which continuous integration runs.
const QUICK: [&str; 5] = ["F-", "S-", "K-", "L-", "C-04"];

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only these servers, by the beginning of their names; the page's other sections stay
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    only: Vec<String>,
    /// Only what ends soon, of the servers of continuous integration; the page is not written
    #[arg(long)]
    ci: bool,
    /// Number of first runs against the faulty server without a fault, none of which may report a
    /// finding: 100 by default, and none with --only or --ci
    #[arg(long, value_name = "N")]
    clean: Option<u32>,
    /// Run through this emulated path, as root: a difference is then a false alarm; proxied servers
    /// are tested directly, and the page is not written
    #[arg(long, value_name = "PATH", conflicts_with = "ci")]
    path: Option<String>,
    /// The program, instead of building it
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

impl Options {
    /// As in continuous integration, with this program.
    pub(crate) fn ci(binary: PathBuf) -> Options {
        Options { only: Vec::new(), ci: true, clean: None, path: None, binary: Some(binary) }
    }
}

/// A server's rows.
#[derive(Debug)]
struct Table {
    /// Name of the server and a space: the beginning of its heading, before the version.
    name: String,
    title: String,
    model: String,
    rows: Vec<Row>,
    /// Reason why there are none.
    trouble: Option<String>,
}

/// Runs `cargo xtask truths`.
///
/// # Errors
/// Fails if a row differs without an explanation, a clean run found something, or a server does not
/// start.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    let binary = binary(root, options)?;
    let usual = if options.only.is_empty() && !options.ci { CLEAN_RUNS } else { 0 };
    let tool = Tool { binary: &binary, path: options.path.as_deref(), quick: options.ci };
    tool.clean(options.clean.unwrap_or(usual))?;
    let mut subjects = Subject::read_all(&root.join(FOLDER))?;
    let wanted = |subject: &Subject| {
        let name = subject.name.to_lowercase();
        options.only.is_empty()
            || options.only.iter().any(|one| name.starts_with(&one.to_lowercase()))
    };
    subjects.retain(|subject| wanted(subject) && (subject.ci || !options.ci));
    let needs: Vec<(&str, &str)> =
        subjects.iter().map(|one| (one.program.as_str(), one.package.as_str())).collect();
    if let Err(error) = packages::install_these(&needs) {
        println!("truths: {error:#}");
    }
    let known = known_cases(&binary)?;
    let tables = tables(&subjects, &tool, &known);
    if options.ci || options.path.is_some() {
        println!("{}", page(&tables.iter().map(section).collect::<Vec<String>>()));
    } else {
        let file = root.join(PAGE);
        let before = std::fs::read_to_string(&file).unwrap_or_default();
        let sections = merged(&before, &tables);
        std::fs::write(&file, page(&sections)).with_context(|| file.display().to_string())?;
    }
    finish(&tables)
}

/// Returns the previous page's sections, with these tables replaced.
fn merged(before: &str, tables: &[Table]) -> Vec<String> {
    let own = |section: &str| tables.iter().any(|table| section.starts_with(&table.name));
    let kept = before.split("\n## ").skip(1).filter(|section| !own(section));
    let mut sections: Vec<String> =
        kept.map(|section| format!("\n## {}\n", section.trim_end())).collect();
    sections.extend(tables.iter().map(section));
    sections.sort();
    sections
}

fn finish(tables: &[Table]) -> anyhow::Result<()> {
    let rows = || tables.iter().flat_map(|table| &table.rows);
    let count = |verdict: &Verdict| rows().filter(|row| row.verdict == *verdict).count();
    let unexplained = count(&Verdict::Unexplained);
    println!(
        "truths: {} rows: {} agree, {} differ and are explained, {unexplained} differ without \
         explanation, {} inconclusive, {} not tested",
        rows().count(),
        count(&Verdict::Agrees),
        rows().filter(|row| matches!(row.verdict, Verdict::Explained(_))).count(),
        count(&Verdict::Inconclusive),
        count(&Verdict::NotTested)
    );
    let troubled: Vec<&str> = tables
        .iter()
        .filter(|table| table.trouble.is_some())
        .map(|table| table.title.as_str())
        .collect();
    match (unexplained, troubled.as_slice()) {
        (0, []) if count(&Verdict::Inconclusive) == 0 => Ok(()),
        (0, []) => {
            let text = "truths: some rows are inconclusive; run them again on a quieter machine";
            Err(shell::Missing(text.to_owned()).into())
        }
        (0, some) => bail!("not tested: {}", some.join(", ")),
        (count, _) => bail!("{count} rows differ without an explanation"),
    }
}

fn binary(root: &Path, options: &Options) -> anyhow::Result<PathBuf> {
    if let Some(binary) = &options.binary {
        return Ok(binary.clone());
    }
    let mut cargo = shell::cargo();
    shell::run(cargo.current_dir(root).args(["build", "--package", "loadstone"]))?;
    Ok(shell::target_folder(root).join("debug/loadstone"))
}

/// Torture parameters for the servers.
#[derive(Clone, Copy, Debug)]
struct Tool<'a> {
    binary: &'a Path,
    /// The emulated path of the cases.
    path: Option<&'a str>,
    /// Runs only cases that end soon.
    quick: bool,
}

impl Tool<'_> {
    /// Returns a command for a torture run, through the path if there is one.
    fn torture(&self) -> Command {
        let mut torture = Command::new(self.binary);
        torture.args(["torture", "--store", "none"]);
        torture.args(self.path.iter().flat_map(|path| ["--path", path]));
        torture.stdin(Stdio::null());
        torture
    }

    /// Runs the faulty server without a fault this many times.
    fn clean(&self, times: u32) -> anyhow::Result<()> {
        for round in 1..=times {
            let range = subject::range();
            let running = range.start(self.binary)?;
            let mut torture = self.torture();
            torture.args(["--quick", "--fail-on", "low", "--only", "S,F", "--quiet"]);
            let seed = round.to_string();
            torture.args(["--post", "/post", "--seed", &seed]);
            let ran = torture.arg(&running.url).output()?;
            if ran.status.code() != Some(0) {
                let output = String::from_utf8_lossy(&ran.stdout).into_owned();
                bail!("clean run {round} of {times} ended with {}: {output}", ran.status);
            }
            println!("clean run {round} of {times}: nothing found");
        }
        Ok(())
    }
}

/// Returns results of a proxy in the form of a torture document: a case [`CHAIN`] whose exchanges
/// are the requests.
fn chain(
    binary: &Path,
    running: &subject::Running,
    subject: &Subject,
) -> anyhow::Result<serde_json::Value> {
    let mut chain = Command::new(binary);
    let origin = format!("127.0.0.1:{}", running.origin);
    chain.args(["torture", "chain", "--json", "-", "--origin", &origin]).arg(&running.url);
    chain.args(subject.http().map(|version| ["--http", version]).into_iter().flatten());
    chain.args(subject.tls.then_some("--insecure"));
    let ran = chain.stdin(Stdio::null()).output()?;
    let errors = String::from_utf8_lossy(&ran.stderr).into_owned();
    let document: serde_json::Value = serde_json::from_slice(&ran.stdout)
        .with_context(|| format!("it ended with {}: {errors} {}", ran.status, running.output()))?;
    if let Some(why) = document["ended_early"].as_str() {
        bail!("{why}; the proxy says: {}", running.output());
    }
    let exchange = |row: &serde_json::Value| {
        let words = |key: &str| {
            let all = row[key].as_array().into_iter().flatten();
            all.filter_map(serde_json::Value::as_str).collect::<Vec<&str>>().join(", ")
        };
        let mut seen = row["handling"].as_str().unwrap_or_default().replace('-', " ");
        for part in [words("changes"), words("faults")].iter().filter(|part| !part.is_empty()) {
            write!(seen, "; {part}").expect("writing to a String cannot fail");
        }
        serde_json::json!({ "name": row["name"], "seen": seen })
    };
    let rows = document["requests"].as_array().into_iter().flatten();
    let exchanges: Vec<serde_json::Value> = rows.map(exchange).collect();
    let case = serde_json::json!({ "id": CHAIN, "outcome": "reported", "exchanges": exchanges });
    Ok(serde_json::json!({ "limits": [], "cases": [case] }))
}

/// Returns the ids of the program's cases.
fn known_cases(binary: &Path) -> anyhow::Result<BTreeSet<String>> {
    let list = shell::output(Command::new(binary).args(["torture", "list"]))?;
    let cases = list.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned);
    Ok(cases.chain([CHAIN.to_owned()]).collect())
}

/// Returns the tables. Most of the time is waiting, so all servers run at once, and then the load
/// cases one at a time.
fn tables(subjects: &[Subject], tool: &Tool<'_>, known: &BTreeSet<String>) -> Vec<Table> {
    let mut tables: Vec<Table> = std::thread::scope(|scope| {
        let calm = |id: &str| !applies_load(id) && (!tool.quick || is_quick(id));
        let each: Vec<_> = subjects
            .iter()
            .map(|subject| scope.spawn(move || table(subject, tool, known, &calm)))
            .collect();
        each.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    for (subject, table_of) in subjects.iter().zip(&mut tables) {
        let any = subject.truth.iter().any(|truth| applies_load(&truth.case));
        if any && !tool.quick && table_of.trouble.is_none() {
            let pressed = table(subject, tool, known, &applies_load);
            table_of.rows.extend(pressed.rows);
            table_of.trouble = pressed.trouble;
        }
    }
    tables
}

fn applies_load(id: &str) -> bool {
    PRESSING.iter().any(|begin| id.starts_with(begin))
}

fn is_quick(id: &str) -> bool {
    QUICK.iter().any(|begin| id.starts_with(begin))
}

fn table(
    subject: &Subject,
    tool: &Tool<'_>,
    known: &BTreeSet<String>,
    which: &dyn Fn(&str) -> bool,
) -> Table {
    let mut table = Table {
        name: format!("{} ", subject.name),
        title: format!("{} {}", subject.name, subject.version()),
        model: subject.model.clone(),
        rows: Vec::new(),
        trouble: None,
    };
    let truths = || subject.truth.iter().filter(|truth| which(&truth.case));
    let cases: BTreeSet<&str> =
        truths().map(|truth| truth.case.as_str()).filter(|id| known.contains(*id)).collect();
    let document = match (subject.is_installed(), cases.is_empty()) {
        (false, _) => {
            Err(anyhow::anyhow!("it is not installed: Debian's package {}", subject.package))
        }
        (true, true) => Ok(serde_json::Value::Null),
        (true, false) => torture(subject, tool, &cases),
    };
    match document {
        Ok(document) => table.rows = truths().map(|truth| truth.judge(&document)).collect(),
        Err(error) => table.trouble = Some(format!("{error:#}")),
    }
    table
}

fn torture(
    subject: &Subject,
    tool: &Tool<'_>,
    cases: &BTreeSet<&str>,
) -> anyhow::Result<serde_json::Value> {
    let running = subject.start(tool.binary)?;
    if subject.chain {
        return chain(tool.binary, &running, subject);
    }
    let list: Vec<&str> = cases.iter().copied().collect();
    let mut torture = tool.torture();
    torture.args(["--json", "-", "--only", &list.join(",")]);
    let paths = [("--post", &subject.post), ("--big", &subject.big), ("--ws-path", &subject.ws)];
    for (option, path) in paths {
        if let Some(path) = path {
            torture.args([option, path]);
        }
    }
    if let Some(slots) = subject.slots {
        torture.args(["--slots", &slots.to_string()]);
    }
    if subject.tls {
        torture.arg("--insecure");
    }
    if let Some(version) = subject.http() {
        torture.args(["--http", version]);
    }
    if list.iter().any(|id| applies_load(id)) {
        torture.arg("--press");
    }
    let ran = torture.arg(&running.url).output()?;
    let errors = String::from_utf8_lossy(&ran.stderr).into_owned();
    let document: serde_json::Value = serde_json::from_slice(&ran.stdout).with_context(|| {
        format!("{} ended with {}: {errors} {}", subject.name, ran.status, running.output())
    })?;
    match document["ended_early"].as_str() {
        Some(why) if document["cases"].as_array().is_none_or(Vec::is_empty) => {
            bail!("{}: {why}; the server says: {}", subject.name, running.output())
        }
        _ => Ok(document),
    }
}

fn page(sections: &[String]) -> String {
    let mut out = String::from(
        "# Truths: torture against real servers\n\n\
         Written by `cargo xtask truths`, which starts each of these servers with a small pool on \
         loopback,\nruns the cases of its rows and compares the results with the known behavior of \
         the server. The known\nbehavior, and the reason for each difference, are in `xtask/truths`. \
         *Measured*: by hand,\nindependently; *source*: from the server's source code or manual.\n",
    );
    out.extend(sections.iter().map(String::as_str));
    out
}

fn section(table: &Table) -> String {
    let mut out = format!("\n## {}\n\n{}.\n", table.title, table.model);
    if let Some(trouble) = &table.trouble {
        let line = trouble.lines().next().unwrap_or_default();
        write!(out, "\nNot tested: {line}\n").expect("writing to a String cannot fail");
    }
    if !table.rows.is_empty() {
        out.push_str("\n| case | expected | from | seen | |\n|---|---|---|---|---|\n");
    }
    table.rows.iter().for_each(|row| out.push_str(&line(row)));
    out
}

fn line(row: &Row) -> String {
    let from = match row.from {
        From::Measured => "measured",
        From::Source => "source",
    };
    let verdict = match &row.verdict {
        Verdict::Agrees => "agrees".to_owned(),
        Verdict::Explained(why) => format!("differs: {why}"),
        Verdict::Unexplained => "**differs**".to_owned(),
        Verdict::Inconclusive => "inconclusive".to_owned(),
        Verdict::NotTested => "not tested".to_owned(),
    };
    let cells = [&row.case, &row.expect, from, &row.seen, &verdict];
    let cells = cells.map(|cell| cell.replace('|', "\\|"));
    format!("| {} |\n", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_file_is_complete() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("truths");
        let subjects = Subject::read_all(&root).unwrap();
        assert!(subjects.len() >= 25, "{}", subjects.len());
        for subject in &subjects {
            assert!(!subject.truth.is_empty(), "{}", subject.name);
        }
        let quick = ["nginx", "Apache, event", "lighttpd", "Python http.server"];
        let ci: BTreeSet<&str> =
            subjects.iter().filter(|one| one.ci).map(|one| one.name.as_str()).collect();
        assert_eq!(ci, BTreeSet::from(quick));
    }

    #[test]
    fn sections_of_servers_that_were_not_run_stay() {
        let table = |name: &str, model: &str| Table {
            name: format!("{name} "),
            title: format!("{name} 2"),
            model: model.to_owned(),
            rows: Vec::new(),
            trouble: None,
        };
        let before = page(&[section(&table("a", "old")), section(&table("b", "old"))]);
        let after = page(&merged(&before, &[table("b", "new"), table("c", "new")]));
        assert!(
            after.ends_with("\n## a 2\n\nold.\n\n## b 2\n\nnew.\n\n## c 2\n\nnew.\n"),
            "{after}"
        );
    }

    #[test]
    fn a_page_has_a_line_for_each_row() {
        let row = Row {
            case: "S-01".to_owned(),
            expect: "a | b".to_owned(),
            from: From::Source,
            seen: "400".to_owned(),
            verdict: Verdict::Explained("so".to_owned()),
        };
        assert_eq!(line(&row), "| S-01 | a \\| b | source | 400 | differs: so |\n");
    }
}
