//! Requests with random data, all of them made before the run.

use super::options::Options;
use plan::TargetPlan;
use units::{Purpose, Seed};
use url::{Position, Url};

/// Bytes of random data held in memory.
const DATA_MAX: u64 = 1 << 30;

/// Requests, and how many bytes of random data each carries.
pub(super) struct Made {
    pub(super) targets: Vec<TargetPlan>,
    pub(super) sent: Vec<u64>,
}

/// One request for each access, to one of `places` (at least one), drawn by their weights.
///
/// # Errors
/// More than fits into memory.
pub(super) fn make(options: &Options, places: &[TargetPlan]) -> Result<Made, String> {
    let count = u64::from(options.copies) * u64::from(options.times);
    // escaped data is up to three times as long
    if count.saturating_mul(u64::from(options.length) * 3 + 256) > DATA_MAX {
        return Err(format!(
            "{count} requests with up to {} bytes of random data do not fit into 1 GiB; lower -l, \
             -t or -c",
            options.length
        ));
    }
    let weights: f64 = places.iter().map(|place| place.weight).sum();
    let mut made = Made { targets: Vec::new(), sent: Vec::new() };
    for index in 0..count {
        let data = random_data(options.length, index);
        let url = &drawn(places, weights, index).url;
        made.sent.push(data.len() as u64);
        made.targets.push(TargetPlan {
            method: Some(if options.post { "POST" } else { "GET" }.to_owned()),
            raw: Some(request(options, url, &data)),
            ..TargetPlan::new(url.clone())
        });
    }
    Ok(made)
}

/// The place that access `index` goes to: the same for the same list, whatever the data.
fn drawn(places: &[TargetPlan], weights: f64, index: u64) -> &TargetPlan {
    let mut point = Seed(1).stream(Purpose::Torture, index).unit() * weights;
    let hit = places.iter().find(|place| {
        point -= place.weight;
        point < 0.0
    });
    hit.unwrap_or(&places[places.len() - 1])
}

/// Fewer than `below` bytes, each from 0 to 254: `rand` in Perl never gives its argument.
fn random_data(below: u32, index: u64) -> Vec<u8> {
    let mut random = Seed(1).stream(Purpose::Targets, index);
    let length = (random.unit() * f64::from(below)) as usize;
    (0..length).map(|_| (random.unit() * 255.0) as u8).collect()
}

fn request(options: &Options, url: &Url, data: &[u8]) -> Vec<u8> {
    let path = &url[Position::BeforePath..Position::AfterQuery];
    let host = url.host_str().unwrap_or_default();
    let shown = if options.raw { data.to_vec() } else { escaped(data).into_bytes() };
    let mut out = Vec::new();
    if options.post {
        out.extend_from_slice(format!("POST {path}").as_bytes());
    } else {
        out.extend_from_slice(format!("GET {path}").as_bytes());
        if options.length > 0 {
            out.push(if options.in_path { b'/' } else { b'?' });
            out.extend_from_slice(&shown);
        }
    }
    out.extend_from_slice(format!(" HTTP/1.1\r\nHost: {host}\r\n").as_bytes());
    if options.post {
        let length = shown.len();
        let fields = "Content-type: application/octet-stream";
        out.extend_from_slice(format!("{fields}\r\nContent-length: {length}\r\n\r\n").as_bytes());
        out.extend_from_slice(&shown);
    } else {
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// Everything that a URL does not hold as it is becomes `%XX`.
fn escaped(data: &[u8]) -> String {
    let mut out = String::with_capacity(data.len() * 3);
    for byte in data {
        if byte.is_ascii_alphanumeric() || b";/?:@&=+$,-_.!~*'()".contains(byte) {
            out.push(char::from(*byte));
        } else {
            put!(out, "%{byte:02X}");
        }
    }
    out
}
