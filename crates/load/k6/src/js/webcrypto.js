// crypto.subtle on native operations. A key has its bytes in a hidden field.
(function (k6) {
'use strict';
const { n, buffer } = k6.api;
const DIGESTS = { 'SHA-1': 'sha1', 'SHA-256': 'sha256', 'SHA-384': 'sha384', 'SHA-512': 'sha512' };
const NAMES = ['AES-CBC', 'AES-CTR', 'AES-GCM', 'HMAC', 'ECDSA', 'ECDH', 'PBKDF2', 'RSASSA-PKCS1-v1_5', 'RSA-PSS', 'RSA-OAEP'];
const isAES = (name) => name.startsWith('AES-'), isRSA = (name) => name.startsWith('RSA'), isEC = (name) => name === 'ECDSA' || name === 'ECDH';
const fault = (name, message) => Object.assign(new Error(message), { name });
const unsupported = (what) => fault('NotSupportedError', `${what} is not available`);
function native(operation, fields) {
  try { return n.subtle(operation, fields); } catch (error) {
    const [, name, message] = /^(\w+Error): ([\s\S]*)$/.exec(error.message) || ['', 'OperationError', error.message];
    throw fault(name, message);
  }
}
const bytes = (value) => (value === undefined || value === null ? new ArrayBuffer(0) : buffer(value));
const fromBase64 = (text) => n.b64decode(String(text), 'rawurl'), toBase64 = (data) => n.b64encode(data, 'rawurl');
const textOf = (algorithm) => String(typeof algorithm === 'string' ? algorithm : algorithm && algorithm.name);
function nameOf(algorithm) {
  const given = textOf(algorithm), found = NAMES.find((one) => one.toLowerCase() === given.toLowerCase());
  if (!found) throw unsupported(given);
  return found;
}
function hashOf(algorithm) {
  const name = textOf(algorithm).toUpperCase();
  if (!DIGESTS[name]) throw unsupported(`the hash ${name}`);
  return name;
}

class CryptoKey {
  constructor(type, algorithm, extractable, usages, data) {
    Object.assign(this, { type, extractable: !!extractable, algorithm, usages: [...(usages || [])] });
    Object.defineProperty(this, '_data', { value: data });
  }
}
function keyFor(use, name, key) {
  if (!(key instanceof CryptoKey)) throw fault('InvalidAccessError', 'the key is not a CryptoKey');
  if (key.algorithm.name !== name) throw fault('InvalidAccessError', `the key is for ${key.algorithm.name}, not ${name}`);
  if (!key.usages.includes(use)) throw fault('InvalidAccessError', `the usages of the key do not include "${use}"`);
  return key;
}
const typed = (key, type) => { if (key.type !== type) throw fault('InvalidAccessError', `the key is not a ${type} one`); return key; };

// ---------------------------------------------------------------- import and export
const hidden = (text) => { if (text === undefined) throw fault('DataError', 'a part of the JSON Web Key is missing'); return fromBase64(text); };
function secretOf(format, data, name) {
  if (format === 'raw') return bytes(data);
  if (format === 'jwk' && data.kty === 'oct') return hidden(data.k);
  throw unsupported(`the format "${format}" for ${name}`);
}
function importSecret(format, data, algorithm, name, extractable, usages) {
  const raw = secretOf(format, data, name), length = raw.byteLength * 8;
  if (isAES(name) && ![128, 192, 256].includes(length)) throw fault('DataError', 'a key of AES has 16, 24 or 32 bytes');
  if (name === 'HMAC' && length === 0) throw fault('DataError', 'the key is empty');
  if (name === 'PBKDF2') return new CryptoKey('secret', { name }, false, usages, raw);
  const more = name === 'HMAC' ? { hash: { name: hashOf(algorithm.hash) } } : {};
  return new CryptoKey('secret', { name, ...more, length }, extractable, usages, raw);
}
function importEC(format, data, algorithm, name, extractable, usages) {
  const namedCurve = String(algorithm.namedCurve), to = { name, namedCurve };
  const publicKey = (key) => new CryptoKey('public', to, extractable, usages, native('ecPoint', { namedCurve, key }));
  const privateKey = (key) => { native('ecPublic', { namedCurve, key }); return new CryptoKey('private', to, extractable, usages, key); };
  if (format === 'raw' || format === 'spki') return publicKey(bytes(data));
  if (format === 'pkcs8') return privateKey(bytes(data));
  if (format !== 'jwk' || data.kty !== 'EC') throw unsupported(`the format "${format}" for ${name}`);
  if (data.crv !== namedCurve) throw fault('DataError', `the key is on ${data.crv}, not on ${namedCurve}`);
  if (data.d !== undefined) return privateKey(native('ecPrivate', { namedCurve, key: hidden(data.d) }));
  const x = new Uint8Array(hidden(data.x)), y = new Uint8Array(hidden(data.y)), point = new Uint8Array(1 + x.length + y.length);
  point[0] = 4;
  point.set(x, 1);
  point.set(y, 1 + x.length);
  return publicKey(point.buffer);
}
function importRSA(format, data, algorithm, name, extractable, usages) {
  const to = { name, hash: { name: hashOf(algorithm.hash) } };
  const publicKey = (key) => new CryptoKey('public', to, extractable, usages, native('rsaCheck', { key }));
  const privateKey = (key) => { native('rsaPublic', { key }); return new CryptoKey('private', to, extractable, usages, key); };
  if (format === 'spki') return publicKey(bytes(data));
  if (format === 'pkcs8') return privateKey(bytes(data));
  if (format !== 'jwk' || data.kty !== 'RSA') throw unsupported(`the format "${format}" for ${name}`);
  const parts = { n: hidden(data.n), e: hidden(data.e) };
  if (data.d === undefined) return publicKey(native('rsaPublicOf', parts));
  for (const part of ['d', 'p', 'q', 'dp', 'dq', 'qi']) parts[part] = hidden(data[part]);
  return privateKey(native('rsaPrivateOf', parts));
}
function importKey(format, data, algorithm, extractable, usages) {
  const name = nameOf(algorithm);
  const read = isEC(name) ? importEC : isRSA(name) ? importRSA : importSecret;
  return read(format, data, algorithm, name, extractable, usages);
}
function exportEC(format, { type, algorithm: { namedCurve }, _data }, jwk) {
  const key = type === 'public' ? _data : native('ecPublic', { namedCurve, key: _data });
  if (format === 'pkcs8' && type === 'private') return _data;
  if (format === 'raw' && type === 'public') return _data;
  if (format === 'spki' && type === 'public') return native('ecInfo', { namedCurve, key });
  if (format !== 'jwk') throw unsupported(`the format "${format}" for a ${type} key`);
  const size = (key.byteLength - 1) / 2;
  Object.assign(jwk, { kty: 'EC', crv: namedCurve, x: toBase64(key.slice(1, 1 + size)), y: toBase64(key.slice(1 + size)) });
  if (type === 'private') jwk.d = toBase64(native('ecScalar', { namedCurve, key: _data }));
  return jwk;
}
function exportKey(format, key) {
  if (!(key instanceof CryptoKey) || !key.extractable) throw fault('InvalidAccessError', 'the key is not extractable');
  const { name } = key.algorithm, jwk = { key_ops: key.usages, ext: true };
  if (isEC(name)) return exportEC(format, key, jwk);
  if (isRSA(name)) {
    if (format === (key.type === 'public' ? 'spki' : 'pkcs8')) return key._data;
    throw unsupported(`the format "${format}" for a ${key.type} key of RSA`);
  }
  if (format === 'raw') return key._data;
  if (format !== 'jwk') throw unsupported(`the format "${format}" for ${name}`);
  const alg = name === 'HMAC' ? 'HS' + key.algorithm.hash.name.slice(4) : 'A' + key.algorithm.length + name.slice(4);
  return Object.assign({ kty: 'oct', k: toBase64(key._data), alg }, jwk);
}

// ---------------------------------------------------------------- generation and derivation
const HALVES = { sign: 'private', verify: 'public', encrypt: 'public', decrypt: 'private', deriveBits: 'private', deriveKey: 'private' };
function pairOf(algorithm, extractable, usages, privateData, publicData) {
  const half = (type, data, exports) => new CryptoKey(type, algorithm, exports, usages.filter((use) => HALVES[use] === type), data);
  return { privateKey: half('private', privateData, extractable), publicKey: half('public', publicData, true) };
}
function generateKey(algorithm, extractable, usages) {
  const name = nameOf(algorithm);
  if (isEC(name)) {
    const namedCurve = String(algorithm.namedCurve), key = native('ecGenerate', { namedCurve });
    return pairOf({ name, namedCurve }, extractable, usages, key, native('ecPublic', { namedCurve, key }));
  }
  if (isRSA(name)) {
    const { modulusLength, publicExponent } = algorithm, hash = { name: hashOf(algorithm.hash) };
    if ([...new Uint8Array(bytes(publicExponent))].join() !== '1,0,1') throw unsupported('a publicExponent other than 65537');
    const key = native('rsaGenerate', { modulusLength: Number(modulusLength) });
    return pairOf({ name, modulusLength, publicExponent, hash }, extractable, usages, key, native('rsaPublic', { key }));
  }
  return importSecret('raw', n.randomBytes(lengthOf(name, algorithm) / 8), algorithm, name, extractable, usages);
}
// Bits of a key of AES or HMAC.
function lengthOf(name, algorithm) {
  if (name === 'HMAC') return algorithm.length || (['SHA-384', 'SHA-512'].includes(hashOf(algorithm.hash)) ? 1024 : 512);
  if (!isAES(name)) throw unsupported(`a generated key of ${name}`);
  if (![128, 192, 256].includes(algorithm.length)) throw fault('OperationError', 'a key of AES has 128, 192 or 256 bits');
  return algorithm.length;
}
function derive(use, algorithm, base, bits) {
  const name = nameOf(algorithm), key = keyFor(use, name, base);
  if (name === 'PBKDF2') {
    return native('pbkdf2', { hash: hashOf(algorithm.hash), salt: bytes(algorithm.salt), iterations: Number(algorithm.iterations), key: key._data, bits: Number(bits) });
  }
  if (name !== 'ECDH') throw unsupported(`derivation by ${name}`);
  const peer = typed(algorithm.public, 'public'), { namedCurve } = typed(key, 'private').algorithm;
  const secret = native('ecdh', { namedCurve, key: key._data, peer: peer._data });
  if (bits === undefined || bits === null) return secret;
  if (bits % 8 !== 0 || bits / 8 > secret.byteLength) throw fault('OperationError', `ECDH on ${namedCurve} has at most ${secret.byteLength * 8} bits`);
  return secret.slice(0, bits / 8);
}

// ---------------------------------------------------------------- operations
function crypt(use, algorithm, base, data) {
  const name = nameOf(algorithm), key = keyFor(use, name, base);
  if (name === 'RSA-OAEP') typed(key, HALVES[use]);
  const tagLength = algorithm.tagLength === undefined ? 128 : Number(algorithm.tagLength);
  return native(use, { name, key: key._data, data: bytes(data), iv: bytes(algorithm.iv), counter: bytes(algorithm.counter), label: bytes(algorithm.label),
    additionalData: bytes(algorithm.additionalData), tagLength, hash: key.algorithm.hash ? key.algorithm.hash.name : '' });
}
function signature(use, algorithm, base, data, given) {
  const name = nameOf(algorithm), key = keyFor(use, name, base);
  if (name === 'HMAC') return n.hash(DIGESTS[key.algorithm.hash.name], bytes(data), key._data);
  const hash = name === 'ECDSA' ? hashOf(algorithm.hash) : key.algorithm.hash && key.algorithm.hash.name;
  return native(use, { name, key: typed(key, HALVES[use])._data, data: bytes(data), signature: bytes(given), hash: hash || '',
    namedCurve: key.algorithm.namedCurve || '', saltLength: Number(algorithm.saltLength) || 0 });
}

globalThis.CryptoKey = CryptoKey;
return {
  async digest(algorithm, data) { return n.hash(DIGESTS[hashOf(algorithm)], bytes(data), null); },
  async encrypt(algorithm, key, data) { return crypt('encrypt', algorithm, key, data); },
  async decrypt(algorithm, key, data) { return crypt('decrypt', algorithm, key, data); },
  async sign(algorithm, key, data) { return signature('sign', algorithm, key, data); },
  async verify(algorithm, key, given, data) {
    const made = signature('verify', algorithm, key, data, given);
    return nameOf(algorithm) === 'HMAC' ? n.hex(made) === n.hex(bytes(given)) : new Uint8Array(made)[0] === 1;
  },
  async importKey(format, data, algorithm, extractable, usages) { return importKey(format, data, algorithm, extractable, usages); },
  async wrapKey() { throw unsupported('wrapKey, which k6 does not implement either,'); },
  async unwrapKey() { throw unsupported('unwrapKey, which k6 does not implement either,'); },
  async exportKey(format, key) { return exportKey(format, key); },
  async generateKey(algorithm, extractable, usages) { return generateKey(algorithm, extractable, usages); },
  async deriveBits(algorithm, key, length) { return derive('deriveBits', algorithm, key, length); },
  async deriveKey(algorithm, key, to, extractable, usages) {
    const name = nameOf(to);
    return importSecret('raw', derive('deriveKey', algorithm, key, lengthOf(name, to)), to, name, extractable, usages);
  },
};
})
