//! A file that the server must not serve. Cases of path traversal compare responses with it.

use crate::exit::Failure;
use args::TortureArgs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use torture::judge::Plain;
use torture::safety::Class;

/// Maximum size of the file: responses are compared by digest, so any would do.
const FILE_MAX: u64 = 1 << 20;
/// The default where the user owns the server.
const USUAL: &str = "/etc/hostname";

/// File with the digest of its content.
#[derive(Debug)]
pub(super) struct OutsideFile {
    /// Path without the leading slash.
    pub(super) path: String,
    pub(super) digest: [u8; 32],
}

/// Returns the given file, or the default file if it is readable. `hosts`: addresses of the target;
/// the default is used only if `--own` names all of them.
///
/// # Errors
/// Fails for a given file that cannot be used, with the reason.
pub(super) fn read(
    args: &TortureArgs,
    class: Class,
    hosts: &[IpAddr],
) -> Result<Option<OutsideFile>, Failure> {
    if let Some(given) = &args.what.outside {
        let wrong = |why: &str| Failure::usage(format!("--outside {}: {why}", given.display()));
        if class != Class::Local {
            return Err(wrong(
                "it is compared with the file of this machine, which is not the server's",
            ));
        }
        return digest(given).map(Some).map_err(|why| wrong(&why));
    }
    let own = class == Class::Local && owns(&args.safety.own, hosts);
    Ok(own.then(|| digest(&PathBuf::from(USUAL)).ok()).flatten())
}

/// Returns whether the named addresses are those of the target.
fn owns(named: &[IpAddr], hosts: &[IpAddr]) -> bool {
    !hosts.is_empty() && hosts.iter().all(|host| named.contains(host))
}

fn digest(path: &Path) -> Result<OutsideFile, String> {
    let text = path.to_str().filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()));
    let bare = text.and_then(|text| text.strip_prefix('/'));
    let bare = bare.ok_or("write an absolute path of ASCII characters without spaces")?;
    let length = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if length == 0 || length > FILE_MAX {
        return Err("name a file of 1 byte to 1 MiB".to_owned());
    }
    let content = std::fs::read(path).map_err(|error| error.to_string())?;
    Ok(OutsideFile { path: bare.to_owned(), digest: Plain::digest_of(&content) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_file_needs_ownership_of_the_target_itself() {
        let all = |text: &[&str]| -> Vec<IpAddr> {
            text.iter().map(|one| one.parse().unwrap()).collect()
        };
        let hosts = all(&["127.0.0.1", "::1"]);
        assert!(owns(&all(&["::1", "127.0.0.1"]), &hosts));
        assert!(!owns(&all(&["10.0.0.5"]), &hosts));
        assert!(!owns(&all(&["127.0.0.1"]), &hosts), "one of its addresses is not named");
        assert!(!owns(&[], &hosts));
    }
}
