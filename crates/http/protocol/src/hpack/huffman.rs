//! Strings by Huffman's code (RFC 7541 section 5.2), read four bits at a time.

mod table;

use std::sync::LazyLock;
use table::CODES;

/// Code of the end of a string: it may not occur in one; only its beginning may, as padding.
const END: u16 = 256;

/// Returns the number of bytes of the text when it is coded.
pub fn coded_len(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|byte| usize::from(CODES[usize::from(*byte)].1)).sum();
    bits.div_ceil(8)
}

/// Appends the encoded text to `out`.
pub fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0_u64, 0_u32);
    for byte in text {
        let (code, length) = CODES[usize::from(*byte)];
        bits = bits << length | u64::from(code);
        count += u32::from(length);
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        // the rest is filled with ones, the beginning of the end's code
        out.push((bits << (8 - count)) as u8 | (0xff >> count) as u8);
    }
}

/// Step of decoding: four bits.
#[derive(Clone, Copy, Debug, Default)]
struct NibbleStep {
    next: u16,
    /// Byte that is complete after this step, if any.
    byte: Option<u8>,
    /// True if no string has these bits.
    broken: bool,
}

/// State after some bits of a byte's code.
#[derive(Debug)]
struct CodeState {
    steps: [NibbleStep; 16],
    /// True if a string may end here: the incomplete code is less than a byte of ones.
    ends: bool,
}

static STATES: LazyLock<Vec<CodeState>> = LazyLock::new(build);

/// Returns the binary tree of the code, made into steps of four bits.
fn build() -> Vec<CodeState> {
    // children, or a symbol, of each inner node; 0 is the root
    let mut tree: Vec<[Option<Result<usize, u16>>; 2]> = vec![[None; 2]];
    let mut padding = vec![0];
    for (symbol, (code, length)) in CODES.iter().enumerate() {
        let mut at = 0;
        for bit in (0..*length).rev() {
            let side = (code >> bit & 1) as usize;
            if bit == 0 {
                tree[at][side] = Some(Err(symbol as u16));
                break;
            }
            at = match tree[at][side] {
                Some(Ok(next)) => next,
                _ => {
                    tree.push([None; 2]);
                    let next = tree.len() - 1;
                    tree[at][side] = Some(Ok(next));
                    next
                }
            };
            if symbol as u16 == END && length - bit < 8 {
                padding.push(at);
            }
        }
    }
    let node = |start: usize| {
        let mut steps = [NibbleStep::default(); 16];
        for (four, step) in steps.iter_mut().enumerate() {
            let mut at = start;
            for bit in (0..4).rev() {
                match tree[at][four >> bit & 1] {
                    Some(Ok(next)) => at = next,
                    Some(Err(END)) | None => step.broken = true,
                    Some(Err(symbol)) => {
                        step.byte = Some(symbol as u8);
                        at = 0;
                    }
                }
            }
            step.next = at as u16;
        }
        CodeState { steps, ends: padding.contains(&start) }
    };
    (0..tree.len()).map(node).collect()
}

/// Appends the decoded text to `out`. `None` if the code is invalid or the text exceeds `max`
/// bytes.
pub fn decode(code: &[u8], max: usize, out: &mut Vec<u8>) -> Option<()> {
    let nodes = &*STATES;
    let (mut at, start) = (0, out.len());
    for byte in code {
        for four in [byte >> 4, byte & 15] {
            let step = nodes[at].steps[usize::from(four)];
            if step.broken {
                return None;
            }
            out.extend(step.byte);
            at = usize::from(step.next);
        }
        if out.len() - start > max {
            return None;
        }
    }
    nodes[at].ends.then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 7541 appendix C.4.1 and C.6.1.
    #[test]
    fn the_standard_s_examples() {
        for (text, code) in [
            ("www.example.com", "f1e3c2e5f23a6ba0ab90f4ff"),
            ("no-cache", "a8eb10649cbf"),
            ("302", "6402"),
            ("https://www.example.com", "9d29ad171863c78f0b97c8e9ae82ae43d3"),
        ] {
            let mut coded = Vec::new();
            encode(text.as_bytes(), &mut coded);
            let hex: String = coded.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!((hex.as_str(), coded.len()), (code, coded_len(text.as_bytes())));
            let mut back = Vec::new();
            assert_eq!(decode(&coded, 100, &mut back), Some(()));
            assert_eq!(back, text.as_bytes());
        }
    }

    #[test]
    fn an_invalid_code_is_refused() {
        // a whole byte of padding; padding with a zero; the end's own code; too long
        for (code, max) in [
            (&[0x64, 0x02, 0xff][..], 9),
            (&[0x64], 9),
            (&[0xff, 0xff, 0xff, 0xff], 9),
            (&[0x64, 0x02], 2),
        ] {
            assert_eq!(decode(code, max, &mut Vec::new()), None, "{code:x?}");
        }
    }

    proptest! {
        #[test]
        fn every_text_round_trips(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let (mut coded, mut back) = (Vec::new(), Vec::new());
            encode(&text, &mut coded);
            prop_assert_eq!(coded.len(), coded_len(&text));
            prop_assert_eq!(decode(&coded, 1_000, &mut back), Some(()));
            prop_assert_eq!(back, text);
        }

        #[test]
        fn no_bytes_make_it_panic(code in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut out = Vec::new();
            decode(&code, 1_000, &mut out);
            prop_assert!(out.len() <= 1_002);
        }
    }
}
