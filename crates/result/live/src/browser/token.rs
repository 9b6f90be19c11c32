//! The secret for browsers on other machines.

use anyhow::Context;
use std::fs::File;
use std::io::Read;
use subtle::ConstantTimeEq;

/// Number of random bytes in a token.
const TOKEN_BYTES: usize = 16;

/// 128 bits from the kernel, in hexadecimal.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// # Errors
    /// Fails if the kernel returns no random bytes.
    pub fn new() -> anyhow::Result<Token> {
        let mut bytes = [0; TOKEN_BYTES];
        let source = "/dev/urandom";
        let mut file = File::open(source).with_context(|| format!("cannot open {source}"))?;
        file.read_exact(&mut bytes).with_context(|| format!("cannot read {source}"))?;
        Ok(Token(units::hex(bytes)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares in constant time for tokens of the same length.
    pub fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}
