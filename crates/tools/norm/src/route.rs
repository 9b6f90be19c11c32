//! Finds the node for a request's target.

use percent_encoding::percent_decode_str;

/// Reason why a path has no node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadPath {
    /// Not a path: bad percent-encoding, a NUL, steps above the root. 400.
    Syntax(&'static str),
    /// A path that no file or node here can have. 404.
    Nowhere,
}

/// Returns the path of a target after percent-decoding, without dot segments and doubled slashes.
/// It begins with `/` and keeps a final one (RFC 3986 §5.2.4; steps above the root are refused).
pub(crate) fn clean_path(raw: &str) -> Result<String, BadPath> {
    if !raw.starts_with('/') {
        return Err(BadPath::Syntax("The target is not a path."));
    }
    if !raw.contains('%') && !raw.contains("//") && !raw.contains("/.") {
        return Ok(raw.to_owned());
    }
    if !percent_encoded_well(raw) {
        return Err(BadPath::Syntax("A % in the path is not followed by two hexadecimal digits."));
    }
    let decoded = percent_decode_str(raw).decode_utf8().map_err(|_| BadPath::Nowhere)?;
    if decoded.contains('\0') {
        return Err(BadPath::Syntax("The path holds a NUL."));
    }
    let mut kept: Vec<&str> = Vec::new();
    for segment in decoded.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                kept.pop().ok_or(BadPath::Syntax("The path leads above the root."))?;
            }
            segment => kept.push(segment),
        }
    }
    let folder = ["/", "/.", "/.."].iter().any(|end| decoded.ends_with(end));
    let end = if folder && !kept.is_empty() { "/" } else { "" };
    Ok(format!("/{}{end}", kept.join("/")))
}

fn percent_encoded_well(raw: &str) -> bool {
    let two_digits = |rest: &str| rest.as_bytes().get(..2).is_some_and(is_hex);
    raw.split('%').skip(1).all(two_digits)
}

fn is_hex(pair: &[u8]) -> bool {
    pair.iter().all(u8::is_ascii_hexdigit)
}

/// Nodes by path; the longest path wins, whole segments only.
#[derive(Debug)]
pub(crate) struct Routes<T> {
    /// Longest path first; the root's is empty.
    nodes: Vec<(String, T)>,
}

impl<T> Routes<T> {
    /// Creates a table of paths in the form of [`clean_path`], without a final `/` except for the
    /// root.
    pub(crate) fn new(nodes: impl IntoIterator<Item = (String, T)>) -> Routes<T> {
        let trimmed = |(path, node): (String, T)| (path.trim_end_matches('/').to_owned(), node);
        let mut nodes: Vec<(String, T)> = nodes.into_iter().map(trimmed).collect();
        nodes.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        Routes { nodes }
    }

    /// Returns the node for a clean path, and where in the path its own part ends.
    pub(crate) fn find(&self, path: &str) -> Option<(&T, usize)> {
        let matches = |own: &str| {
            path.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let (own, node) = self.nodes.iter().find(|(own, _)| matches(own))?;
        Some((node, own.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_are_cleaned() {
        let syntax = |raw: &str| matches!(clean_path(raw), Err(BadPath::Syntax(_)));
        let table = [
            ("/", "/"),
            ("/a/b.html", "/a/b.html"),
            ("/a/", "/a/"),
            ("//a///b", "/a/b"),
            ("/a/./b/../c", "/a/c"),
            ("/a/b/..", "/a/"),
            ("/a/..", "/"),
            ("/a%20b/%C3%A4", "/a b/ä"),
            ("/a%2Fb", "/a/b"),
            ("/.site.toml", "/.site.toml"),
            ("/a/.", "/a/"),
        ];
        for (raw, clean) in table {
            assert_eq!(clean_path(raw).as_deref(), Ok(clean), "{raw}");
        }
        for raw in ["/..", "/a/../..", "/%2e%2e/x", "/a%2f..%2f..", "/%", "/%4", "/%zz", "/%00"] {
            assert!(syntax(raw), "{raw} gave {:?}", clean_path(raw));
        }
        assert_eq!(clean_path("/%FF"), Err(BadPath::Nowhere));
        assert!(syntax("*") && syntax(""));
    }

    proptest! {
        #[test]
        fn a_clean_path_never_leads_upwards(raw in "/[a./%2e\\\\]{0,24}") {
            if let Ok(path) = clean_path(&raw) {
                prop_assert!(path.starts_with('/'));
                prop_assert!(path.split('/').all(|segment| segment != ".." && segment != "."));
            }
        }
    }

    #[test]
    fn the_longest_path_wins_by_whole_segments() {
        let routes = Routes::new(
            [("/", 0), ("/cgi/env", 1), ("/sub", 2), ("/sub/deep", 3)]
                .map(|(path, node)| (path.to_owned(), node)),
        );
        let table = [
            ("/", 0, ""),
            ("/index.html", 0, ""),
            ("/cgi/env", 1, "/cgi/env"),
            ("/cgi/env/more", 1, "/cgi/env"),
            ("/cgi/environment", 0, ""),
            ("/sub/", 2, "/sub"),
            ("/sub/deep/x", 3, "/sub/deep"),
        ];
        for (path, node, own) in table {
            let (found, end) = routes.find(path).unwrap();
            assert_eq!((*found, &path[..end]), (node, own), "{path}");
        }
        let lonely = Routes::new([("/hw".to_owned(), 1)]);
        assert!(lonely.find("/").is_none());
    }
}
