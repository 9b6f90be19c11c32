//! Expected bodies of targets: the grammar of `--verify`, and the manifests of `xxh128sum`.

use crate::{KnownBody, TargetPlan, Verify};
use sample::BodyPrint;
use std::collections::HashMap;
use units::{ParseError, Seed, quoted};
use url::{Position, Url};
use workload::fileset::{FileSet, Spec};

/// Maximum number of lines of a manifest.
pub const KNOWN_BODIES_MAX: usize = 1_000_000;

const MANIFEST: &str = "manifest:";
const FILES: &str = "set:";

/// Parses `first`, `set:NAME`, `set:NAME@SEED`, or `manifest:` followed by the lines of a manifest.
///
/// # Errors
/// Fails for any other text, an unknown file set, or an invalid line of a manifest.
pub fn parse_verify(text: &str) -> Result<Verify, ParseError> {
    if text == "first" {
        return Ok(Verify::First);
    }
    if let Some(lines) = text.strip_prefix(MANIFEST) {
        return parse_manifest(lines).map(Verify::Manifest);
    }
    let Some(named) = text.strip_prefix(FILES) else {
        let why = "is not a source for --verify: write first, set:NAME[@SEED] or a manifest's file";
        return Err(ParseError(format!("{} {why}", quoted(text))));
    };
    let (name, seed) = named.rsplit_once('@').unwrap_or((named, "1"));
    let seed = seed
        .parse()
        .map_err(|_| ParseError(format!("{} is not a seed: write set:NAME@7", quoted(seed))))?;
    let spec =
        Spec::parse(name).map_err(|error| ParseError(format!("{}: {error}", quoted(name))))?;
    Ok(Verify::Files { spec, seed })
}

/// Formats a value as [`parse_verify`] reads it.
pub fn show_verify(verify: &Verify) -> String {
    match verify {
        Verify::First => "first".to_owned(),
        Verify::Files { spec, seed } => format!("{FILES}{spec}@{seed}"),
        Verify::Manifest(known) => {
            let line = |one: &KnownBody| {
                let length = one.print.length.map_or(String::new(), |n| format!(" length={n}"));
                format!("{:032x}  {}{length}\n", one.print.hash, one.name)
            };
            let lines: String = known.iter().map(line).collect();
            format!("{MANIFEST}\n{lines}")
        }
    }
}

/// Parses a manifest: one line per body, as `xxh128sum` writes them, with the hash in 32
/// hexadecimal digits, then a path or a URL, then `length=N` if known. Empty lines and lines that
/// begin with # are skipped.
///
/// # Errors
/// Fails at the first invalid line, by number, and for an empty manifest or a duplicate name.
pub fn parse_manifest(text: &str) -> Result<Vec<KnownBody>, ParseError> {
    let mut known = Vec::new();
    let mut lines_of = HashMap::new();
    for (row, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fault = |why: &str| {
            let form = "write HASH  PATH-OR-URL [length=N], as xxh128sum does";
            ParseError(format!("line {} of the manifest {why}: {form}", row + 1))
        };
        let one = known_body(line).map_err(fault)?;
        if let Some(before) = lines_of.insert(path_of(&one.name).to_owned(), row + 1) {
            let name = quoted(&one.name);
            return Err(fault(&format!("names {name} again, after line {before}")));
        }
        if known.len() == KNOWN_BODIES_MAX {
            return Err(ParseError(format!("the manifest has more than {KNOWN_BODIES_MAX} lines")));
        }
        known.push(one);
    }
    if known.is_empty() {
        return Err(ParseError("the manifest has no lines".to_owned()));
    }
    Ok(known)
}

fn known_body(line: &str) -> Result<KnownBody, &'static str> {
    const DIGITS: usize = 32;
    let (hash, rest) = line.split_once(char::is_whitespace).ok_or("has no name")?;
    let digits = hash.len() == DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let hash = u128::from_str_radix(hash, 16).ok().filter(|_| digits);
    let hash = hash.ok_or("does not begin with 32 hexadecimal digits")?;
    // checksum files mark binary mode with a star before the name
    let rest = rest.trim().trim_start_matches('*');
    let (name, length) = match rest.rsplit_once(" length=") {
        Some((name, length)) => (name.trim(), Some(length)),
        None => (rest, None),
    };
    let length = match length.map(str::parse) {
        None => None,
        Some(Ok(length)) => Some(length),
        Some(Err(_)) => return Err("has a length that is not a number"),
    };
    match name {
        "" => Err("has no name"),
        name => Ok(KnownBody { name: name.to_owned(), print: BodyPrint { length, hash } }),
    }
}

/// Returns the path without a prefix: `./a` and `/a` become `a`.
fn path_of(name: &str) -> &str {
    let name = name.strip_prefix('.').filter(|rest| rest.starts_with('/')).unwrap_or(name);
    if name.contains("://") { name } else { name.trim_start_matches('/') }
}

/// Expected bodies of targets, known before the run.
#[derive(Debug)]
pub enum Knowledge<'a> {
    Nothing,
    Files(Box<FileSet>),
    Manifest(HashMap<&'a str, BodyPrint>),
}

/// Expected body of one target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TargetBody {
    /// The first response determines the body.
    Later,
    /// The body is this file.
    File(workload::fileset::FileContent, u64),
    Print(BodyPrint),
}

impl Verify {
    /// Prepares the lookup of targets.
    pub fn knowledge(&self) -> Knowledge<'_> {
        match self {
            Verify::First => Knowledge::Nothing,
            Verify::Files { spec, seed } => Knowledge::Files(Box::new(spec.set(Seed(*seed)))),
            Verify::Manifest(known) => Knowledge::Manifest(
                known.iter().map(|one| (path_of(&one.name), one.print)).collect(),
            ),
        }
    }
}

impl Knowledge<'_> {
    /// # Errors
    /// Fails if the target is unknown; the error has its URL and the fix.
    pub fn expected_body(&self, target: &TargetPlan) -> Result<TargetBody, String> {
        let path = path_and_query(&target.url);
        match self {
            Knowledge::Nothing => Ok(TargetBody::Later),
            Knowledge::Files(set) => {
                let file = set.find(target.url.path().trim_start_matches('/'));
                let known = file.map(|file| TargetBody::File(set.content(file), file.size));
                known.ok_or_else(|| format!("the file set has no {}", quoted(path)))
            }
            Knowledge::Manifest(known) => {
                let print = known.get(whole(&target.url)).or_else(|| known.get(path_of(path)));
                let print = print.map(|print| TargetBody::Print(*print));
                print.ok_or_else(|| format!("the manifest has no line for {}", quoted(path)))
            }
        }
    }
}

fn path_and_query(url: &Url) -> &str {
    &url[Position::BeforePath..Position::AfterQuery]
}

fn whole(url: &Url) -> &str {
    &url[..Position::AfterQuery]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUM: &str = "99aa06d3014798d86001c324468d497f";

    fn target(url: &str) -> TargetPlan {
        TargetPlan::new(Url::parse(url).unwrap())
    }

    #[test]
    fn verification_sources_parse_and_print() {
        for text in ["first", "set:surge-like:files=10@7", "set:webstone-like@1"] {
            assert_eq!(show_verify(&parse_verify(text).unwrap()), text);
        }
        let short = parse_verify("set:surge-like").unwrap();
        assert_eq!(show_verify(&short), "set:surge-like:files=2000@1");
        let manifest = format!("manifest:\n# x\n\n{SUM}  a/b c.txt\n{SUM} *./d length=12\n");
        let read = parse_verify(&manifest).unwrap();
        let shown = format!("manifest:\n{SUM}  a/b c.txt\n{SUM}  ./d length=12\n");
        assert_eq!(show_verify(&read), shown);
        assert_eq!(parse_verify(&shown).unwrap(), read);
    }

    #[test]
    fn errors_name_the_input_and_the_fix() {
        for (text, why) in [
            ("second", "\"second\" is not a source for --verify: write first, set:NAME"),
            ("set:nothing", "\"nothing\": no such file set"),
            ("set:surge-like@x", "\"x\" is not a seed"),
            ("manifest:", "the manifest has no lines"),
            ("manifest:\n# x\nabc  d", "line 3 of the manifest does not begin with 32"),
            (&format!("manifest:{SUM}"), "line 1 of the manifest has no name"),
            (&format!("manifest:{SUM}  a length=x"), "has a length that is not a number"),
            (&format!("manifest:{SUM}  a\n{SUM}  ./a"), "names \"./a\" again, after line 1"),
        ] {
            let error = parse_verify(text).unwrap_err().0;
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn targets_are_found_by_path_or_by_url() {
        let lines = format!("{SUM}  ./a.html\n{SUM}  /b?c=1\n{SUM}  http://h:1/d\n");
        let verify = Verify::Manifest(parse_manifest(&lines).unwrap());
        let known = verify.knowledge();
        for url in ["http://x/a.html", "http://y/b?c=1", "http://h:1/d"] {
            assert!(known.expected_body(&target(url)).is_ok(), "{url}");
        }
        let error = known.expected_body(&target("http://h:2/d")).unwrap_err();
        assert_eq!(error, "the manifest has no line for \"/d\"");
        let verify = parse_verify("set:webstone-like").unwrap();
        let error = verify.knowledge().expected_body(&target("http://h/no")).unwrap_err();
        assert_eq!(error, "the file set has no \"/no\"");
    }
}
