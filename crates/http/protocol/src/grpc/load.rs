//! Load reports of back ends (ORCA): the trailer `endpoint-load-metrics-bin`.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use sample::LoadReport;

/// Name of the trailer.
pub const LOAD_TRAILER: &str = "endpoint-load-metrics-bin";

/// Maximum number of bytes read of a value.
const VALUE_MAX: usize = 16 << 10;

/// Base64 with or without padding: receivers of gRPC accept both.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Returns the report in the value of a trailer: `xds.data.orca.v3.OrcaLoadReport`. `None` if it
/// cannot be read. Unknown fields, and maps of named figures, are skipped.
pub fn load_report(value: &[u8]) -> Option<LoadReport> {
    let value = Some(value).filter(|value| value.len() <= VALUE_MAX)?;
    let bytes = BASE64.decode(value).ok()?;
    let (mut rest, mut report) = (&bytes[..], LoadReport::default());
    while !rest.is_empty() {
        let tag = varint(&mut rest)?;
        let figure = match (tag >> 3, tag & 7) {
            (_, 1) => f64::from_le_bytes(take(&mut rest)?),
            (_, 0) => varint(&mut rest)? as f64,
            (_, 2) => {
                let length = usize::try_from(varint(&mut rest)?).ok()?;
                rest = rest.get(length..)?;
                continue;
            }
            (_, 5) => {
                take::<4>(&mut rest)?;
                continue;
            }
            _ => return None,
        };
        match (tag >> 3, tag & 7) {
            (1, 1) => report.cpu = figure,
            (2, 1) => report.memory = figure,
            // the integer is the older form of the same figure
            (3, 0) if report.requests_per_s == 0.0 => report.requests_per_s = figure,
            (6, 1) => report.requests_per_s = figure,
            (7, 1) => report.errors_per_s = figure,
            (9, 1) => report.application = figure,
            _ => {}
        }
    }
    Some(report)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, more) = rest.split_first_chunk()?;
    *rest = more;
    Some(*first)
}

/// Takes an integer of a Protobuf message: at most ten bytes, seven bits in each. `None` if it does
/// not end.
pub fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let [byte] = take(rest)?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn double(field: u8, value: f64) -> Vec<u8> {
        [&[field << 3 | 1][..], &value.to_le_bytes()].concat()
    }

    #[test]
    fn a_report_is_read_with_and_without_padding() {
        let map = [0x22, 0x03, 0x0a, 0x01, b'a'];
        let fields = [double(1, 0.25), map.to_vec(), double(6, 120.5), double(9, 0.5)].concat();
        let text = BASE64.encode(&fields);
        let report = LoadReport {
            cpu: 0.25,
            requests_per_s: 120.5,
            application: 0.5,
            ..LoadReport::default()
        };
        assert_eq!(load_report(text.as_bytes()), Some(report));
        assert_eq!(load_report(text.trim_end_matches('=').as_bytes()), Some(report));
        assert_eq!(load_report(b""), Some(LoadReport::default()));
        let older = load_report(BASE64.encode([0x18, 0xac, 0x02]).as_bytes());
        assert_eq!(older.map(|it| it.requests_per_s), Some(300.0));
    }

    #[test]
    fn other_content_is_not_parsed_as_a_report() {
        let whole = double(1, 0.25);
        for cut in 1..whole.len() {
            assert_eq!(load_report(BASE64.encode(&whole[..cut]).as_bytes()), None, "{cut}");
        }
        let long = BASE64.encode([0xff; 12]);
        for text in ["%", "=", "\u{e9}", &long, "IgU="] {
            assert_eq!(load_report(text.as_bytes()), None, "{text}");
        }
    }
}
