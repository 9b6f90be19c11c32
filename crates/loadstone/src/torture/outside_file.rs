//! The file that the server must not serve: cases of path traversal compare responses with it.

use crate::args::TortureArgs;
use crate::exit::Failure;
use std::path::{Path, PathBuf};
use torture::judge::Plain;
use torture::safety::Class;

/// Maximum size of the file: responses are compared by digest, so any would do.
const FILE_MAX: u64 = 1 << 20;
/// The default where the user owns the server.
const USUAL: &str = "/etc/hostname";

/// A file and the digest of its content.
#[derive(Debug)]
pub(super) struct OutsideFile {
    /// Its path without the leading slash.
    pub(super) path: String,
    pub(super) digest: [u8; 32],
}

/// Returns the given file, or the default one if it can be read.
///
/// # Errors
/// A given file that cannot be used, and why.
pub(super) fn read(args: &TortureArgs, class: Class) -> Result<Option<OutsideFile>, Failure> {
    if let Some(given) = &args.what.outside {
        let wrong = |why: &str| Failure::usage(format!("--outside {}: {why}", given.display()));
        if class != Class::Local {
            return Err(wrong(
                "it is compared with the file of this machine, which is not the server's",
            ));
        }
        return digest(given).map(Some).map_err(|why| wrong(&why));
    }
    let owned = class == Class::Local && !args.safety.own.is_empty();
    Ok(owned.then(|| digest(&PathBuf::from(USUAL)).ok()).flatten())
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
