//! Access to a directory: the per-directory file with its password and group files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use units::quoted;

use super::credentials::Credentials;
use super::{LIST_MAX, read_text};
use crate::breaks::{Break, Breaks};

/// The complete set of permitted users.
pub(crate) struct Rule {
    realm: String,
    /// Passwords of every user in the password file.
    passwords: BTreeMap<String, String>,
    allowed: BTreeSet<String>,
    /// Users of `allowed` that are permitted only by a group.
    by_group: BTreeSet<String>,
}

/// The passwords stay out of every message.
impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rule of {:?} for {:?}", self.realm, self.allowed)
    }
}

/// Content of `.site.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(rename_all = "PascalCase")]
struct Written {
    auth_type: String,
    auth_name: String,
    auth_user_file: PathBuf,
    auth_group_file: Option<PathBuf>,
    #[serde(default)]
    auth_allow_users: Names,
    #[serde(default)]
    auth_allow_groups: Names,
}

/// `"barney betty"` or `["barney", "betty"]`.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "write names as \"barney betty\" or [\"barney\", \"betty\"]")]
enum Names {
    Text(String),
    List(Vec<String>),
}

impl Default for Names {
    fn default() -> Names {
        Names::List(Vec::new())
    }
}

impl Names {
    fn all(&self) -> Vec<String> {
        match self {
            Names::Text(text) => text.split_whitespace().map(str::to_owned).collect(),
            Names::List(list) => list.clone(),
        }
    }
}

impl Rule {
    /// Reads a `.site.toml` and the files that it names, relative to `server_root`.
    ///
    /// # Errors
    /// Fails with the error, and its file and line if known.
    pub(super) fn read(text: &str, server_root: &Path) -> Result<Rule, String> {
        let written: Written = toml::from_str(text).map_err(|error| error_text(&error, text))?;
        written.check()?;
        let from = |path: &Path| {
            let path = server_root.join(path);
            let text = read_text(&path, LIST_MAX);
            text.map_err(|error| format!("{}: {error}", path.display())).map(|text| (path, text))
        };
        let (path, text) = from(&written.auth_user_file)?;
        let passwords = passwords(&text).map_err(|why| format!("{}: {why}", path.display()))?;
        let mut groups = BTreeMap::new();
        let mut group_file = PathBuf::new();
        if let Some(path) = &written.auth_group_file {
            let (path, text) = from(path)?;
            groups = self::groups(&text).map_err(|why| format!("{}: {why}", path.display()))?;
            group_file = path;
        }
        let mut rule = Rule {
            realm: written.auth_name.clone(),
            passwords,
            allowed: written.auth_allow_users.all().into_iter().collect(),
            by_group: BTreeSet::new(),
        };
        for group in written.auth_allow_groups.all() {
            let members = groups.get(&group).ok_or_else(|| {
                format!(
                    "AuthAllowGroups names {}, which {} does not have",
                    quoted(&group),
                    group_file.display()
                )
            })?;
            rule.by_group.extend(members.difference(&rule.allowed).cloned());
        }
        rule.allowed.extend(rule.by_group.iter().cloned());
        Ok(rule)
    }

    pub(super) fn realm(&self) -> &str {
        &self.realm
    }

    /// Returns the user's name, if this user may enter and the password is right.
    pub(super) fn admits(&self, credentials: &Credentials, breaks: &Breaks) -> Option<String> {
        let known = self.passwords.get(&credentials.user);
        // the same work for every name and password, so that timing reveals nothing
        let digest = |password: &str| Sha256::digest(password.as_bytes());
        let expected = digest(known.map_or("", String::as_str));
        let same = bool::from(expected.ct_eq(&digest(&credentials.password)));
        let right = known.is_some() && (same || breaks.has(Break::AuthPassword));
        let barred = breaks.has(Break::AuthGroup) && self.by_group.contains(&credentials.user);
        let wilma = breaks.has(Break::AuthWilma) && credentials.user == "wilma";
        let allowed = self.allowed.contains(&credentials.user) && !barred || wilma;
        (right && allowed).then(|| credentials.user.clone())
    }
}

impl Written {
    fn check(&self) -> Result<(), String> {
        if !self.auth_type.eq_ignore_ascii_case("basic") {
            let kind = quoted(&self.auth_type);
            return Err(format!("AuthType = {kind} is not known; write AuthType = \"Basic\""));
        }
        if self.auth_name.chars().any(char::is_control) {
            return Err("AuthName holds a control character; write plain text".to_owned());
        }
        let (users, groups) = (self.auth_allow_users.all(), self.auth_allow_groups.all());
        if users.is_empty() && groups.is_empty() {
            return Err("no user has access; write AuthAllowUsers or AuthAllowGroups".to_owned());
        }
        if !groups.is_empty() && self.auth_group_file.is_none() {
            return Err(
                "AuthAllowGroups needs an AuthGroupFile that lists their members".to_owned()
            );
        }
        Ok(())
    }
}

fn error_text(error: &toml::de::Error, text: &str) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or("");
    let line = before.matches('\n').count() + 1;
    format!("line {line}: {}", error.message().trim_end())
}

/// Returns the lines with content, with their numbers; `#` starts a comment.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    numbered.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
}

/// Returns whether the password is a hash as in the password files of other servers:
/// `$id$salt$hash` of crypt, `{SHA}` or `{SSHA}`.
fn is_hash(password: &str) -> bool {
    let crypt = password.starts_with('$') && password.matches('$').count() >= 3;
    crypt || password.starts_with("{SHA}") || password.starts_with("{SSHA}")
}

/// Parses `user:password`, in plain text.
fn passwords(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut passwords = BTreeMap::new();
    for (number, line) in lines(text) {
        let Some((user, password)) = line.split_once(':').filter(|(user, _)| !user.is_empty())
        else {
            return Err(format!("line {number} is not user:password"));
        };
        if is_hash(password) {
            return Err(format!(
                "line {number} has a hashed password, which this site cannot check; write \
                 user:password in plain text"
            ));
        }
        if passwords.insert(user.to_owned(), password.to_owned()).is_some() {
            return Err(format!("line {number} repeats user {}", quoted(user)));
        }
    }
    Ok(passwords)
}

/// Parses `group: user user …`; a group may have several lines.
fn groups(text: &str) -> Result<BTreeMap<String, BTreeSet<String>>, String> {
    let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (number, line) in lines(text) {
        let Some((group, members)) = line.split_once(':').filter(|(group, _)| !group.is_empty())
        else {
            return Err(format!("line {number} is not group: user user"));
        };
        let members = members.split_whitespace().map(str::to_owned);
        groups.entry(group.trim().to_owned()).or_default().extend(members);
    }
    Ok(groups)
}
