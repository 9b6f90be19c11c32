//! Names along the path of a request.

/// Returns whether the name is a configuration file; those are never served.
pub(crate) fn configures(name: &[u8]) -> bool {
    let starts: [&[u8]; 3] = [b".site.toml", b".swerve", b".ht"];
    starts.iter().any(|start| name.starts_with(start))
}

/// No file of this site is deeper.
const NAMES_MAX: usize = 128;

/// Returns the names along a decoded path. `None` for a path that no file of this site can have: it
/// leads upwards or too deep, contains a NUL, or names a configuration file. A backslash is an
/// ordinary character.
pub(crate) fn names(path: &str) -> Option<Vec<&str>> {
    let names: Vec<&str> =
        path.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    let fine = |name: &&str| *name != ".." && !name.contains('\0') && !configures(name.as_bytes());
    (names.len() <= NAMES_MAX && names.iter().all(fine)).then_some(names)
}
