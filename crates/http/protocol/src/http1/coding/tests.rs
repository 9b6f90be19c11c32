use super::*;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use proptest::prelude::*;

/// `sample()` compressed by the reference encoder of Brotli, quality 11.
const SAMPLE_BR: &str = "1b3109681c09368e72ab1a3be78633d58708884c5a7cbc358882d95cfe216f0034fcf832d8656946793a6b16\
    c1f2e8052b08a228d9f966f4806f7eff41cf11f7355ce58639ece17e66646d9e6437c7f9f89f802e76bba7b97169fb265f7de41cba816ee6\
    b3af9a5f3cdafce24fcd673ed30be4703e13eff5ab737380b4bdf149ddb6afe8013c477ff18ef33d2d182b6003e9bfd0a20fec067d010fe80ff643b9cc8a59c487e323fb4c687c";
/// 100 MiB of zeros, by the same encoder: 153 bytes.
const BOMB_BR: &str = "cbffff3ff82700e2b14020f7fe8fffff7ff04f00c4611180eefd1fffffffe09f0088c30200ddfb3ffeffffc13f0110870500baf77ffcffff\
    837f02200e0b0074effff8ffff07ff04401c1600e8defff1ffff0ffe0980382c00d0bdffe3ffff1ffc1300715800a07bffc7ffff3ff82700e2b00040f7fe8fffff7ff0\
    4f00c4610180eefd1fffffffe09f0088c30200ddfb3ffeffffc13f0110870500baf77ff9ffff837f02200e0b0074ef7f00";

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn sample() -> Vec<u8> {
    (0..60)
        .flat_map(|i| format!("line {} of a text that repeats itself\n", i * i).into_bytes())
        .collect()
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn zlib(data: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn raw_deflate(data: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn zstd(data: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(data, ruzstd::encoding::CompressionLevel::Fastest)
}

/// Decodes in pieces of `step` bytes; the output of every piece must be available before the end is
/// signaled.
fn decode(encoding: &str, content: &[u8], step: usize) -> Result<Vec<u8>, CodingError> {
    let mut decoder = Decoder::for_encoding(encoding.as_bytes()).unwrap();
    let mut out = Vec::new();
    for piece in content.chunks(step.max(1)) {
        decoder.push(piece, &mut out)?;
    }
    decoder.finish()?;
    Ok(out)
}

/// Returns a coding as named in the field, and the same content by it.
fn every_coding(data: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("gzip", gzip(data)),
        ("X-GZip", gzip(data)),
        ("deflate", zlib(data)),
        ("deflate", raw_deflate(data)),
        ("identity", data.to_vec()),
        ("", data.to_vec()),
        ("zstd", zstd(data)),
        ("deflate, gzip", gzip(&zlib(data))),
        ("Zstd, gzip", gzip(&zstd(data))),
        ("gzip,identity ,\tdeflate", raw_deflate(&gzip(data))),
        ("gzip, gzip, gzip, gzip", gzip(&gzip(&gzip(&gzip(data))))),
    ]
}

#[test]
fn each_coding_is_undone_however_the_content_is_cut() {
    let mut all = every_coding(&sample());
    all.push(("br", unhex(SAMPLE_BR)));
    all.push(("br, gzip", gzip(&unhex(SAMPLE_BR))));
    for (encoding, content) in all {
        for step in [1, 2, 3, 7, 100, content.len()] {
            assert_eq!(
                decode(encoding, &content, step).as_ref(),
                Ok(&sample()),
                "{encoding} by {step}"
            );
        }
    }
}

#[test]
fn content_larger_than_any_buffer_decodes_completely() {
    let data: Vec<u8> =
        (0..100_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
    for (encoding, content) in every_coding(&data) {
        assert!(decode(encoding, &content, 10_000) == Ok(data.clone()), "{encoding}");
        assert!(decode(encoding, &content, content.len()) == Ok(data.clone()), "{encoding}");
    }
}

#[test]
fn several_gzip_members_are_one_content() {
    let two = [gzip(b"one "), gzip(b"two")].concat();
    for step in 1..=two.len() {
        assert_eq!(decode("gzip", &two, step), Ok(b"one two".to_vec()), "by {step}");
    }
}

/// A frame of 5 bytes without a checksum: a single segment with a raw block.
const ZSTD_HELLO: &str = "28b52ffd 2005 290000 68656c6c6f";
/// A frame without content, and 3 bytes to skip (RFC 8878 section 3.1.2).
const ZSTD_SKIPPED: &str = "542a4d18 03000000 010203";

#[test]
fn several_zstd_frames_are_one_content() {
    let all = unhex(&[ZSTD_HELLO, ZSTD_SKIPPED, "502a4d1800000000", ZSTD_HELLO].concat());
    for step in 1..=all.len() {
        assert_eq!(decode("zstd", &all, step), Ok(b"hellohello".to_vec()), "by {step}");
    }
}

/// A frame with a window of 2 MiB and no checksum, up to its first block.
const ZSTD_BEGIN: &str = "28b52ffd 0058";

#[test]
fn a_flushed_zstd_block_is_decoded_at_once() {
    let mut decoder = Decoder::for_encoding(b"zstd").unwrap();
    let mut out = Vec::new();
    // raw blocks: their length times eight, plus one in the last
    for (block, expected) in
        [("280000 68656c6c6f", "hello"), ("080000 2c", "hello,"), ("110000 686f", "hello,ho")]
    {
        let begin = if out.is_empty() { ZSTD_BEGIN } else { "" };
        decoder.push(&unhex(&[begin, block].concat()), &mut out).unwrap();
        assert_eq!(out, expected.as_bytes());
    }
    assert_eq!(decoder.finish(), Ok(()));
}

#[test]
fn zstd_content_above_its_window_is_whole() {
    let mut decoder = Decoder::for_encoding(b"zstd").unwrap();
    let (mut frame, mut expected, mut out) = (unhex(ZSTD_BEGIN), Vec::new(), Vec::new());
    for row in 0..60_u8 {
        // a run of 128 KiB: of type 1
        let header = (128_u32 << 10) << 3 | 1 << 1 | u32::from(row == 59);
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        frame.push(row);
        expected.resize(expected.len() + (128 << 10), row);
        decoder.push(&frame, &mut out).unwrap();
        assert!(out.len() == expected.len() || row > 23, "run {row} is late: {}", out.len());
        frame.clear();
    }
    assert_eq!(decoder.finish(), Ok(()));
    assert!(out == expected);
}

/// RFC 9659: a window of more than 8 MB is not the content coding.
#[test]
fn a_zstd_window_of_more_than_8_mib_is_refused() {
    let frame = |window: &str| unhex(&format!("28b52ffd 00{window} 290000 68656c6c6f"));
    assert_eq!(decode("zstd", &frame("68"), 9), Ok(b"hello".to_vec()));
    assert_eq!(decode("zstd", &frame("69"), 9), Err(CodingError::Broken("zstd")));
}

#[test]
fn unknown_codings_and_endless_chains_are_refused() {
    for encoding in
        ["zstd2", "compress", "gzip, exi", "gzip;q=1", "gzip, gzip, gzip, gzip, gzip", "\u{ff}"]
    {
        assert!(Decoder::for_encoding(encoding.as_bytes()).is_none(), "{encoding}");
    }
}

#[test]
fn no_content_at_all_is_empty_content() {
    for encoding in ["gzip", "deflate", "br", "zstd", "gzip, br", "identity"] {
        assert_eq!(decode(encoding, b"", 1), Ok(Vec::new()), "{encoding}");
    }
}

#[test]
fn a_stream_cut_anywhere_is_truncated() {
    let mut all = every_coding(b"some content, short");
    all.push(("br", unhex(SAMPLE_BR)));
    for (encoding, content) in all {
        if matches!(encoding, "identity" | "") {
            continue;
        }
        for cut in 1..content.len() {
            let error = decode(encoding, &content[..cut], 5).unwrap_err();
            assert!(matches!(error, CodingError::Truncated(_)), "{encoding} at {cut}: {error}");
        }
    }
}

#[test]
fn damage_and_trailing_bytes_are_found() {
    let mut flipped = gzip(&sample());
    let checksum = flipped.len() - 8;
    flipped[checksum] ^= 1;
    let mut zstd_flipped = zstd(&sample());
    *zstd_flipped.last_mut().unwrap() ^= 1;
    let broken = [
        ("zstd", zstd_flipped),
        ("zstd", b"this is no zstd stream".to_vec()),
        ("zstd", [zstd(b"x"), b"extra bytes after".to_vec()].concat()),
        ("gzip", flipped),
        ("gzip", b"this is no gzip stream".to_vec()),
        ("gzip", [gzip(b"x"), b"extra bytes after".to_vec()].concat()),
        ("deflate", [zlib(b"x"), b"y".to_vec()].concat()),
        ("deflate", [raw_deflate(b"x"), b"y".to_vec()].concat()),
        ("deflate", b"\xff\xff\xff\xff".to_vec()),
        ("br", [unhex(SAMPLE_BR), b"y".to_vec()].concat()),
        ("br", b"\xff\xff\xff\xff\xff\xff".to_vec()),
    ];
    for (encoding, content) in broken {
        for step in [1, 4, content.len()] {
            let error = decode(encoding, &content, step).unwrap_err();
            assert!(!matches!(error, CodingError::TooLarge(_)), "{encoding}: {error}");
        }
    }
}

#[test]
fn a_failed_decoder_stays_failed() {
    let mut decoder = Decoder::for_encoding(b"gzip").unwrap();
    let mut out = Vec::new();
    let error = decoder.push(b"this is no gzip stream", &mut out).unwrap_err();
    assert_eq!(decoder.push(&gzip(b"x"), &mut out), Err(error));
    assert_eq!(decoder.finish(), Err(error));
    assert!(out.is_empty());
}

#[test]
fn output_is_bounded_to_the_byte() {
    let data = vec![0u8; 1 << 20];
    let mut bombs = every_coding(&data);
    bombs.push(("br", unhex(BOMB_BR)));
    for (encoding, content) in bombs {
        let max = (1 << 20) - 1;
        let mut decoder = Decoder::with_output_max(encoding.as_bytes(), max).unwrap();
        let mut out = Vec::new();
        assert_eq!(decoder.push(&content, &mut out), Err(CodingError::TooLarge(max)), "{encoding}");
        assert!(out.len() as u64 <= max, "{encoding}: {}", out.len());
        if encoding != "br" {
            let mut decoder = Decoder::with_output_max(encoding.as_bytes(), max + 1).unwrap();
            assert_eq!(decoder.push(&content, &mut Vec::new()), Ok(()), "{encoding}");
            assert_eq!(decoder.finish(), Ok(()), "{encoding}");
        }
    }
    let mut usual = Decoder::for_encoding(b"br").unwrap();
    let bombed = usual.push(&unhex(BOMB_BR), &mut Vec::new());
    assert_eq!(bombed, Err(CodingError::TooLarge(OUTPUT_MAX)));
}

#[test]
fn an_inner_stage_is_bounded_too() {
    let inner = gzip(&gzip(&vec![0u8; 1 << 20]));
    let mut decoder = Decoder::with_output_max(b"gzip, gzip", 500).unwrap();
    assert_eq!(decoder.push(&inner, &mut Vec::new()), Err(CodingError::TooLarge(500)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_content_survives_random_cuts(data in proptest::collection::vec(any::<u8>(), 0..1_500), step in 1usize..500) {
        for (encoding, content) in every_coding(&data) {
            prop_assert_eq!(decode(encoding, &content, step), Ok(data.clone()));
        }
    }

    #[test]
    fn random_bytes_never_panic(
        encoding in prop::sample::select(vec!["gzip", "deflate", "br", "zstd", "br, deflate", "gzip, br"]),
        mut data in proptest::collection::vec(any::<u8>(), 0..600),
        valid in any::<bool>(),
        step in 1usize..200,
    ) {
        if valid && data.len() > 2 && encoding == "gzip" {
            data = [&gzip(&data)[..], &data].concat();
            let at = data.len() / 2;
            data[at] ^= 0x10;
        }
        let mut decoder = Decoder::with_output_max(encoding.as_bytes(), 100_000).unwrap();
        let mut out = Vec::new();
        let failed = data.chunks(step).any(|piece| decoder.push(piece, &mut out).is_err());
        prop_assert!(!failed || decoder.finish().is_err());
        prop_assert!(out.len() <= 100_000);
    }
}
