//! Masking of payloads (RFC 6455 section 5.3).

/// Source of the keys that a client masks its frames with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Masking {
    /// Frames are not masked: the rule for servers.
    Off,
    /// Every key is zero, which leaves payloads plain.
    Zero,
    /// Keys from a generator with this state.
    Random(u64),
}

impl Masking {
    /// Returns the next key; `None` if frames are not masked.
    pub fn next_key(&mut self) -> Option<[u8; 4]> {
        match self {
            Masking::Off => None,
            Masking::Zero => Some([0; 4]),
            Masking::Random(state) => {
                // SplitMix64 (Steele, Lea, Flood 2014)
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut z = *state;
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                Some(((z >> 32) as u32).to_be_bytes())
            }
        }
    }
}

/// Masks or unmasks `bytes`, the first of which is byte `offset` of its payload.
pub fn apply_mask(key: [u8; 4], offset: u64, bytes: &mut [u8]) {
    if key == [0; 4] {
        return;
    }
    let turn = (offset % 4) as u32;
    let key = u32::from_le_bytes(key).rotate_right(8 * turn);
    let wide = u64::from(key) | u64::from(key) << 32;
    let mut words = bytes.chunks_exact_mut(8);
    for word in &mut words {
        let mut eight = [0; 8];
        eight.copy_from_slice(word);
        word.copy_from_slice(&(u64::from_le_bytes(eight) ^ wide).to_le_bytes());
    }
    for (byte, key) in words.into_remainder().iter_mut().zip(wide.to_le_bytes()) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masking_equals_the_definition_at_every_offset_and_length() {
        let key = [0x37, 0xfa, 0x21, 0x3d];
        for offset in 0..9_u64 {
            for length in 0..40_usize {
                let plain: Vec<u8> = (0..length as u8).collect();
                let mut masked = plain.clone();
                apply_mask(key, offset, &mut masked);
                let wanted: Vec<u8> = plain
                    .iter()
                    .enumerate()
                    .map(|(i, byte)| byte ^ key[(offset as usize + i) % 4])
                    .collect();
                assert_eq!(masked, wanted, "offset {offset}, length {length}");
            }
        }
    }

    #[test]
    fn random_keys_differ_and_repeat_with_their_seed() {
        let keys = |seed| {
            let mut masking = Masking::Random(seed);
            [masking.next_key(), masking.next_key(), masking.next_key()]
        };
        assert_eq!(keys(7), keys(7));
        assert_ne!(keys(7), keys(8));
        assert_ne!(keys(7)[0], keys(7)[1]);
    }
}
