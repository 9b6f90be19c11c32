// The modules of k6 for one user. Evaluated once per user with `n`, the native functions; returns
// what the host calls. Native functions suspend the user while the network or a pause is awaited.
(function (n) {
'use strict';
const modules = Object.create(null);
const env = n.env();
globalThis.__ENV = env;
globalThis.__VU = n.vu();
globalThis.__ITER = 0;
globalThis.global = globalThis;
globalThis.open = (path, mode) => n.open(String(path), mode === 'b');

function text(value) {
  if (typeof value === 'string') return value;
  if (value instanceof Error) return value.stack ? String(value) + '\n' + value.stack : String(value);
  if (typeof value === 'function') return '[object Function]';
  if (typeof value === 'object' && value !== null) {
    try { const json = JSON.stringify(value); return json === undefined ? String(value) : json; } catch (e) { return String(value); }
  }
  return String(value);
}
const log = (level) => (...args) => n.log(level, args.map(text).join(' '));
globalThis.console = { log: log('info'), info: log('info'), warn: log('warning'), error: log('error'), debug: log('debug'), trace: log('debug') };

function flat(tags) {
  if (tags === undefined || tags === null) return null;
  if (typeof tags !== 'object') throw new TypeError('tags must be an object of names and values');
  const out = [];
  for (const key of Object.keys(tags)) {
    const value = tags[key];
    if (value === undefined || value === null) continue;
    if (typeof value === 'object' || typeof value === 'function') {
      throw new TypeError(`invalid value for tag '${key}': only strings, numbers and booleans are accepted`);
    }
    out.push(key, String(value));
  }
  return out;
}

function isBinary(value) {
  return value instanceof ArrayBuffer || ArrayBuffer.isView(value);
}
function buffer(value) {
  if (value instanceof ArrayBuffer) return value;
  if (ArrayBuffer.isView(value)) return value.buffer.slice(value.byteOffset, value.byteOffset + value.byteLength);
  if (value && typeof value === 'object' && Array.isArray(value)) return new Uint8Array(value).buffer;
  return n.utf8(String(value));
}
const TYPED = Object.getPrototypeOf(Uint8Array);
void TYPED;

// ---------------------------------------------------------------- k6
let groupPath = '';
function inside(what) {
  if (n.initializing()) throw new Error(`using ${what} in the init context is not supported`);
}
function check(value, sets, tags) {
  inside('check()');
  const given = flat(tags);
  let all = true;
  let raised = null;
  if (sets === undefined || sets === null) return true;
  for (const name of Object.keys(sets)) {
    if (name.includes('::')) throw new Error("group and check names may not contain '::'");
    let met = sets[name];
    if (typeof met === 'function') {
      if (Object.prototype.toString.call(met) === '[object AsyncFunction]') {
        throw new TypeError(`passing async functions as predicates to check() is not supported (${name})`);
      }
      try { met = met(value); } catch (error) { met = false; raised = { error }; }
    }
    const pass = !!met;
    n.check(name, pass, given);
    if (!pass) all = false;
    if (raised) throw raised.error;
  }
  return all;
}
function group(name, fn) {
  inside('group()');
  if (typeof fn !== 'function') throw new TypeError('group() requires a callback as a second argument');
  if (Object.prototype.toString.call(fn) === '[object AsyncFunction]') {
    throw new TypeError('group() does not support async functions as arguments');
  }
  name = String(name);
  if (name.includes('::')) throw new Error("group and check names may not contain '::'");
  const before = groupPath;
  groupPath = before + '::' + name;
  n.group(groupPath);
  const start = n.now();
  try {
    return fn();
  } finally {
    n.groupEnd(n.now() - start);
    groupPath = before;
    n.group(before);
  }
}
function sleep(seconds) {
  inside('sleep()');
  n.sleep(Number(seconds));
}
function fail(message) {
  throw new Error(message === undefined ? '' : String(message));
}
const k6 = { check, group, sleep, fail, randomSeed: (seed) => n.seed(Number(seed)) };
modules['k6'] = k6;
Math.random = () => n.random();

// ---------------------------------------------------------------- k6/metrics
function metricClass(kind) {
  return class {
    constructor(name, isTime) {
      if (!n.initializing()) throw new Error('metrics must be declared in the init context');
      this.name = String(name);
      Object.defineProperty(this, 'id', { value: n.metric(this.name, kind, !!isTime), enumerable: false });
    }
    add(value, tags) {
      inside('add()');
      let number = value;
      if (typeof value === 'boolean') number = value ? 1 : 0;
      else if (value === null || value === undefined) number = NaN;
      else number = Number(value);
      if (Number.isNaN(number)) {
        const message = `'${text(value)}' is an invalid value for metric '${this.name}', a number or a boolean value is expected`;
        if (n.throws()) throw new Error(message);
        n.log('warning', message);
        return false;
      }
      n.add(this.id, kind === 'rate' ? (number !== 0 ? 1 : 0) : number, flat(tags));
      return true;
    }
  };
}
modules['k6/metrics'] = {
  Counter: metricClass('counter'), Gauge: metricClass('gauge'),
  Rate: metricClass('rate'), Trend: metricClass('trend'),
};

// ---------------------------------------------------------------- k6/data
class SharedArray {
  constructor(name, fn) {
    if (!n.initializing()) throw new Error('new SharedArray must be called in the init context');
    if (typeof name !== 'string' || name === '') throw new TypeError('empty name provided to SharedArray\'s constructor');
    if (typeof fn !== 'function') throw new TypeError('a function is expected as the second argument of SharedArray\'s constructor');
    let length = n.sharedLength(name);
    if (length < 0) {
      const made = fn();
      if (!Array.isArray(made)) throw new TypeError('only arrays can be made into SharedArray');
      length = n.sharedPut(name, Array.prototype.map.call(made, (item) => { const json = JSON.stringify(item); return json === undefined ? 'null' : json; }));
    }
    const at = (index) => freeze(JSON.parse(n.sharedAt(name, index)));
    const target = [];
    return new Proxy(target, {
      get(_, key) {
        if (key === 'length') return length;
        if (typeof key === 'string') {
          const index = Number(key);
          if (Number.isInteger(index)) return index >= 0 && index < length ? at(index) : undefined;
        }
        if (key === Symbol.iterator) return function* () { for (let i = 0; i < length; i++) yield at(i); };
        return Array.prototype[key];
      },
      has(_, key) { const i = Number(key); return (Number.isInteger(i) && i >= 0 && i < length) || key in Array.prototype; },
      ownKeys() { return Array.from({ length }, (_, i) => String(i)).concat('length'); },
      getOwnPropertyDescriptor(_, key) {
        if (key === 'length') return { value: length, writable: true, enumerable: false, configurable: false };
        const i = Number(key);
        return Number.isInteger(i) && i >= 0 && i < length ? { value: at(i), writable: false, enumerable: true, configurable: true } : undefined;
      },
      set() { throw new TypeError('SharedArray is immutable'); },
      deleteProperty() { throw new TypeError('SharedArray is immutable'); },
    });
  }
}
function freeze(value) {
  if (typeof value === 'object' && value !== null) {
    Object.freeze(value);
    for (const key of Object.keys(value)) freeze(value[key]);
  }
  return value;
}
modules['k6/data'] = { SharedArray };

// ---------------------------------------------------------------- k6/encoding
modules['k6/encoding'] = {
  b64encode: (data, form) => n.b64encode(buffer(data), String(form || 'std')),
  b64decode: (data, form, format) => {
    const bytes = n.b64decode(String(data), String(form || 'std'));
    return format === 's' ? n.text(bytes) : bytes;
  },
};

// ---------------------------------------------------------------- k6/crypto
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

// ---------------------------------------------------------------- WebCrypto, the parts in use
function uuid() {
  const bytes = new Uint8Array(n.randomBytes(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = n.hex(bytes.buffer);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
const DIGESTS = { 'SHA-1': 'sha1', 'SHA-256': 'sha256', 'SHA-384': 'sha384', 'SHA-512': 'sha512' };
function digestOf(algorithm) {
  const name = String(typeof algorithm === 'string' ? algorithm : algorithm && algorithm.name).toUpperCase();
  if (!DIGESTS[name]) throw new Error(`NotSupportedError: ${name}`);
  return DIGESTS[name];
}
function macKey(key) {
  if (!key || !key.raw || key.algorithm.name !== 'HMAC') {
    throw new Error('NotSupportedError: crypto.subtle signs and verifies with HMAC keys here');
  }
  return key;
}
globalThis.crypto = {
  getRandomValues(array) {
    new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(new Uint8Array(n.randomBytes(array.byteLength)));
    return array;
  },
  randomUUID: uuid,
  subtle: {
    async digest(algorithm, data) { return n.hash(digestOf(algorithm), buffer(data), null); },
    async importKey(format, data, algorithm, extractable, usages) {
      const name = String(typeof algorithm === 'string' ? algorithm : algorithm.name).toUpperCase();
      if (format !== 'raw' || name !== 'HMAC') throw new Error(`NotSupportedError: importKey takes raw HMAC keys here, not ${format} ${name}`);
      return { type: 'secret', extractable: !!extractable, usages, raw: buffer(data), algorithm: { name: 'HMAC', hash: { name: algorithm.hash.name || algorithm.hash } } };
    },
    async sign(algorithm, key, data) { return n.hash(digestOf(macKey(key).algorithm.hash), buffer(data), key.raw); },
    async verify(algorithm, key, signature, data) {
      return n.hex(n.hash(digestOf(macKey(key).algorithm.hash), buffer(data), key.raw)) === n.hex(buffer(signature));
    },
    async exportKey(format, key) { if (format !== 'raw') throw new Error(`NotSupportedError: ${format}`); return key.raw; },
  },
};
globalThis.TextEncoder = class { get encoding() { return 'utf-8'; } encode(value) { return new Uint8Array(n.utf8(value === undefined ? '' : String(value))); } };
globalThis.TextDecoder = class { get encoding() { return 'utf-8'; } decode(value) { return value === undefined ? '' : n.text(buffer(value)); } };
globalThis.btoa = globalThis.btoa || undefined;

// ---------------------------------------------------------------- timers
let timers = [];
let timerCount = 0;
function timer(callback, ms, args, every) {
  if (typeof callback !== 'function') throw new TypeError("setTimeout requires a callback as first argument");
  timerCount += 1;
  timers.push({ id: timerCount, at: n.now() + Math.max(0, Number(ms) || 0), callback, args, every: every ? Math.max(1, Number(ms) || 1) : 0 });
  return timerCount;
}
globalThis.setTimeout = (callback, ms, ...args) => timer(callback, ms, args, false);
globalThis.setInterval = (callback, ms, ...args) => timer(callback, ms, args, true);
globalThis.clearTimeout = globalThis.clearInterval = (id) => { timers = timers.filter((one) => one.id !== id); };
modules['k6/timers'] = { setTimeout, setInterval, clearTimeout, clearInterval };

// ---------------------------------------------------------------- k6/execution
const live = (fields) => {
  const made = {};
  for (const key of Object.keys(fields)) Object.defineProperty(made, key, { get: fields[key], enumerable: true });
  return made;
};
const outsideInit = (name) => { if (n.initializing()) throw new Error(`getting ${name} information outside of the VU context is not supported`); };
const vuTags = new Proxy({}, {
  get: (_, key) => (typeof key === 'string' ? n.tag(key) : undefined),
  set: (_, key, value) => {
    if (!['string', 'number', 'boolean'].includes(typeof value)) throw new TypeError(`invalid value for tag '${String(key)}'`);
    n.setTag(String(key), String(value));
    return true;
  },
  deleteProperty: (_, key) => { n.setTag(String(key), null); return true; },
  ownKeys: () => n.tagNames(),
  has: (_, key) => n.tag(String(key)) !== undefined,
  getOwnPropertyDescriptor: (_, key) => { const value = n.tag(String(key)); return value === undefined ? undefined : { value, writable: true, enumerable: true, configurable: true }; },
});
const metadata = {};
const fact = (name) => () => { outsideInit(name); return n.fact(name); };
const execution = {
  instance: live({
    iterationsInterrupted: () => n.fact('iterationsInterrupted'), iterationsCompleted: () => n.fact('iterationsCompleted'),
    vusActive: () => n.fact('vusActive'), vusInitialized: () => n.fact('vusInitialized'),
    currentTestRunDuration: () => n.fact('currentTestRunDuration'),
  }),
  scenario: live({
    name: fact('scenario.name'), executor: fact('scenario.executor'), startTime: fact('scenario.startTime'),
    progress: fact('scenario.progress'), iterationInInstance: fact('scenario.iteration'), iterationInTest: fact('scenario.iteration'),
  }),
  vu: live({
    iterationInInstance: fact('vu.iteration'), iterationInScenario: fact('vu.iterationInScenario'),
    idInInstance: () => n.vu(), idInTest: () => n.vu(), tags: () => vuTags,
    metrics: () => ({ tags: vuTags, metadata }),
  }),
  test: {
    abort: (message) => n.abort(message === undefined ? '' : String(message)),
    fail: (message) => n.failTest(message === undefined ? '' : String(message)),
    get options() { return JSON.parse(n.options()); },
  },
};
modules['k6/execution'] = { default: execution, instance: execution.instance, scenario: execution.scenario, vu: execution.vu, test: execution.test };

// ---------------------------------------------------------------- k6/secrets
modules['k6/secrets'] = { default: { get: async (name) => n.secret(String(name)) } };

function byName(name, make) { modules[name] = make; }
const api = { n, modules, text, flat, buffer, isBinary, inside, log };
// Loaded when they are first used: most scripts need neither.
const LAZY = { 'k6/html': 'html', 'k6/experimental/fs': 'files', 'k6/experimental/csv': 'files' };
const host = {
  api,
  byName,
  module(name) {
    if (!modules[name] && LAZY[name]) n.builtIn(LAZY[name])(host);
    const made = modules[name];
    if (!made) throw new Error(`unknown module: "${name}"`);
    return made.default ? made : Object.assign({ default: made }, made);
  },
  names(name) { return Object.keys(modules[name] || {}).filter((key) => key !== 'default'); },
  // What an iteration begins with; returns what runs it.
  begin(iteration) {
    globalThis.__VU = n.vu();
    globalThis.__ITER = iteration;
    const own = n.scenarioEnv();
    for (let i = 0; i < own.length; i += 2) env[own[i]] = own[i + 1];
    timers = [];
    groupPath = '';
  },
  // Milliseconds until the next timer; -1 if there is none.
  nextTimer() {
    if (timers.length === 0) return -1;
    let next = Infinity;
    for (const one of timers) next = Math.min(next, one.at);
    return Math.max(0, next - n.now());
  },
  fireTimer() {
    let first = null;
    for (const one of timers) if (first === null || one.at < first.at) first = one;
    if (first === null) return;
    if (first.every > 0) first.at += first.every; else timers = timers.filter((one) => one !== first);
    first.callback(...first.args);
  },
  parse: (json) => JSON.parse(json),
  stringify: (value) => JSON.stringify(value === undefined ? null : value),
  describe: (error) => {
    if (error instanceof Error) {
      const stack = (error.stack || '').trimEnd();
      return String(error) + (stack ? '\n' + stack : '');
    }
    return text(error);
  },
};
return host;
})
