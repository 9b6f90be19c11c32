// k6/net/grpc on native calls over HTTP/2.
(function (k6) {
'use strict';
const { n, flat, buffer, isBinary, append } = k6.api;
const STATUS = ['OK', 'Canceled', 'Unknown', 'InvalidArgument', 'DeadlineExceeded', 'NotFound', 'AlreadyExists', 'PermissionDenied',
  'ResourceExhausted', 'FailedPrecondition', 'Aborted', 'OutOfRange', 'Unimplemented', 'Internal', 'Unavailable', 'DataLoss', 'Unauthenticated'];
const constants = { HealthCheckUnknown: 0, HealthCheckServing: 1, HealthCheckNotServing: 2, HealthCheckServiceUnkown: 3 };
STATUS.forEach((name, code) => { constants['Status' + name] = code; });

function millis(value, what) {
  if (value === undefined || value === null) return -1;
  if (typeof value === 'number') return value;
  try { return n.duration(String(value)); } catch (error) { throw new Error(`invalid ${what} value: ${error.message}`); }
}
function metadata(given, what) {
  const all = [];
  if (given === undefined || given === null) return all;
  if (typeof given !== 'object') throw new Error(`invalid ${what} param: must be an object with key-value pairs`);
  for (const key of Object.keys(given)) {
    const value = given[key];
    if (key.endsWith('-bin')) {
      if (!isBinary(value)) throw new Error(`invalid ${what} param: "${key}" value must be binary`);
      all.push(key, n.b64encode(buffer(value), 'rawstd'));
    } else if (typeof value === 'string') all.push(key, value);
    else throw new Error(`invalid ${what} param: "${key}" value must be a string`);
  }
  return all;
}
function callParams(given, who) {
  const made = { metadata: [], tags: [], timeout: -1, discards: false };
  for (const key of Object.keys(given || {})) {
    if (key === 'metadata') made.metadata = metadata(given[key], 'metadata');
    else if (key === 'tags') made.tags = flat(given[key]) || [];
    else if (key === 'timeout') made.timeout = millis(given[key], 'timeout');
    else if (key === 'discardResponseMessage') made.discards = !!given[key];
    else throw new Error(`invalid GRPC's ${who} parameters: unknown param: "${key}"`);
  }
  return made;
}
// Files of a connection as texts; null if it has none.
function tlsOf(given) {
  const invalid = (what, wanted) => new Error(`invalid grpc.connect() parameters: invalid tls ${what}, ${wanted}`);
  if (given === undefined || given === null || typeof given !== 'object' || Array.isArray(given)) {
    throw invalid(`value: '${String(given)}'`, 'expected (optional) keys: cert, key, password, and cacerts');
  }
  if (Object.keys(given).length === 0) return null;
  const made = { cacerts: [], cert: '', key: '', password: '' };
  for (const key of ['cert', 'key', 'password']) {
    if (!(key in given)) continue;
    if (typeof given[key] !== 'string') throw invalid(`${key} value`, key === 'password' ? 'it needs to be a string' : 'it needs to be a PEM formatted string');
    made[key] = given[key];
  }
  if ('cacerts' in given) {
    made.cacerts = [].concat(given.cacerts);
    if (made.cacerts.some((one) => typeof one !== 'string')) throw invalid('cacerts value', 'it needs to be a string or an array of PEM formatted strings');
  }
  return made;
}
const CONNECT = { plaintext: 'boolean', timeout: '', reflect: 'boolean', reflectMetadata: '', authority: 'string', tls: '', maxReceiveSize: '', maxSendSize: '' };
// Limits of grpc-go on the size of a message.
const RECEIVE_MAX = 4 << 20, SEND_MAX = 0x7fffffff;
function connectParams(given) {
  const made = { secure: true, tls: null, timeout: -1, reflect: false, metadata: [], authority: '', maxReceiveSize: RECEIVE_MAX, maxSendSize: SEND_MAX };
  for (const key of Object.keys(given || {})) {
    const kind = CONNECT[key], value = given[key];
    if (kind === undefined) throw new Error(`invalid grpc.connect() parameters: unknown connect param: "${key}"`);
    if (kind !== '' && typeof value !== kind) throw new Error(`invalid grpc.connect() parameters: invalid ${key} value: it needs to be a ${kind}`);
    if (key === 'plaintext') made.secure = !value;
    else if (key === 'timeout') made.timeout = millis(value, 'timeout');
    else if (key === 'reflect') made.reflect = value;
    else if (key === 'reflectMetadata') made.metadata = metadata(value, 'reflectMetadata');
    else if (key === 'authority') made.authority = value;
    else if (key === 'maxReceiveSize' || key === 'maxSendSize') {
      if (!Number.isInteger(value)) throw new Error(`invalid grpc.connect() parameters: invalid ${key} value: it needs to be an integer`);
      if (value < 0) throw new Error(`invalid grpc.connect() parameters: invalid ${key} value: it needs to be a positive integer`);
      if (value > 0) made[key] = Math.min(value, SEND_MAX);
    } else if (key === 'tls') made.tls = tlsOf(value);
  }
  return made;
}
// JSON as protojson reads it, in which special numbers are strings.
const numbers = (_, value) => (typeof value === 'number' && !Number.isFinite(value) ? String(value) : value);
function fields(list) {
  const made = {};
  for (let i = 0; i < list.length; i += 2) append(made, list[i], list[i + 1]);
  return made;
}
const problem = (raw) => ({ code: raw.status, message: raw.text, details: [] });
function response(raw) {
  const made = { status: raw.status, message: null, headers: fields(raw.headers), trailers: fields(raw.trailers), error: null };
  if (raw.messages.length > 0) made.message = JSON.parse(raw.messages[0]);
  if (raw.status !== 0) made.error = problem(raw);
  return made;
}

class Client {
  constructor() {
    const hidden = (name, value) => Object.defineProperty(this, name, { value, writable: true, enumerable: false });
    hidden('_methods', new Map());
    hidden('_to', null);
  }
  _learn(number, list) {
    const all = JSON.parse(list);
    for (const one of all) this._methods.set(one.fullMethod, Object.assign({ schema: Number(number) }, one));
    return all.map(({ package: name, service, fullMethod }) => ({ package: name, service, fullMethod }));
  }
  load(paths, ...names) {
    if (!n.initializing()) throw new Error('load must be called in the init context');
    return this._learn(...n.grpcLoad([].concat(paths || []).map(String), [].concat(...names).map(String), false));
  }
  loadProtoset(path) {
    if (!n.initializing()) throw new Error('load must be called in the init context');
    return this._learn(...n.grpcLoad([], [String(path)], true));
  }
  connect(address, params) {
    if (n.initializing()) throw new Error('connecting to a gRPC server in the init context is not supported');
    const made = connectParams(params);
    const to = { address: String(address), secure: made.secure, authority: made.authority, maxReceiveSize: made.maxReceiveSize, maxSendSize: made.maxSendSize };
    if (made.secure) n.grpcConnect(to.address, made.tls);
    if (made.reflect) this._learn(...n.grpcReflect(Object.assign({ metadata: made.metadata, timeout: made.timeout < 0 ? 60000 : made.timeout }, to)));
    this._to = to;
    return true;
  }
  _spec(method, params, who) {
    if (n.initializing()) throw new Error('invoking RPC methods in the init context is not supported');
    if (this._to === null) throw new Error('no gRPC connection, you must call connect first');
    if (!method) throw new Error('method to invoke cannot be empty');
    const path = String(method)[0] === '/' ? String(method) : '/' + method;
    const known = this._methods.get(path);
    if (known === undefined) throw new Error(`method "${path}" not found in file descriptors`);
    return Object.assign({ method: path, schema: known.schema, known, stream: false }, this._to, callParams(params, who));
  }
  _unary(method, request, params) {
    const spec = this._spec(method, params, 'client.invoke()');
    if (request === undefined || request === null) throw new Error('request cannot be nil');
    spec.messages = [JSON.stringify(request, numbers)];
    return spec;
  }
  invoke(method, request, params) { return response(n.grpcCall(this._unary(method, request, params))); }
  async asyncInvoke(method, request, params) {
    const spec = this._unary(method, request, params);
    return response(n.simultaneous() ? await k6.ended(n.grpcBegin(spec)) : n.grpcCall(spec));
  }
  healthCheck(service) {
    if (this._to === null) throw new Error('no gRPC connection, you must call connect first');
    if (Client._health === undefined) Client._health = Number(n.grpcHealth());
    const raw = n.grpcCall(Object.assign({ method: '/grpc.health.v1.Health/Check', schema: Client._health, stream: false, metadata: [], tags: [], timeout: -1, discards: false,
      messages: [JSON.stringify({ service: service === undefined || service === null ? '' : String(service) })] }, this._to));
    if (raw.status !== 0) throw new Error(`rpc error: code = ${STATUS[raw.status] || raw.status} desc = ${raw.text}`);
    return { status: ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'].indexOf(JSON.parse(raw.messages[0]).status) };
  }
  close() { this._to = null; }
}

const EVENTS = ['data', 'error', 'end'];
class Stream {
  constructor(client, method, params) {
    if (!(client instanceof Client)) throw new Error('invalid GRPC Stream\'s client: expected a Client');
    const hidden = (name, value) => Object.defineProperty(this, name, { value, writable: true, enumerable: false });
    hidden('_spec', client._spec(method, params, 'Stream'));
    hidden('_listeners', { data: [], error: [], end: [] });
    hidden('_open', true);
    Object.assign(this._spec, { stream: true, messages: [] });
    hidden('_key', n.grpcBegin(this._spec));
    k6.onEnd(this._key, (raw) => this._take(raw));
  }
  on(event, handler) {
    if (typeof handler !== 'function') throw new TypeError(`handler for "${event}" event isn't a callable function`);
    if (EVENTS.includes(event)) this._listeners[event].push(handler);
    else n.warn(`can't register ${event} event handler: unknown GRPC stream's event type`);
  }
  write(message) {
    if (!this._open) return;
    if (message === undefined || message === null) { n.warn("can't send empty message"); return; }
    n.grpcWrite(this._key, JSON.stringify(message, numbers));
    // a method that takes one message has all of them
    if (!this._spec.known.clientStream) this.end();
  }
  end() {
    if (!this._open) return;
    this._open = false;
    n.grpcWrite(this._key, null);
  }
  _fire(event, value) {
    for (const listener of this._listeners[event]) listener(value, { ts: Math.floor(Date.now() / 1000) });
  }
  _take(raw) {
    for (const text of raw.messages) this._fire('data', JSON.parse(text));
    if (raw.status === undefined) return;
    this._open = false;
    if (raw.status !== 0) {
      if (this._listeners.error.length === 0) n.warn(`no handlers for error registered, but an error happened: ${raw.text}`);
      this._fire('error', problem(raw));
    }
    this._fire('end', {});
  }
}
k6.byName('k6/net/grpc', Object.assign({ Client, Stream }, constants));
})
