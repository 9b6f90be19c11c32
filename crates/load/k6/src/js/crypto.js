// k6/encoding, k6/crypto and the parts of WebCrypto without keys.
(function (k6) {
'use strict';
const { n, modules, buffer } = k6.api;

modules['k6/encoding'] = {
  b64encode: (data, form) => n.b64encode(buffer(data), String(form || 'std')),
  b64decode: (data, form, format) => {
    const bytes = n.b64decode(String(data), String(form || 'std'));
    return format === 's' ? n.text(bytes) : bytes;
  },
};

const ALGORITHMS = ['md4', 'md5', 'sha1', 'sha256', 'sha384', 'sha512', 'sha512_224', 'sha512_256', 'ripemd160'];
function encoded(bytes, form) {
  switch (form) {
    case 'hex': return n.hex(bytes);
    case 'base64': return n.b64encode(bytes, 'std');
    case 'base64url': return n.b64encode(bytes, 'url');
    case 'base64rawurl': return n.b64encode(bytes, 'rawurl');
    case 'binary': return bytes;
    default: throw new Error('Invalid output encoding: ' + form);
  }
}
function known(algorithm) {
  if (!ALGORITHMS.includes(algorithm)) throw new Error('Invalid algorithm: ' + algorithm);
}
class Hasher {
  constructor(algorithm, key) {
    known(algorithm);
    this.algorithm = algorithm;
    this.key = key === undefined ? null : buffer(key);
    this.parts = [];
  }
  update(data) { this.parts.push(buffer(data)); }
  digest(form) {
    let length = 0;
    for (const part of this.parts) length += part.byteLength;
    const all = new Uint8Array(length);
    let at = 0;
    for (const part of this.parts) { all.set(new Uint8Array(part), at); at += part.byteLength; }
    return encoded(n.hash(this.algorithm, all.buffer, this.key), form);
  }
}
const cryptoModule = {
  createHash: (algorithm) => new Hasher(algorithm),
  createHMAC: (algorithm, key) => new Hasher(algorithm, key),
  hmac: (algorithm, key, data, form) => { const made = new Hasher(algorithm, key); made.update(data); return made.digest(form); },
  randomBytes: (count) => { if (!(count > 0)) throw new Error('Invalid size'); return n.randomBytes(Number(count)); },
  hexEncode: (data) => n.hex(buffer(data)),
};
for (const algorithm of ALGORITHMS) {
  cryptoModule[algorithm] = (data, form) => { const made = new Hasher(algorithm); made.update(data); return made.digest(form); };
}
modules['k6/crypto'] = cryptoModule;

// ---------------------------------------------------------------- WebCrypto
function uuid() {
  const bytes = new Uint8Array(n.randomBytes(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = n.hex(bytes.buffer);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
const crypto = {
  getRandomValues(array) {
    new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(new Uint8Array(n.randomBytes(array.byteLength)));
    return array;
  },
  randomUUID: uuid,
  // loaded when it is first used
  get subtle() {
    const value = n.builtIn('webcrypto')(k6);
    Object.defineProperty(crypto, 'subtle', { value });
    return value;
  },
};
Object.defineProperty(globalThis, 'crypto', { value: crypto, configurable: true, enumerable: true, writable: true });
})
