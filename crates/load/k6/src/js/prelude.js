// The modules of k6 for one user. Evaluated once per user with `n`, the native functions; returns
// what the host calls. Native functions suspend the user while the network or a pause is awaited.
(function (n) {
'use strict';
const modules = Object.create(null);
const env = n.env();
globalThis.__ENV = env;
const id = n.vu();
globalThis.__VU = id;
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
function shown(value) {
  if (value === null || typeof value !== 'object') return typeof value === 'symbol' ? value.description || '' : text(value);
  if (value instanceof Error) return String(value);
  if (!api.inspect) n.builtIn('console')(host);
  return api.inspect(value, []);
}
const log = (level) => (...args) => n.log(level, args.map(shown).join(' '));
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

// ---------------------------------------------------------------- k6
let groupPath = '';
let running = false;
function inside(what) {
  if (!running) throw new Error(`using ${what} in the init context is not supported`);
}
const { keys, getPrototypeOf } = Object;
const ASYNC = getPrototypeOf(async () => {});
function check(value, sets, tags) {
  inside('check()');
  const given = flat(tags);
  let all = true;
  let raised = null;
  if (sets === undefined || sets === null) return true;
  const names = keys(sets);
  for (let i = 0; i < names.length; i++) {
    const name = names[i];
    if (name.includes('::')) throw new Error("group and check names may not contain '::'");
    let met = sets[name];
    if (typeof met === 'function') {
      if (getPrototypeOf(met) === ASYNC) {
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
  if (getPrototypeOf(fn) === ASYNC) {
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
        n.warn(message);
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

// crypto is made when it is first used
Object.defineProperty(globalThis, 'crypto', {
  configurable: true, enumerable: true,
  get() { n.builtIn('crypto')(host); return globalThis.crypto; },
  set(value) { Object.defineProperty(globalThis, 'crypto', { value, configurable: true, enumerable: true, writable: true }); },
});
globalThis.TextEncoder = class { get encoding() { return 'utf-8'; } encode(value) { return new Uint8Array(n.utf8(value === undefined ? '' : String(value))); } };
globalThis.TextDecoder = class { get encoding() { return 'utf-8'; } decode(value) { return value === undefined ? '' : n.text(buffer(value)); } };

// ---------------------------------------------------------------- timers
// What handles the results of calls that are under way.
const calls = new Map();
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

// ---------------------------------------------------------------- k6/secrets
modules['k6/secrets'] = { default: { get: async (name) => n.secret(String(name)) } };

// Adds a value to the list of a name, which a peer may have chosen.
function append(made, name, value) {
  if (Object.hasOwn(made, name)) made[name].push(value);
  else Object.defineProperty(made, name, { value: [value], enumerable: true, writable: true, configurable: true });
}
function byName(name, make) { modules[name] = make; }
const api = { n, modules, text, flat, buffer, isBinary, inside, log, append };
// Loaded when they are first used: most scripts need few of them.
const LAZY = {
  'k6/html': 'html', 'k6/experimental/fs': 'files', 'k6/experimental/csv': 'files', 'k6/data': 'data',
  'k6/ws': 'sockets', 'k6/websockets': 'sockets', 'k6/net/grpc': 'grpc', 'loadstone/postman': 'postman',
  'k6/experimental/streams': 'streams',
  'k6/encoding': 'crypto', 'k6/crypto': 'crypto', 'k6/crypto/x509': 'x509', 'k6/execution': 'execution',
};
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
  // What a task begins with; `hasEnv`: the scenario has environment variables.
  begin(iteration, hasEnv) {
    running = true;
    globalThis.__VU = id;
    globalThis.__ITER = iteration;
    if (hasEnv) {
      const own = n.scenarioEnv();
      for (let i = 0; i < own.length; i += 2) env[own[i]] = own[i + 1];
    }
    if (timers.length > 0) timers = [];
    if (calls.size > 0) calls.clear();
    groupPath = '';
  },
  // Calls `handler` with the result of a call that has begun, when it has ended, and with each part
  // of the result of a stream before.
  onEnd(key, handler) { calls.set(key, handler); },
  ended: (key) => new Promise((resolve) => calls.set(key, resolve)),
  // Waits for one event, of a timer or a call, and handles it. False: there is none to wait for.
  turn() {
    if (timers.length === 0 && calls.size === 0) return false;
    const wait = host.nextTimer();
    if (wait === 0) host.fireTimer();
    else if (calls.size === 0) { n.sleep(wait / 1e3); host.fireTimer(); }
    else {
      const ended = n.nextEnded(api.Response, wait);
      if (ended) { const handler = calls.get(ended[0]); if (!ended[2]) calls.delete(ended[0]); if (handler) handler(ended[1]); }
    }
    return true;
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
