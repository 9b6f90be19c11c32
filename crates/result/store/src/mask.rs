//! The stored form of the command line: as typed, without its secrets.

use plan::{Plan, is_secret_header};
use record::words::MASK;

/// Returns a command line, quoted for a shell. Logins in URLs, `--user`, `--bearer`, `--proxy` and
/// header fields with logins are masked, as is everything that contains a secret of the plans.
pub fn masked_command(args: &[String], plans: &[&Plan]) -> String {
    masked_words(args, plans).iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// Returns the masked words of a command line, like [`masked_command`].
pub fn masked_words(args: &[String], plans: &[&Plan]) -> Vec<String> {
    let secrets: Vec<String> = plans.iter().flat_map(|plan| plan.secrets()).collect();
    let mut before = "";
    let mut words = Vec::new();
    for arg in args {
        let mut word = match option_of(before) {
            Some(option) => option.mask(arg),
            None => mask_alone(arg),
        };
        for secret in &secrets {
            word = word.replace(secret.as_str(), MASK);
        }
        words.push(word);
        before = arg;
    }
    words
}

/// Options whose value is, or may contain, a secret.
#[derive(Clone, Copy)]
enum Secret {
    Login,
    Token,
    Header,
    Url,
}

impl Secret {
    fn mask(self, value: &str) -> String {
        match self {
            Secret::Login => match value.split_once(':') {
                Some((name, _)) => format!("{name}:{MASK}"),
                None => MASK.to_owned(),
            },
            Secret::Token => MASK.to_owned(),
            Secret::Header => match value.split_once(':') {
                Some((name, _)) if is_secret_header(name.trim()) => format!("{name}: {MASK}"),
                _ => value.to_owned(),
            },
            Secret::Url => mask_login(value),
        }
    }
}

fn option_of(name: &str) -> Option<Secret> {
    match name {
        "--user" => Some(Secret::Login),
        "--bearer" => Some(Secret::Token),
        // a command may contain anything that a shell interprets
        "--restart-command" | "--starve-command" | "--relieve-command" => Some(Secret::Token),
        "-H" | "--header" => Some(Secret::Header),
        "--proxy" => Some(Secret::Url),
        // -qH: several letters in one word
        _ => {
            let cluster = name.strip_prefix('-')?.strip_suffix('H')?;
            cluster.chars().all(|c| c.is_ascii_alphabetic()).then_some(Secret::Header)
        }
    }
}

/// Masks a word that is not the value of the previous one: `--user=…`, `-HName: …`, a URL.
fn mask_alone(word: &str) -> String {
    if let Some((name, value)) = word.split_once('=').filter(|(name, _)| name.starts_with("--"))
        && let Some(option) = option_of(name)
    {
        return format!("{name}={}", option.mask(value));
    }
    if let Some(header) = word.strip_prefix("-H").filter(|header| !header.is_empty()) {
        return format!("-H{}", Secret::Header.mask(header));
    }
    mask_login(word)
}

/// Removes the password before a URL's host; a name without a password is removed too, because it
/// may be one.
fn mask_login(word: &str) -> String {
    let start = word.find("://").map_or(0, |at| at + 3);
    let authority = word[start..].split(['/', '?', '#']).next().unwrap_or_default();
    let Some(at) = authority.rfind('@') else { return word.to_owned() };
    let login = &authority[..at];
    let shown = login.split_once(':').map_or(MASK.to_owned(), |(name, _)| format!("{name}:{MASK}"));
    format!("{}{shown}{}", &word[..start], &word[start + at..])
}

/// Quotes a word for a POSIX shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+*".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::Auth;

    fn masked(words: &[&str]) -> String {
        let mut plan = Plan::for_url("http://h/".parse().unwrap());
        plan.request.auth = Some(Auth::Bearer("hush-hush".into()));
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        masked_command(&words, &[&plan])
    }

    #[test]
    fn a_command_line_is_kept_without_its_secrets() {
        for (words, expected) in [
            (&["run", "http://h/a?b=c", "-c", "5"][..], "run 'http://h/a?b=c' -c 5"),
            (&["http://fred:s3cret@h/x@y"], "http://fred:***@h/x@y"),
            (&["fred:s3cret@h"], "fred:***@h"),
            (&["https://token@h/"], "https://***@h/"),
            (&["--user", "fred:s3cret"], "--user fred:***"),
            (&["--user=fred:a:b"], "--user=fred:***"),
            (&["--bearer", "abc", "--bearer=abc"], "--bearer *** --bearer=***"),
            (&["-H", "Cookie: a=b", "-HX-Api-Key:9"], "-H 'Cookie: ***' '-HX-Api-Key: ***'"),
            (&["-qH", "Cookie: a=b"], "-qH 'Cookie: ***'"),
            (&["--restart-command", "pw=x sh r"], "--restart-command ***"),
            (&["--header=Accept: */*"], "'--header=Accept: */*'"),
            (&["--proxy", "http://me:pw@p:3128"], "--proxy http://me:***@p:3128"),
            (&["--body", "x=hush-hush&y"], "--body 'x=***&y'"),
            (&["--slo", "p99<50ms", "it's"], r"--slo 'p99<50ms' 'it'\''s'"),
            (&[""], "''"),
        ] {
            assert_eq!(masked(words), expected);
        }
    }
}
