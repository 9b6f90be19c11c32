//! Numbers as text, written for each call of a load.

/// Digits of the largest number.
pub(crate) const DIGITS_MAX: usize = 20;

/// Writes the decimal digits into `buffer` and returns them. `write!` takes four times as long, and
/// `to_string` allocates.
pub(crate) fn decimal_digits(number: u64, buffer: &mut [u8; DIGITS_MAX]) -> &str {
    let (mut at, mut rest) = (DIGITS_MAX, number);
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    str::from_utf8(&buffer[at..]).expect("digits are ASCII")
}

/// Appends the decimal digits.
pub(crate) fn put_decimal(number: u64, out: &mut String) {
    out.push_str(decimal_digits(number, &mut [0; DIGITS_MAX]));
}

#[cfg(test)]
mod tests {
    #[test]
    fn digits_are_those_of_the_standard_library() {
        for number in [0, 7, 10, 99, 100, 1_234_567_890, u64::MAX] {
            let mut text = "x".to_owned();
            super::put_decimal(number, &mut text);
            assert_eq!(text, format!("x{number}"));
        }
    }
}
