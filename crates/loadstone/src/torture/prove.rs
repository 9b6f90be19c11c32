//! `loadstone torture prove`: prints the text with which the owner of a public server permits this
//! installation to test it.

use crate::exit::{Code, Failure};
use crate::files;
use args::ProveArgs;
use torture::safety::Class;
use torture::safety::proof::{Day, FILE_PATH, Proof, txt_name};
use world::{key, owner};

/// Maximum length of a string in a TXT record (RFC 1035 section 3.3).
const STRING_MAX: usize = 255;

pub(super) fn prove(args: &ProveArgs) -> Result<Code, Failure> {
    let usual = Class::Public.usual();
    let today = crate::wall_clock::unix_seconds() as i64;
    let not_after = Day::from_unix_seconds(today, i64::from(args.days))
        .ok_or_else(|| Failure::usage("the clock of this machine shows no valid date"))?;
    let proof = Proof {
        tester: key::fingerprint(&key::folder()?)?,
        host: owner::host_of(&args.url),
        groups: args.groups.clone(),
        connections_max: usual.connections_max,
        opens_max: usual.opens_max,
        bytes_max: usual.bytes_max.unwrap_or_default(),
        window: None,
        not_after,
        contact: args.contact.clone(),
        behind: Proof::parse_provider(&args.behind).map_err(|why| {
            Failure::usage(format!("--behind {}: {why}", units::quoted(&args.behind)))
        })?,
    };
    // a proof must be parsable
    let text = proof.to_file();
    Proof::parse(text.as_bytes())
        .map_err(|error| Failure::usage(format!("cannot create a proof: {error}")))?;
    let host = args.url.host_str().unwrap_or_default();
    let text = if args.txt { zone_line(host, &proof.to_txt()) } else { text };
    files::write_stdout(&text).map_err(|error| Failure::not_written(&error))?;
    let place = match args.txt {
        true => "Publish this line in the DNS zone of the name.".to_owned(),
        false => {
            let origin = args.url.origin().ascii_serialization();
            format!(
                "Publish this text as {origin}{FILE_PATH} on every address of {host}, or as TXT at \
                 {} (--txt). Edit it to permit less or more; remove it and the test stops within a \
                 minute.",
                txt_name(host)
            )
        }
    };
    // a hint for people; a failure to print it is harmless
    crate::print_message(&place);
    Ok(Code::Done)
}

/// Returns a TXT record in zone file format (RFC 1035 section 5.1), split into strings of permitted
/// length.
fn zone_line(host: &str, text: &str) -> String {
    let escaped = |piece: &[u8]| {
        let text = String::from_utf8_lossy(piece).replace('\\', "\\\\").replace('"', "\\\"");
        format!("\"{text}\"")
    };
    let strings: Vec<String> = text.as_bytes().chunks(STRING_MAX).map(escaped).collect();
    format!("{}. 300 IN TXT {}\n", txt_name(host), strings.join(" "))
}
