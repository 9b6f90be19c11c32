// k6/crypto/x509: certificates in PEM.
(function (k6) {
'use strict';
const { n, buffer } = k6.api;
const malformed = (what) => new Error(`failed to parse certificate: x509: malformed ${what || 'certificate'}`);

// Elements of DER: the tag, and the positions of the element and of its content.
function element(der, at, end) {
  let length = der[at + 1], start = at + 2;
  if (length > 0x84 || length === 0x80 || start > end) throw malformed();
  if (length > 0x80) {
    let bytes = length - 0x80;
    for (length = 0; bytes > 0; bytes--) length = length * 256 + der[start++];
  }
  if (!(start + length <= end)) throw malformed();
  return { der, tag: der[at], from: at, start, end: start + length };
}
function children(parent) {
  const all = [];
  for (let at = parent.start; at < parent.end;) {
    const next = element(parent.der, at, parent.end);
    all.push(next);
    at = next.end;
  }
  return all;
}
const content = (one) => one.der.slice(one.start, one.end);
const latin = (bytes) => String.fromCharCode(...bytes);
function text(one) {
  const bytes = content(one);
  if (one.tag === 0x0c) return n.text(bytes.buffer);
  if (one.tag !== 0x1e) return latin(bytes);
  let made = '';
  for (let i = 0; i + 1 < bytes.length; i += 2) made += String.fromCharCode(bytes[i] * 256 + bytes[i + 1]);
  return made;
}
function identifier(one) {
  if (!one || one.tag !== 6) throw malformed();
  const numbers = [];
  let value = 0;
  for (const byte of content(one)) {
    value = value * 128 + (byte & 0x7f);
    if (byte < 0x80) { numbers.push(value); value = 0; }
  }
  const first = Math.min(2, Math.floor(numbers[0] / 40));
  return [first, numbers[0] - 40 * first, ...numbers.slice(1)].join('.');
}
function whole(one) { return BigInt('0x' + (n.hex(content(one).buffer) || '0')); }
function time(one) {
  const given = latin(content(one)), found = /^(\d\d)?(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(given);
  if (!found || (found[1] === undefined) !== (one.tag === 0x17)) throw malformed('validity');
  const [, century, year, month, day, hour, minute, second] = found;
  return `${century || (Number(year) < 50 ? '20' : '19')}${year}-${month}-${day}T${hour}:${minute}:${second}Z`;
}

const FIELDS = { '2.5.4.6': 'country', '2.5.4.17': 'postalCode', '2.5.4.8': 'stateOrProvinceName', '2.5.4.7': 'localityName', '2.5.4.9': 'streetAddress', '2.5.4.10': 'organizationName' };
function names(one) {
  return children(one).flatMap(children).map((pair) => {
    const [type, value] = children(pair);
    if (!value) throw malformed();
    return { type: identifier(type), value: text(value) };
  });
}
// The first value of each field, and the last common name, as in k6.
function fieldsOf(one, keys) {
  const made = { commonName: '' }, all = names(one);
  for (const key of keys) made[key] = key === 'organizationalUnitName' ? [] : '';
  for (const { type, value } of all) {
    const field = FIELDS[type];
    if (type === '2.5.4.3') made.commonName = value;
    else if (type === '2.5.4.11' && made.organizationalUnitName) made.organizationalUnitName.push(value);
    else if (made[field] === '') made[field] = value;
  }
  return Object.assign(made, { names: all });
}
const ISSUER = ['country', 'stateOrProvinceName', 'localityName', 'organizationName'];
const SUBJECT = ['country', 'postalCode', 'stateOrProvinceName', 'localityName', 'streetAddress', 'organizationName', 'organizationalUnitName'];

// IPv6 as RFC 5952 writes it.
function address(bytes) {
  if (bytes.length === 4) return bytes.join('.');
  if (bytes.length !== 16) throw malformed('IP address');
  const groups = [];
  for (let i = 0; i < 16; i += 2) groups.push((bytes[i] * 256 + bytes[i + 1]).toString(16));
  let best = [0, 0];
  for (let i = 0; i < 8; i++) {
    let length = 0;
    while (groups[i + length] === '0') length++;
    if (length > best[1]) best = [i, length];
  }
  if (best[1] < 2) return groups.join(':');
  return groups.slice(0, best[0]).join(':') + '::' + groups.slice(best[0] + best[1]).join(':');
}
const DNS = 0x82, EMAIL = 0x81, IP = 0x87, URI = 0x86;
function altNames({ extensions }) {
  const found = extensions.find((one) => identifier(children(one)[0]) === '2.5.29.17');
  if (!found) return [];
  const value = children(found).at(-1), list = children(element(value.der, value.start, value.end));
  const of = (tag) => list.filter((one) => one.tag === tag);
  return [...of(DNS), ...of(EMAIL)].map((one) => latin(content(one))).concat(of(IP).map((one) => address([...content(one)])), of(URI).map((one) => latin(content(one))));
}

const RSA = '1.2.840.113549.1.1.', EC = '1.2.840.10045.4.', HASHES = { '2.16.840.1.101.3.4.2.1': 'SHA256', '2.16.840.1.101.3.4.2.2': 'SHA384', '2.16.840.1.101.3.4.2.3': 'SHA512' };
const SIGNATURES = { [RSA + '4']: 'MD5-RSA', [RSA + '5']: 'SHA1-RSA', [RSA + '11']: 'SHA256-RSA', [RSA + '12']: 'SHA384-RSA', [RSA + '13']: 'SHA512-RSA', '1.3.101.112': 'Ed25519',
  [EC + '1']: 'ECDSA-SHA1', [EC + '3.2']: 'ECDSA-SHA256', [EC + '3.3']: 'ECDSA-SHA384', [EC + '3.4']: 'ECDSA-SHA512', '1.2.840.10040.4.3': 'DSA-SHA1', '2.16.840.1.101.3.4.3.2': 'DSA-SHA256' };
function signatureAlgorithm(one) {
  const [id, parameters] = children(one), name = identifier(id);
  if (name !== RSA + '10') return SIGNATURES[name] || 'UnknownSignatureAlgorithm';
  const hash = parameters && children(parameters).find((it) => it.tag === 0xa0);
  const known = hash && HASHES[identifier(children(children(hash)[0])[0])];
  return known ? `${known}-RSAPSS` : 'UnknownSignatureAlgorithm';
}
// Curves by their identifiers: name, bits, and p, n, b, x and y of the base point (FIPS 186-4, D.1.2).
const CURVES = {
  '1.3.132.0.33': ['P-224', 224, 'ffffffffffffffffffffffffffffffff000000000000000000000001', 'ffffffffffffffffffffffffffff16a2e0b8f03e13dd29455c5c2a3d', 'b4050a850c04b3abf54132565044b0b7d7bfd8ba270b39432355ffb4', 'b70e0cbd6bb4bf7f321390b94a03c1d356c21122343280d6115c1d21', 'bd376388b5f723fb4c22dfe6cd4375a05a07476444d5819985007e34'],
  '1.2.840.10045.3.1.7': ['P-256', 256, 'ffffffff00000001000000000000000000000000ffffffffffffffffffffffff', 'ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551', '5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b', '6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296', '4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5'],
  '1.3.132.0.34': ['P-384', 384, 'fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffeffffffff0000000000000000ffffffff', 'ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973', 'b3312fa7e23ee7e4988e056be3f82d19181d9c6efe8141120314088f5013875ac656398d8a2ed19d2a85c8edd3ec2aef', 'aa87ca22be8b05378eb1c71ef320ad746e1d3b628ba79b9859f741e082542a385502f25dbf55296c3a545e3872760ab7', '3617de4a96262c6f5d9e98bf9292dc29f8f41dbd289a147ce9da3113b5f0b8c00a60b1ce1d7e819d7a431d7c90ea0e5f'],
  '1.3.132.0.35': ['P-521', 521, '1ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff', '1fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffa51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409', '51953eb9618e1c9a1f929a21a0b68540eea2da725b99b315f3b8b489918ef109e156193951ec7e937b1652c0bd3bb1bf073573df883d2c34f1ef451fd46b503f00', 'c6858e06b70404e9cd9e3ecb662395b4429c648139053fb521f828af606b4d3dbaa14b5e77efe75928fe1dc127a2ffa8de3348b3c1856a429bf97e7e31c2e5bd66', '11839296a789a3bc0045c8a5fb42c7d1bd998f54449579b446817afbd17273e662c97ee72995ef42640c550b9013fad0761353c7086a272c24088be94769fd16650'],
};
// Curve with the methods that Go's elliptic.Curve has; coordinates are BigInts, pairs are arrays.
function curveOf([name, bitSize, ...numbers]) {
  const [p, order, b, gx, gy] = numbers.map((text) => BigInt('0x' + text));
  const mod = (value) => ((value % p) + p) % p;
  const inverse = (value) => {
    let [r0, r1, s0, s1] = [mod(value), p, 1n, 0n];
    while (r1 !== 0n) { const q = r0 / r1; [r0, r1, s0, s1] = [r1, r0 - q * r1, s1, s0 - q * s1]; }
    return mod(s0);
  };
  // (0, 0) is the point at infinity, as in Go
  const along = (slope, x1, y1, x2) => { const x = mod(slope * slope - x1 - x2); return [x, mod(slope * (x1 - x) - y1)]; };
  const curve = {
    params: () => ({ p, n: order, b, gx, gy, bit_size: bitSize, name }),
    isOnCurve: (x, y) => mod(y * y) === mod(x * x * x - 3n * x + b),
    double: (x, y) => (y === 0n ? [0n, 0n] : along(mod((3n * x * x - 3n) * inverse(2n * y)), x, y, x)),
    add(x1, y1, x2, y2) {
      if (x1 === 0n && y1 === 0n) return [x2, y2];
      if (x2 === 0n && y2 === 0n) return [x1, y1];
      if (x1 === x2) return y1 === y2 ? curve.double(x1, y1) : [0n, 0n];
      return along(mod((y2 - y1) * inverse(x2 - x1)), x1, y1, x2);
    },
    scalarMult(x, y, scalar) {
      let made = [0n, 0n];
      for (const byte of new Uint8Array(buffer(scalar))) {
        for (let bit = 128; bit > 0; bit >>= 1) {
          made = curve.double(...made);
          if (byte & bit) made = curve.add(...made, x, y);
        }
      }
      return made;
    },
    scalarBaseMult: (scalar) => curve.scalarMult(gx, gy, scalar),
  };
  return curve;
}
function pointOf(curve, x, y) {
  const key = Object.assign({ curve, x, y }, curve);
  const hex = (value) => value.toString(16).padStart(2 * Math.ceil(curve.params().bit_size / 8), '0');
  key.equal = (other) => !!other && other.x === x && other.y === y && !!other.curve && other.curve.params().name === curve.params().name;
  key.bytes = () => ['04', hex(x), hex(y)].join('').match(/../g).map((byte) => parseInt(byte, 16));
  return key;
}
function publicKey(one) {
  const [algorithm, bits] = children(one), [id, parameters] = children(algorithm), name = identifier(id);
  // the first byte of a bit string is the number of unused bits
  const key = bits.start + 1;
  if (name === RSA + '1') {
    const [modulus, exponent] = children(element(bits.der, key, bits.end));
    const made = { n: whole(modulus), e: Number(whole(exponent)) };
    made.equal = (other) => !!other && other.n === made.n && other.e === made.e;
    made.size = () => Math.ceil(made.n.toString(16).length / 2);
    return { algorithm: 'RSA', key: made };
  }
  if (name === '1.2.840.10045.2.1') {
    const size = (bits.end - key - 1) / 2, at = (from) => BigInt('0x' + n.hex(bits.der.slice(from, from + size).buffer));
    const found = CURVES[identifier(parameters)];
    if (found === undefined) throw new Error('failed to parse certificate: x509: unsupported elliptic curve');
    return { algorithm: 'ECDSA', key: pointOf(curveOf(found), at(key + 1), at(key + 1 + size)) };
  }
  if (name === '1.2.840.10040.4.1') return { algorithm: 'DSA', key: { y: whole(element(bits.der, key, bits.end)) } };
  throw new Error('unsupported public key algorithm');
}

function certificate(encoded) {
  const given = n.text(buffer(encoded === undefined ? '' : encoded));
  const found = /-----BEGIN [A-Z0-9 ]+-----\s*([A-Za-z0-9+/=\s]*?)-----END [A-Z0-9 ]+-----/.exec(given);
  if (!found) throw new Error('failed to decode certificate PEM file');
  const der = new Uint8Array(n.b64decode(found[1].replace(/\s/g, ''), 'std'));
  const outer = element(der, 0, der.length);
  if (outer.tag !== 0x30 || outer.end !== der.length) throw malformed();
  const [signed, algorithm] = children(outer);
  if (!algorithm) throw malformed();
  // the version, which is optional, is first
  const parts = children(signed), [, , issuer, validity, subject, key, ...more] = parts[0] && parts[0].tag === 0xa0 ? parts.slice(1) : parts;
  if (!key) throw malformed();
  const extensions = more.filter((one) => one.tag === 0xa3).flatMap(children).flatMap(children);
  return { der, algorithm, issuer, validity, subject, key, extensions };
}
const getSubject = (encoded) => fieldsOf(certificate(encoded).subject, SUBJECT);
const getIssuer = (encoded) => fieldsOf(certificate(encoded).issuer, ISSUER);
const getAltNames = (encoded) => altNames(certificate(encoded));
function parse(encoded) {
  const read = certificate(encoded), [notBefore, notAfter] = children(read.validity).map(time);
  return {
    subject: fieldsOf(read.subject, SUBJECT), issuer: fieldsOf(read.issuer, ISSUER), notBefore, notAfter, altNames: altNames(read),
    signatureAlgorithm: signatureAlgorithm(read.algorithm), fingerPrint: [...new Uint8Array(n.hash('sha1', read.der.buffer, null))], publicKey: publicKey(read.key),
  };
}
k6.byName('k6/crypto/x509', { parse, getSubject, getIssuer, getAltNames });
})
