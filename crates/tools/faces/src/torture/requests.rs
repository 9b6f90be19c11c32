//! Requests with random data, generated before the run.

use super::options::Options;
use plan::TargetPlan;
use torture::fuzz;
use units::{Purpose, Seed};
use url::{Position, Url};

/// Seed of all random data; torture.pl had no option for it.
const SEED: u64 = 1;
/// Bytes of random data held in memory.
const DATA_MAX: u64 = 1 << 30;

/// Requests, with the number of random bytes that each carries.
pub(super) struct Made {
    pub(super) targets: Vec<TargetPlan>,
    pub(super) sent: Vec<u64>,
}

/// Makes a request for each access, to one of `places` (at least one) drawn by weight.
///
/// # Errors
/// Fails if it does not fit into memory.
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
        let data = fuzz::classic_data(SEED, case(options), index, u64::from(options.length));
        let url = &pick_place(places, weights, index).url;
        made.sent.push(data.len() as u64);
        made.targets.push(TargetPlan {
            method: Some(if options.post { "POST" } else { "GET" }.to_owned()),
            raw: Some(request(options, url, &data)),
            ..TargetPlan::new(url.clone())
        });
    }
    Ok(made)
}

/// Returns the place of access `index`: the same for the same list, independent of the data.
fn pick_place(places: &[TargetPlan], weights: f64, index: u64) -> &TargetPlan {
    let mut point = Seed(SEED).stream(Purpose::Torture, index).unit() * weights;
    let hit = places.iter().find(|place| {
        point -= place.weight;
        point < 0.0
    });
    hit.unwrap_or(&places[places.len() - 1])
}

/// Returns the case whose data is sent: `loadstone torture --only F-01 --seed 1` draws the same.
fn case(options: &Options) -> &'static str {
    match (options.raw, options.post, options.in_path) {
        (true, ..) => "F-04",
        (_, true, _) => "F-03",
        (.., true) => "F-02",
        _ => "F-01",
    }
}

fn request(options: &Options, url: &Url, data: &[u8]) -> Vec<u8> {
    let path = &url[Position::BeforePath..Position::AfterQuery];
    let host = url.host_str().unwrap_or_default();
    let shown = if options.raw { data.to_vec() } else { fuzz::escaped(data).into_bytes() };
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

#[cfg(test)]
mod tests {
    use super::*;
    use dialogue::talk::Move;
    use dialogue::text::Values;
    use torture::catalogue;

    #[test]
    fn the_data_is_that_of_the_torture_suite() {
        let cases = catalogue::cases().unwrap();
        let values = Values { path: "/".into(), post: "/p".into(), ..Values::default() };
        for id in ["F-01", "F-02", "F-03", "F-04"] {
            let case = cases.iter().find(|case| case.id == id).unwrap();
            let random = case.fuzz.as_ref().unwrap();
            for index in [0, 42] {
                let shot = fuzz::shot(SEED, id, case.version, random, index, &values, "");
                let Some(Move::Send(sent)) = shot.moves.first() else { panic!("{shot:?}") };
                let data = fuzz::classic_data(SEED, id, index, random.length);
                let shown = match id {
                    "F-01" | "F-02" => fuzz::escaped(&data).into_bytes(),
                    _ => data,
                };
                let found = sent.windows(shown.len()).any(|part| part == shown);
                assert!(found && !shown.is_empty(), "{id} {index}");
            }
        }
    }
}
