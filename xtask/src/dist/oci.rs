//! An image of the static binary, built without tools: an OCI image layout in one tar, which
//! skopeo, podman and `docker load` read. One layer with the program, its manual page, completions
//! and documents; no shell, no libraries.

use super::{Release, pack, sha256};
use anyhow::Context;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const PLACES: [(&str, &str); 9] = [
    ("loadstone", "usr/bin/loadstone"),
    ("loadstone.1", "usr/share/man/man1/loadstone.1"),
    ("README.md", "usr/share/doc/loadstone/README.md"),
    ("CHANGELOG.md", "usr/share/doc/loadstone/CHANGELOG.md"),
    ("LICENSE-MIT", "usr/share/licenses/loadstone/LICENSE-MIT"),
    ("LICENSE-APACHE", "usr/share/licenses/loadstone/LICENSE-APACHE"),
    ("completions/loadstone.bash", "usr/share/bash-completion/completions/loadstone"),
    ("completions/_loadstone", "usr/share/zsh/site-functions/_loadstone"),
    ("completions/loadstone.fish", "usr/share/fish/vendor_completions.d/loadstone.fish"),
];

/// Packs the folder of the static tarball.
///
/// # Errors
/// Fails if tar or gzip fails, or a file cannot be written.
pub(super) fn pack(release: &Release, from: &Path) -> anyhow::Result<PathBuf> {
    let stage = release.stage.join("oci");
    let tree = stage.join("tree");
    let layout = stage.join("layout");
    pack::lay_out(from, &PLACES, &tree)?;
    // results are written where the caller mounts a folder
    std::fs::create_dir_all(tree.join("work"))?;
    std::fs::create_dir_all(tree.join("tmp"))?;
    std::fs::create_dir_all(layout.join("blobs/sha256"))?;
    let plain = stage.join("layer.tar");
    pack::tar(&tree, &["tmp", "usr", "work"], &plain, &release.date)?;
    let packed = stage.join("layer.tar.gz");
    pack::gzip(&plain, &packed)?;
    let diff = sha256(&std::fs::read(&plain).context("reading the layer")?);
    let layer = std::fs::read(&packed).context("reading the layer")?;
    let layer = blob(&layout, &layer, "application/vnd.oci.image.layer.v1.tar+gzip")?;
    let config = config(&release.version, &created(&release.date)?, &diff);
    let config = blob(&layout, &bytes(&config), "application/vnd.oci.image.config.v1+json")?;
    let manifest = "application/vnd.oci.image.manifest.v1+json";
    let of = json!({
        "schemaVersion": 2, "mediaType": manifest, "config": config, "layers": [layer]
    });
    let mut entry = blob(&layout, &bytes(&of), manifest)?;
    entry["platform"] = json!({"architecture": "amd64", "os": "linux"});
    entry["annotations"] = json!({"org.opencontainers.image.ref.name": release.version});
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [entry]
    });
    std::fs::write(layout.join("index.json"), bytes(&index))?;
    std::fs::write(layout.join("oci-layout"), bytes(&json!({"imageLayoutVersion": "1.0.0"})))?;
    let file = release.dist.join(format!("loadstone-{}-oci.tar", release.version));
    pack::tar(&layout, &["blobs", "index.json", "oci-layout"], &file, &release.date)?;
    Ok(file)
}

fn config(version: &str, created: &str, diff: &str) -> Value {
    json!({
        "created": created,
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "Entrypoint": ["/usr/bin/loadstone"],
            "Cmd": ["--help"],
            "Env": ["PATH=/usr/bin", "HOME=/tmp"],
            "WorkingDir": "/work",
            "Labels": {
                "org.opencontainers.image.title": "loadstone",
                "org.opencontainers.image.version": version,
                "org.opencontainers.image.licenses": "Apache-2.0 OR MIT"
            }
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{diff}")]},
        "history": [{"created": created, "created_by": "cargo xtask dist"}]
    })
}

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// Writes a blob under its digest and returns its descriptor.
fn blob(layout: &Path, bytes: &[u8], kind: &str) -> anyhow::Result<Value> {
    let sum = sha256(bytes);
    std::fs::write(layout.join("blobs/sha256").join(&sum), bytes).context("writing a blob")?;
    Ok(json!({"mediaType": kind, "digest": format!("sha256:{sum}"), "size": bytes.len()}))
}

/// Formats seconds since 1970 as RFC 3339, by the civil calendar (days to date after Howard
/// Hinnant's `civil_from_days`).
fn created(date: &str) -> anyhow::Result<String> {
    let seconds: i64 =
        date.parse().with_context(|| format!("{date:?} is not a number of seconds"))?;
    let days = seconds.div_euclid(86_400);
    let rest = seconds.rem_euclid(86_400);
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let hour = rest / 3600;
    let minute = rest / 60 % 60;
    let second = rest % 60;
    Ok(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
}

#[cfg(test)]
mod tests {
    use super::created;

    #[test]
    fn dates_are_in_the_form_of_oci() {
        for (seconds, date) in [
            ("0", "1970-01-01T00:00:00Z"),
            ("951782400", "2000-02-29T00:00:00Z"),
            ("1795430403", "2026-11-23T10:40:03Z"),
        ] {
            assert_eq!(created(seconds).unwrap(), date);
        }
        assert!(created("soon").is_err());
    }
}
