//! The key of this installation: a secret whose fingerprint is named in proofs of permission, so
//! that a proof permits only its intended tester.

use session::Failure;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use torture::safety::proof;

const FILE: &str = "torture.key";
/// Size of a secret, and of the file with its hexadecimal digits.
const SECRET_LEN: usize = 32;
const TEXT_LEN: usize = 2 * SECRET_LEN + 1;

/// Returns the folder of this user's state, created if missing.
pub fn folder() -> Result<PathBuf, Failure> {
    let folder = host::state_dir()
        .ok_or_else(|| Failure::usage("the audit log has no folder: set XDG_STATE_HOME or HOME"))?;
    fs::create_dir_all(&folder).map_err(|error| {
        Failure::usage(format!(
            "cannot create {} for the audit log: {error}; set XDG_STATE_HOME to another folder \
            (targets on this machine can be tested with --no-audit)",
            folder.display()
        ))
    })?;
    Ok(folder)
}

/// Returns the fingerprint of the key, which is created on first use.
pub fn fingerprint(folder: &Path) -> Result<String, Failure> {
    let path = folder.join(FILE);
    let failed = |why: String| Failure::usage(format!("the key {}: {why}", path.display()));
    if !path.exists() {
        make(folder, &path).map_err(|error| failed(error.to_string()))?;
    }
    let mode = fs::metadata(&path).map_err(|error| failed(error.to_string()))?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(failed(
            "other users can read it: run chmod 600 on it, or delete it to create a new one".into(),
        ));
    }
    let mut text = String::new();
    fs::File::open(&path)
        .and_then(|file| file.take(TEXT_LEN as u64 + 1).read_to_string(&mut text))
        .map_err(|error| failed(error.to_string()))?;
    let digits = text.trim_end();
    if digits.len() != 2 * SECRET_LEN || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(failed("it contains no key: delete it to create a new one".to_owned()));
    }
    Ok(proof::fingerprint(digits.as_bytes()))
}

/// Writes the key completely or not at all, and never over an existing key.
fn make(folder: &Path, path: &Path) -> std::io::Result<()> {
    let mut secret = [0; SECRET_LEN];
    fs::File::open("/dev/urandom")?.read_exact(&mut secret)?;
    let text = units::hex(secret);
    let beside = folder.join(format!(".{FILE}.{}", std::process::id()));
    let made = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&beside)
        .and_then(|mut file| {
            writeln!(file, "{text}")?;
            file.sync_all()
        })
        .and_then(|()| fs::hard_link(&beside, path));
    fs::remove_file(&beside).ok();
    match made {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_kept_from_others() {
        let folder = tempfile::tempdir().unwrap();
        let first = fingerprint(folder.path()).unwrap();
        assert_eq!(fingerprint(folder.path()).unwrap(), first);
        assert!(
            first.len() == 64
                && !fs::read_to_string(folder.path().join(FILE)).unwrap().contains(&first)
        );
        let other = tempfile::tempdir().unwrap();
        assert_ne!(fingerprint(other.path()).unwrap(), first);
        let path = folder.path().join(FILE);
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "nothing is left beside it");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(fingerprint(folder.path()).unwrap_err().text.contains("chmod 600"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "short").unwrap();
        assert!(fingerprint(folder.path()).unwrap_err().text.contains("it contains no key"));
    }
}
