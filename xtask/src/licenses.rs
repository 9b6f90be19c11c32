//! License, source and ban of every dependency, from `cargo metadata` and deny.toml: the checks of
//! cargo-deny, without its installation, which takes minutes on a fresh machine. cargo-deny also
//! runs if it is installed, because it knows the advisories too.

use crate::shell;
use anyhow::{Context, bail};
use serde_json::Value;
use std::path::Path;

/// Result of checking the dependencies for known vulnerabilities.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Advisories {
    LookedUp,
    /// Reason, as a sentence.
    NotLookedUp(String),
}

/// Runs `cargo xtask deny`.
///
/// # Errors
/// Fails if deny.toml or the metadata cannot be read, or a dependency is not allowed.
pub(crate) fn run(root: &Path) -> anyhow::Result<Advisories> {
    let path = root.join("deny.toml");
    let text = std::fs::read_to_string(&path).context("reading deny.toml")?;
    let policy = Policy::parse(&text)?;
    let mut metadata = shell::cargo();
    metadata.current_dir(root).args(["metadata", "--format-version", "1", "--locked"]);
    let metadata: Value =
        serde_json::from_str(&shell::output(&mut metadata)?).context("reading cargo metadata")?;
    let (count, found) = check(&policy, &metadata)?;
    for finding in &found {
        println!("{finding}");
    }
    if !found.is_empty() {
        bail!("deny: {} of {count} dependencies are not allowed by deny.toml", found.len());
    }
    println!("deny: {count} dependencies, every license and source allowed");
    let advisories = advisories(root)?;
    if let Advisories::NotLookedUp(why) = &advisories {
        println!("deny: {why}");
    }
    Ok(advisories)
}

/// Asks cargo-deny, which knows the advisories where it is installed and reaches their database.
fn advisories(root: &Path) -> anyhow::Result<Advisories> {
    let not = |why: &str| {
        Ok(Advisories::NotLookedUp(format!("the advisories were not looked up: {why}")))
    };
    if shell::find("cargo-deny").is_none() {
        return not("cargo-deny is not installed (cargo install cargo-deny)");
    }
    let deny = |args: &[&str]| {
        let mut deny = shell::cargo();
        shell::run(deny.current_dir(root).arg("deny").args(args))
    };
    deny(&["--all-features", "check", "bans", "licenses", "sources"])?;
    if deny(&["fetch"]).is_err() {
        return not("their database cannot be fetched from this machine");
    }
    deny(&["--all-features", "check", "--disable-fetch", "advisories"])?;
    Ok(Advisories::LookedUp)
}

struct Policy {
    allowed: Vec<spdx::Licensee>,
    registries: Vec<String>,
    banned: Vec<(String, String)>,
}

impl Policy {
    fn parse(text: &str) -> anyhow::Result<Policy> {
        let table: toml::Table = text.parse().context("deny.toml")?;
        let strings = |section: &str, key: &str| -> anyhow::Result<Vec<String>> {
            let list = table.get(section).and_then(|section| section.get(key));
            let list = list.and_then(toml::Value::as_array);
            let list = list.with_context(|| format!("deny.toml: no [{section}] {key}"))?;
            Ok(list.iter().filter_map(toml::Value::as_str).map(str::to_owned).collect())
        };
        let allowed = strings("licenses", "allow")?
            .iter()
            .map(|name| {
                spdx::Licensee::parse(name).with_context(|| format!("deny.toml: license {name:?}"))
            })
            .collect::<anyhow::Result<_>>()?;
        let banned = table.get("bans").and_then(|bans| bans.get("deny"));
        let banned = banned.and_then(toml::Value::as_array).into_iter().flatten();
        let word = |of: &toml::Value, key: &str| {
            of.get(key).and_then(toml::Value::as_str).unwrap_or_default().to_owned()
        };
        Ok(Policy {
            allowed,
            registries: strings("sources", "allow-registry")?,
            banned: banned.map(|ban| (word(ban, "crate"), word(ban, "reason"))).collect(),
        })
    }

    fn allows(&self, expression: &str) -> Result<bool, String> {
        let parsed = spdx::Expression::parse_mode(expression, spdx::ParseMode::LAX)
            .map_err(|error| error.to_string())?;
        Ok(parsed.evaluate(|required| self.allowed.iter().any(|held| held.satisfies(required))))
    }
}

/// Checks the licenses of dependencies; returns the number of dependencies, and the problems.
fn check(policy: &Policy, metadata: &Value) -> anyhow::Result<(usize, Vec<String>)> {
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let mut count = 0;
    let mut found = Vec::new();
    for package in packages {
        // our own have no source
        let Some(source) = package["source"].as_str() else { continue };
        count += 1;
        let name = package["name"].as_str().unwrap_or_default();
        let package_name = format!("{name} {}", package["version"].as_str().unwrap_or_default());
        if !policy.registries.iter().any(|from| source == format!("registry+{from}")) {
            found.push(format!("{package_name}: comes from {source}"));
        }
        if let Some((_, why)) = policy.banned.iter().find(|(banned, _)| banned == name) {
            found.push(format!("{package_name}: banned ({why})"));
        }
        match package["license"].as_str().map(|license| (license, policy.allows(license))) {
            None => found.push(format!("{package_name}: states no license")),
            Some((_, Ok(true))) => {}
            Some((license, Ok(false))) => found.push(format!("{package_name}: license {license}")),
            Some((license, Err(why))) => {
                found.push(format!("{package_name}: license {license}: {why}"))
            }
        }
    }
    Ok((count, found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const POLICY: &str = r#"
        [licenses]
        allow = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]
        [bans]
        deny = [{ crate = "left", reason = "because" }]
        [sources]
        allow-registry = ["https://example.org/index"]
    "#;

    fn found(name: &str, license: Option<&str>, source: &str) -> Vec<String> {
        let policy = Policy::parse(POLICY).unwrap();
        let package =
            json!({"name": name, "version": "1.0.0", "license": license, "source": source});
        let metadata = json!({"packages": [package, {"name": "ours", "source": null}]});
        let (count, found) = check(&policy, &metadata).unwrap();
        assert_eq!(count, 1, "our own crates are not counted");
        found
    }

    #[test]
    fn licenses_are_accepted_by_their_terms() {
        let registry = "registry+https://example.org/index";
        for (license, fine) in [
            ("MIT", true),
            ("MIT/Apache-2.0", true),
            ("GPL-3.0-only OR MIT", true),
            ("GPL-3.0-only", false),
            ("MIT AND GPL-3.0-only", false),
            ("(MIT OR GPL-2.0-only) AND Apache-2.0", true),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("MIT WITH LLVM-exception", false),
            ("no such thing", false),
        ] {
            assert_eq!(found("a", Some(license), registry).is_empty(), fine, "{license}");
        }
        assert_eq!(found("a", None, registry), ["a 1.0.0: states no license"]);
    }

    #[test]
    fn wrong_sources_and_banned_crates_are_reported() {
        let there = "registry+https://example.org/index";
        assert_eq!(found("left", Some("MIT"), there), ["left 1.0.0: banned (because)"]);
        let git = "git+https://example.org/a.git";
        assert_eq!(found("a", Some("MIT"), git), [format!("a 1.0.0: comes from {git}")]);
    }

    #[test]
    fn a_policy_without_a_list_is_an_error() {
        assert!(Policy::parse("[licenses]\n").is_err());
        assert!(Policy::parse("[licenses]\nallow = ['Nonsense-1']\n").is_err());
    }
}
