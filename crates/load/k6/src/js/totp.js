// One-time passwords by time (RFC 6238): jslib's `totp`.
import { hmac } from 'k6/crypto';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const STEP_S = 30;

function fromBase32(text) {
  const bytes = [];
  let bits = 0, value = 0;
  for (const letter of String(text).toUpperCase().replace(/[\s=-]/g, '')) {
    const digit = ALPHABET.indexOf(letter);
    if (digit < 0) throw new Error(`"${letter}" is not a letter of Base32: the secret of TOTP has letters and the digits 2 to 7`);
    value = (value << 5) | digit;
    bits += 5;
    if (bits >= 8) { bits -= 8; bytes.push((value >>> bits) & 255); }
  }
  return new Uint8Array(bytes).buffer;
}

export class TOTP {
  constructor(secret, digits = 6) {
    this.secret = fromBase32(secret);
    this.digits = Number(digits);
  }
  code(step) {
    const counter = new Uint8Array(8);
    for (let at = 7, rest = step; at >= 0; at--, rest = Math.floor(rest / 256)) counter[at] = rest % 256;
    const mac = new Uint8Array(hmac('sha1', this.secret, counter.buffer, 'binary'));
    const from = mac[19] & 15;
    const number = ((mac[from] & 127) * 0x1000000) + (mac[from + 1] << 16 | mac[from + 2] << 8 | mac[from + 3]);
    return String(number % 10 ** this.digits).padStart(this.digits, '0');
  }
  async gen(at = Date.now()) { return this.code(Math.floor(at / 1000 / STEP_S)); }
  // The code of the step before is accepted as well.
  async verify(code, at = Date.now()) {
    const step = Math.floor(at / 1000 / STEP_S);
    return [step, step - 1].some((one) => this.code(one) === String(code));
  }
}
export default { TOTP };
