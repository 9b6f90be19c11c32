// k6/http on the native `n.http`, which suspends the user until the response is there.
(function (k6) {
'use strict';
const { n, flat, buffer, isBinary, inside, append } = k6.api;

const DEFAULT_EXPECTED = [200, 399];
let callback = DEFAULT_EXPECTED;
const EXPECTED = Symbol('expected');

function expectedStatuses(...args) {
  if (args.length === 0) throw new Error('no arguments');
  const list = [];
  for (const one of args) {
    if (typeof one === 'number' && Number.isInteger(one)) list.push(one, one);
    else if (one && typeof one === 'object' && Number.isInteger(one.min) && Number.isInteger(one.max)) list.push(one.min, one.max);
    else throw new Error(`argument number ${args.indexOf(one) + 1} to expectedStatuses was neither an integer nor an object like {min:100, max:329}`);
  }
  return { [EXPECTED]: list };
}
function callbackOf(value) {
  if (value === null) return null;
  if (value && value[EXPECTED]) return value[EXPECTED];
  throw new Error('unsupported responseCallback');
}

class FileData {
  constructor(data, filename, type) {
    this.data = data;
    this.filename = filename === undefined ? String(Date.now()) : String(filename);
    this.content_type = type === undefined ? 'application/octet-stream' : String(type);
  }
}

class HTTPURL {
  constructor(url, name) { this.url = url; this.name = name; }
  toString() { return this.url; }
}
function url(parts, ...values) {
  let full = parts[0];
  let name = parts[0];
  for (let i = 0; i < values.length; i++) {
    full += String(values[i]) + parts[i + 1];
    name += '${}' + parts[i + 1];
  }
  return new HTTPURL(full, name);
}

function encode(value) {
  return encodeURIComponent(value).replace(/%20/g, '+').replace(/[!'()*]/g, (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase());
}
function form(object) {
  const parts = [];
  for (const key of Object.keys(object).sort()) {
    const value = object[key];
    if (Array.isArray(value)) for (const one of value) parts.push(encode(key) + '=' + encode(String(one)));
    else parts.push(encode(key) + '=' + encode(value === null || value === undefined ? String(value) : String(value)));
  }
  return parts.join('&');
}
// Parts that few scripts use are loaded when they are first used.
function more() {
  if (!k6.api.httpMore) n.builtIn('http_more')(k6);
  return k6.api.httpMore;
}
function bodyOf(body) {
  if (body === null || body === undefined) return [null, null];
  if (typeof body === 'string') return [body, null];
  if (isBinary(body)) return [buffer(body), null];
  if (body instanceof FileData) return [buffer(body.data), null];
  if (typeof body === 'object') {
    const values = Object.values(body);
    if (values.some((one) => one instanceof FileData || (Array.isArray(one) && one.some((each) => each instanceof FileData)))) return more().multipart(body);
    return [form(body), 'application/x-www-form-urlencoded'];
  }
  return [String(body), null];
}

function millis(value) {
  if (value === undefined || value === null) return -1;
  if (typeof value === 'number') return value;
  return n.duration(String(value));
}

function gjson(root, path) {
  if (!k6.api.gjson) n.builtIn('gjson')(k6);
  return k6.api.gjson(root, path);
}

// Value of `ocsp` without a certificate status, shared by all responses.
const NO_OCSP = { produced_at: 0, this_update: 0, next_update: 0, revoked_at: 0, revocation_reason: '', status: '' };
// Key of the native object for values that are read on demand. A private field would not be reached
// through a Proxy, or from an object with the response as its prototype.
const UNREAD = Symbol('unread');
// The values are passed by `Finished::object`; `unread`: the native object for the other values.
class Response {
  constructor(
    remoteIp, remotePort, url, status, statusText, proto, body,
    blocked, connecting, handshaking, sending, waiting, receiving, error, code, unread,
  ) {
    this[UNREAD] = unread;
    this.remote_ip = remoteIp;
    this.remote_port = remotePort;
    this.url = url;
    this.status = status;
    this.status_text = statusText;
    this.proto = proto;
    this.body = body;
    this.timings = {
      duration: sending + waiting + receiving, blocked, looking_up: 0, connecting,
      tls_handshaking: handshaking, sending, waiting, receiving,
    };
    this.tls_version = '';
    this.tls_cipher_suite = '';
    this.ocsp = NO_OCSP;
    this.error = error;
    this.error_code = code;
  }
  // Method of the last request.
  static methodOf(response) { return n.methodOf(response[UNREAD]); }
  get headers() {
    const made = {};
    const list = this[UNREAD] === undefined ? [] : n.headersOf(this[UNREAD]);
    for (let i = 0; i < list.length; i += 2) made[list[i]] = Object.hasOwn(made, list[i]) ? made[list[i]] + ', ' + list[i + 1] : list[i + 1];
    Object.defineProperty(this, 'headers', { value: made, enumerable: true, writable: true });
    return made;
  }
  get cookies() {
    const made = {};
    const list = this[UNREAD] === undefined ? [] : JSON.parse(n.cookiesOf(this[UNREAD]));
    for (const one of list) append(made, one.name, one);
    Object.defineProperty(this, 'cookies', { value: made, enumerable: true, writable: true });
    return made;
  }
  get request() {
    const unread = this[UNREAD], has = unread !== undefined;
    const sent = has ? n.sentOf(unread) : [];
    const headers = {};
    for (let i = 0; i < sent.length; i += 2) append(headers, sent[i], sent[i + 1]);
    const [method, url, body] = has ? n.requestOf(unread) : ['', '', ''];
    const made = { method, url, headers, body, cookies: {} };
    Object.defineProperty(this, 'request', { value: made, enumerable: true, writable: true });
    return made;
  }
  _text() {
    if (this.body === null || this.body === undefined) return null;
    return typeof this.body === 'string' ? this.body : n.text(this.body);
  }
  json(selector) {
    const body = this._text();
    if (body === null) {
      throw new Error("the body is null so we can't transform it to JSON - this likely was because of a request error getting the response");
    }
    if (this._parsed === undefined) {
      let parsed;
      try { parsed = JSON.parse(body); } catch (error) {
        throw new Error(`cannot parse json due to an error at line 1: ${error.message}`);
      }
      Object.defineProperty(this, '_parsed', { value: parsed, enumerable: false, writable: true });
    }
    if (selector === undefined) return this._parsed;
    return gjson(this._parsed, String(selector));
  }
  html(selector) {
    const body = this._text();
    if (body === null) {
      throw new Error("the body is null so we can't transform it to HTML - this likely was because of a request error getting the response");
    }
    const page = k6.module('k6/html').parseHTML(body, this.url);
    return selector === undefined ? page : page.find(selector);
  }
  submitForm(args) { return more().submitForm(this, args || {}); }
  clickLink(args) { return more().clickLink(this, args || {}); }
  toJSON() {
    const made = Object.assign({}, this);
    made.headers = this.headers; made.cookies = this.cookies; made.request = this.request;
    return made;
  }
}
// As in k6, `for … in` and inherited objects show all members.
for (const name of ['headers', 'cookies', 'request', 'html', 'json', 'submitForm', 'clickLink']) Object.defineProperty(Response.prototype, name, { enumerable: true });
// Parameters that few requests have, in the order of `HttpCall::with_params`; null if there are
// none. `type`: the type of the content if it is not the script's.
function moreOf(params, type) {
  let plain = type === null && callback === DEFAULT_EXPECTED;
  if (params !== null) for (const key in params) if (key !== 'tags' && key !== 'throw') plain = false;
  if (plain) return null;
  params = params || {};
  const headers = [];
  let typed = false;
  if (params.headers) {
    for (const key of Object.keys(params.headers)) {
      const value = params.headers[key];
      if (key.toLowerCase() === 'content-type') typed = true;
      headers.push(key, String(value));
    }
  }
  if (type !== null && !typed) headers.push('Content-Type', type);
  const cookies = [];
  if (params.cookies) {
    for (const key of Object.keys(params.cookies)) {
      const value = params.cookies[key];
      if (value && typeof value === 'object') cookies.push(key, String(value.value), value.replace ? '1' : '');
      else cookies.push(key, String(value), '');
    }
  }
  return [
    headers, cookies, millis(params.timeout),
    params.redirects === undefined || params.redirects === null ? -1 : Number(params.redirects),
    params.responseType === undefined ? '' : String(params.responseType),
    params.responseCallback === undefined ? callback : callbackOf(params.responseCallback),
    params.auth === undefined ? '' : String(params.auth),
    params.compression === undefined ? '' : String(params.compression),
    params.jar instanceof CookieJar ? params.jar.id : -1,
  ];
}
function prepare(method, target, body, params) {
  let name = null;
  let address;
  if (target instanceof HTTPURL) { address = target.url; name = target.name; }
  else address = String(target);
  params = params || null;
  const [content, type] = bodyOf(body);
  const more = moreOf(params, type);
  let tags = params === null ? null : flat(params.tags);
  if (name !== null) {
    tags = tags || [];
    if (!tags.some((one, i) => i % 2 === 0 && one === 'name')) tags.push('name', name);
  }
  return { method, url: address, body: content, tags, more, throws: params === null ? undefined : params.throw };
}
const perform = (ready) => checked(n.http(Response, ready.method, ready.url, ready.body, ready.tags, ready.more), ready.throws);
const throwing = (throws) => (throws === undefined ? n.throws() : !!throws);
function checked(res, throws) {
  if (res.status === 0 && res.error !== '') {
    if (throwing(throws)) throw new Error(res.error);
    if (n.simultaneous()) {
      const method = Response.methodOf(res);
      n.warn('Request Failed', `${method[0]}${method.slice(1).toLowerCase()} ${JSON.stringify(res.url)}: ${res.error}`);
    }
  }
  return res;
}
// Like k6, a request with invalid parameters fails without ending the iteration, unless `throw` is set.
function prepared(method, target, body, params) {
  inside('http requests');
  try {
    return prepare(String(method).toUpperCase(), target, body, params);
  } catch (error) {
    if (n.throws() || !n.simultaneous()) throw error;
    n.warn('Request Failed', error.message);
    return new Response('', 0, '', 0, '', '', null, 0, 0, 0, 0, 0, 0, error.message, 0, undefined);
  }
}
function request(method, target, body, params) {
  const ready = prepared(method, target, body, params);
  return ready instanceof Response ? ready : perform(ready);
}
// The same for a method in capital letters; most requests have neither a body nor parameters.
function send(method, target, body, params) {
  const isPlain = typeof target === 'string' && callback === DEFAULT_EXPECTED
    && (params === undefined || params === null) && (body === undefined || body === null || typeof body === 'string');
  if (!isPlain) return request(method, target, body, params);
  inside('http requests');
  return checked(n.http(Response, method, target, body, null, null), undefined);
}
async function asyncRequest(method, target, body, params) {
  const ready = prepared(method, target, body, params);
  if (ready instanceof Response) return ready;
  if (!n.simultaneous()) return perform(ready);
  return checked(await k6.ended(n.httpBegin(ready)), ready.throws);
}
class CookieJar {
  constructor(id) { Object.defineProperty(this, 'id', { value: id === undefined ? n.jarNew() : id }); }
  set(address, name, value, options) { return n.jarSet(this.id, String(address), String(name), String(value), options || {}); }
  cookiesForURL(address) {
    const list = n.jarGet(this.id, String(address));
    const made = {};
    for (let i = 0; i < list.length; i += 2) append(made, list[i], list[i + 1]);
    return made;
  }
  clear(address) { n.jarClear(this.id, String(address)); }
  delete(address, name) { n.jarDelete(this.id, String(address), String(name)); }
}

function batch(requests) {
  inside('http requests');
  return more().batch(requests);
}

const bodied = (method) => (target, body, params) => send(method, target, body, params);
const http = {
  get: (target, params) => send('GET', target, null, params),
  head: (target, params) => send('HEAD', target, null, params),
  post: bodied('POST'), put: bodied('PUT'), patch: bodied('PATCH'), del: bodied('DELETE'), options: bodied('OPTIONS'),
  request, asyncRequest, batch, url,
  file: (data, filename, type) => new FileData(data, filename, type),
  cookieJar: () => { inside('cookieJar()'); return new CookieJar(0); },
  CookieJar: class extends CookieJar { constructor() { super(); } },
  expectedStatuses,
  setResponseCallback: (value) => { callback = callbackOf(value); },
  TLS_1_0: 'tls1.0', TLS_1_1: 'tls1.1', TLS_1_2: 'tls1.2', TLS_1_3: 'tls1.3',
  OCSP_STATUS_GOOD: 'good', OCSP_STATUS_REVOKED: 'revoked', OCSP_STATUS_SERVER_FAILED: 'server_failed', OCSP_STATUS_UNKNOWN: 'unknown',
  OCSP_REASON_AA_COMPROMISE: 'aa_compromise', OCSP_REASON_AFFILIATION_CHANGED: 'affiliation_changed', OCSP_REASON_CA_COMPROMISE: 'ca_compromise',
  OCSP_REASON_CERTIFICATE_HOLD: 'certificate_hold', OCSP_REASON_CESSATION_OF_OPERATION: 'cessation_of_operation', OCSP_REASON_KEY_COMPROMISE: 'key_compromise',
  OCSP_REASON_PRIVILEGE_WITHDRAWN: 'privilege_withdrawn', OCSP_REASON_REMOVE_FROM_CRL: 'remove_from_crl', OCSP_REASON_SUPERSEDED: 'superseded', OCSP_REASON_UNSPECIFIED: 'unspecified',
};
k6.byName('k6/http', http);
Object.assign(k6.api, { prepare, request, form, FileData, HTTPURL, Response, checked, more });
})
