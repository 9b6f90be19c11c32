//! The file of URLs: comments, variables, one URL per line.

use super::address::{Address, Unusable};
use super::config::Config;
use super::rc;
use crate::Files;
use std::collections::BTreeMap;

/// Longer lines are skipped.
const LINE_MAX: usize = 4_096;

/// Reads the URLs of a file, with their rows. A variable is known from its line on. Complaints
/// about files of bodies are appended to `output`.
pub(super) fn read(
    text: &str,
    config: &Config,
    files: &dyn Files,
    output: &mut String,
) -> Result<Vec<Address>, Unusable> {
    let mut variables = BTreeMap::new();
    let mut urls = Vec::new();
    for line in text.lines().filter(|line| line.len() < LINE_MAX) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let name = line.split('=').next().unwrap_or(line);
        let names = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
        if name.len() < line.len() && name.chars().all(names) {
            let (name, value) = rc::split(line);
            variables.insert(name.to_owned(), value.to_owned());
            continue;
        }
        let line = rc::evaluated(line, &variables, files);
        let mut address = Address::parse(&line, config, files, output)?;
        address.row = urls.len() as u32;
        urls.push(address);
    }
    Ok(urls)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemError;

    struct Nothing;

    impl Files for Nothing {
        fn read(&self, _: &str) -> Result<Vec<u8>, SystemError> {
            Err(SystemError { number: 2, text: "No such file or directory".into() })
        }
    }

    #[test]
    fn comments_and_variables_leave_urls() {
        let text = format!(
            "# a list\nHOST=h:81\nEMPTY=\n\n http://$(HOST)/1 \n${{HOST}}/2\nhttp://$(HOST)/3?a=b\n\
             http://h/4 POST x=$(HOST)&y=\\$5\nhttp://h/{}\n",
            "x".repeat(LINE_MAX)
        );
        let mut output = String::new();
        let urls = read(&text, &Config::default(), &Nothing, &mut output).expect("all are good");
        let shown: Vec<&str> = urls.iter().map(|url| url.shown.as_str()).collect();
        assert_eq!(shown, ["http://h:81/1", "http://h:81/2", "http://h:81/3?a=b", "http://h/4"]);
        let body = urls[3].body.as_ref().expect("a POST");
        assert_eq!(body.bytes, b"x=h:81&y=$5");
        assert_eq!(urls.iter().map(|url| url.row).collect::<Vec<u32>>(), [0, 1, 2, 3]);
    }
}
