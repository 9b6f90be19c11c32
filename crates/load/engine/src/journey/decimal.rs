//! Numbers as text, written for each call of a load.

/// Digits of the largest number.
const DIGITS_MAX: usize = 20;

/// Appends the decimal digits. `write!` does the same at four times the cost.
pub(super) fn put_decimal(number: u64, out: &mut String) {
    let (mut digits, mut at, mut rest) = ([b'0'; DIGITS_MAX], DIGITS_MAX, number);
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.push_str(str::from_utf8(&digits[at..]).expect("digits are ASCII"));
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
