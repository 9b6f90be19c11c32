// jslib's http-instrumentation-tempo and -pyroscope: requests with the headers of a trace.
import http from 'k6/http';
import execution from 'k6/execution';
const hex = (digits) => { let made = ''; for (let i = 0; i < digits; i++) made += ((Math.random() * 16) | 0).toString(16); return made; };
const HEADERS = {
  w3c: (trace, sampled) => ({ traceparent: `00-${trace}-${hex(16)}-${sampled ? '01' : '00'}` }),
  jaeger: (trace, sampled) => ({ 'uber-trace-id': `${trace}:${hex(8)}:0:${sampled ? '1' : '0'}` }),
};
// The start of the identifiers that k6 makes, then the time.
const traceId = () => ('dc0718' + (Date.now() * 1e6).toString(16) + hex(32)).slice(0, 32);
const { request, asyncRequest } = http;
const withHeaders = (params, headers) => Object.assign({}, params, { headers: Object.assign({}, (params || {}).headers, headers) });
export class Client {
  constructor(options = {}) { this.configure(options); }
  configure(options) {
    const { propagator = 'w3c', sampling = 1 } = options;
    if (typeof options === 'object' && options.headers) { this._headers = options.headers; return; }
    if (!HEADERS[propagator]) throw new Error(`unknown propagator: ${propagator}`);
    if (!(sampling >= 0 && sampling <= 1)) throw new Error('sampling must be between 0.0 and 1.0');
    this._headers = () => HEADERS[propagator](traceId(), Math.random() < sampling);
  }
  request(method, url, body, params) { return request(method, url, body, withHeaders(params, this._headers(url, params))); }
  asyncRequest(method, url, body, params) { return asyncRequest(method, url, body, withHeaders(params, this._headers(url, params))); }
  get(url, params) { return this.request('GET', url, null, params); }
  head(url, params) { return this.request('HEAD', url, null, params); }
}
for (const [name, method] of [['del', 'DELETE'], ['options', 'OPTIONS'], ['patch', 'PATCH'], ['post', 'POST'], ['put', 'PUT']]) {
  Client.prototype[name] = function (url, body, params) { return this.request(method, url, body, params); };
}
const baggage = (url, params) => {
  const name = params && params.tags && params.tags.name ? params.tags.name : url;
  return { baggage: `k6.test_run_id=${__ENV.K6_CLOUDRUN_TEST_RUN_ID}, k6.scenario=${execution.scenario.name}, k6.name=${name}` };
};
// Replaces the functions of k6/http. Without options: those of pyroscope.
export function instrumentHTTP(options) {
  const client = new Client(options === undefined ? { headers: baggage } : options);
  for (const name of ['del', 'get', 'head', 'options', 'patch', 'post', 'put', 'request', 'asyncRequest']) http[name] = client[name].bind(client);
}
export default { Client, instrumentHTTP };
