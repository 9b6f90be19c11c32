// jslib's httpx: requests with the base URL, headers and tags of a session.
import http from 'k6/http';
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'];
const merged = (first, second) => Object.assign({}, first, second, {
  headers: Object.assign({}, first.headers, second.headers), tags: Object.assign({}, first.tags, second.tags),
});
export class Request {
  constructor(method, url, params = {}) {
    const { body = null, ...rest } = params;
    Object.assign(this, { method, url, body, params: rest });
    if (url && url.name !== undefined) { this.url = url.url; this.addTag('name', url.name); }
  }
  addHeader(name, value) { this.params.headers = Object.assign({}, this.params.headers, { [name]: value }); return this; }
  addTag(name, value) { this.params.tags = Object.assign({}, this.params.tags, { [name]: value }); return this; }
}
const requestOf = (method) => class extends Request { constructor(url, params) { super(method, url, params); } };
export const Get = requestOf('GET'), Head = requestOf('HEAD'), Post = requestOf('POST'), Put = requestOf('PUT'), Delete = requestOf('DELETE'),
  Connect = requestOf('CONNECT'), Options = requestOf('OPTIONS'), Trace = requestOf('TRACE'), Patch = requestOf('PATCH');
export class Httpx {
  constructor(given = {}) {
    const { baseURL = '', errorMetricCondition = (r) => r.status >= 200 && r.status <= 399, errorMetric = null, headers = {}, tags = {}, ...rest } = given;
    Object.assign(this, { baseURL, errorMetric, errorMetricCondition, lastRequest: { responseObject: null, responseChainDuration: null } });
    this.k6params = { headers, tags, ...rest };
  }
  get lastRequestChainDuration() { return this.lastRequest.responseChainDuration; }
  setBaseUrl(url) { this.baseURL = url; }
  addHeaders(headers) { Object.assign(this.k6params.headers, headers); }
  addHeader(name, value) { this.k6params.headers[name] = value; }
  addTags(tags) { Object.assign(this.k6params.tags, tags); }
  addTag(name, value) { this.k6params.tags[name] = value; }
  clearTag(name) { delete this.k6params.tags[name]; }
  clearHeader(name) { delete this.k6params.headers[name]; }
  _ready(method, url, params, shared = {}) {
    if (!METHODS.includes(method)) throw new Error(`Invalid method: ${method}. Expected one of ${METHODS}`);
    const made = merged(merged(this.k6params, shared), params || {});
    if (url && url.name !== undefined) { made.tags.name = url.name; url = url.url; }
    return [String(url).startsWith('http') ? String(url) : this.baseURL + url, made];
  }
  execute(request) { return this.request(request.method, request.url, request.body, request.params); }
  request(method, url, body, params) {
    if (arguments.length < 2) throw new Error('Invalid number of arguments for request(). Provide at least Method and URL.');
    const [address, made] = this._ready(method, url, params);
    const begin = Date.now();
    const response = http.request(method, address, body, made);
    this._after(response, made, Date.now() - begin);
    return response;
  }
  _after(response, params, took) {
    if (this.errorMetric) this.errorMetric.add(!(params.expect || this.errorMetricCondition)(response));
    this.lastRequest = { responseObject: response, responseChainDuration: took };
  }
  asyncRequest(method, url, body, params) {
    const [address, made] = this._ready(method, url, params);
    return http.asyncRequest(method, address, body, made);
  }
  batch(requests, shared) {
    const all = requests.map((one) => (Array.isArray(one) ? { method: one[0], url: one[1], body: one[2], params: one[3] } : one));
    const ready = all.map((one) => {
      const [address, params] = this._ready(one.method, one.url, one.params, shared);
      return [one.method, address, one.body === undefined ? null : one.body, params];
    });
    const begin = Date.now();
    const responses = http.batch(ready);
    responses.forEach((response, i) => this._after(response, ready[i][3], Date.now() - begin));
    return responses;
  }
}
for (const method of METHODS) {
  const name = method.toLowerCase();
  Httpx.prototype[name] = function (url, body, params) { return this.request(method, url, body, params); };
  Httpx.prototype['async' + name[0].toUpperCase() + name.slice(1)] = function (url, body, params) { return this.asyncRequest(method, url, body, params); };
}
export function test(name, body, parent) {
  let success = true;
  try { body(parent); } catch (error) { success = false; console.error(`Exception in "${name}": ${error}`); }
  return success;
}
