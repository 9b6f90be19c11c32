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
const CURVES = { '1.3.132.0.33': 'P-224', '1.2.840.10045.3.1.7': 'P-256', '1.3.132.0.34': 'P-384', '1.3.132.0.35': 'P-521' };
function publicKey(one) {
  const [algorithm, bits] = children(one), [id, parameters] = children(algorithm), name = identifier(id);
  // the first byte of a bit string is the number of unused bits
  const key = bits.start + 1;
  if (name === RSA + '1') {
    const [modulus, exponent] = children(element(bits.der, key, bits.end));
    return { algorithm: 'RSA', key: { n: whole(modulus), e: Number(whole(exponent)) } };
  }
  if (name === '1.2.840.10045.2.1') {
    const size = (bits.end - key - 1) / 2, at = (from) => BigInt('0x' + n.hex(bits.der.slice(from, from + size).buffer));
    return { algorithm: 'ECDSA', key: { curve: CURVES[identifier(parameters)] || '', x: at(key + 1), y: at(key + 1 + size) } };
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
