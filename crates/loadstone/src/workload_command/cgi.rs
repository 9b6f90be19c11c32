//! `loadstone workload cgi`: SPECweb99's dynamic page as a CGI program (RFC 3875).

use crate::exit::{Code, Failure};
use args::CgiArgs;
use session::console::text_variable;
use units::Seed;
use workload::fileset::specweb99::{
    Advertising, DYNAMIC_TYPE, DynamicQuery, PageHead, Visitor, page_of_file,
};

/// Answers the request described by the environment.
pub(super) fn answer(args: &CgiArgs) -> Result<Code, Failure> {
    let meta = |name: &str| text_variable(name).unwrap_or_default();
    if meta("GATEWAY_INTERFACE").is_empty() {
        return Err(Failure::usage(
            "this program is run by a web server, which sets GATEWAY_INTERFACE and further \
             variables (CGI, RFC 3875): configure it there; `loadstone site --files \
             specweb99-like` calls it",
        ));
    }
    let directories = args.directories()?;
    if meta("REQUEST_METHOD") != "GET" {
        return write("Status: 405 Method Not Allowed\r\nAllow: GET\r\n", Vec::new());
    }
    let (software, remote) = (meta("SERVER_SOFTWARE"), meta("REMOTE_ADDR"));
    let (script, query) = (meta("SCRIPT_NAME"), meta("QUERY_STRING"));
    let name = match DynamicQuery::parse(&query) {
        Some(DynamicQuery::File(name)) if u64::from(name.directory) < directories => name,
        _ => return write("Status: 404 Not Found\r\n", b"There is no such file.\n".to_vec()),
    };
    let visitor = Visitor::parse(&meta("HTTP_COOKIE"));
    let head =
        PageHead { software: &software, remote: &remote, script: &script, query: &query, visitor };
    let seed = Seed(args.seed);
    let ads = visitor.map(|_| Advertising::new(seed));
    let (page, shown) = page_of_file(seed, &head, name, ads.as_ref());
    let cookie = shown.map_or_else(String::new, |shown| format!("Set-Cookie: {shown}\r\n"));
    write(&cookie, page)
}

/// Writes the head of the response with these fields, and its content.
fn write(fields: &str, content: Vec<u8>) -> Result<Code, Failure> {
    let mut response = format!("Content-Type: {DYNAMIC_TYPE}\r\n{fields}\r\n").into_bytes();
    response.extend(content);
    crate::print(&response)
}
