// loadstone/postman: a Postman collection (2.1) as a journey, with its scripts and their `pm` object.
(function (k6) {
'use strict';
const { n } = k6.api;
const { check } = k6.module('k6');
const http = k6.module('k6/http');
// Requests of one iteration: setNextRequest() can make it endless.
const REQUESTS_MAX = 1000;

// ---------------------------------------------------------------- variables
class Scope {
  constructor(list) {
    this.values = Object.create(null);
    for (const one of list || []) {
      if (one.disabled || one.enabled === false) continue;
      const name = one.key === undefined ? one.id : one.key;
      if (name) this.values[name] = one.value;
    }
  }
  get(name) { return this.values[name]; }
  has(name) { return name in this.values; }
  set(name, value) { this.values[name] = value; }
  unset(name) { delete this.values[name]; }
  clear() { this.values = Object.create(null); }
  toObject() { return Object.assign({}, this.values); }
}
const int = (low, high) => low + Math.floor(Math.random() * (high - low + 1));
const uuid = () => globalThis.crypto.randomUUID();
const WORDS = ['amber', 'cedar', 'delta', 'ember', 'fable', 'grove', 'harbor', 'island', 'juniper', 'lagoon'];
const word = () => WORDS[int(0, WORDS.length - 1)];
const letters = (count) => Array.from({ length: count }, () => 'abcdefghijklmnopqrstuvwxyz0123456789'[int(0, 35)]).join('');
const DYNAMIC = {
  $guid: uuid, $randomUUID: uuid, $timestamp: () => Math.floor(Date.now() / 1000), $isoTimestamp: () => new Date().toISOString(),
  $randomInt: () => int(0, 1000), $randomBoolean: () => int(0, 1) === 1, $randomAlphaNumeric: () => letters(1), $randomPassword: () => letters(15),
  $randomFirstName: word, $randomLastName: word, $randomFullName: () => `${word()} ${word()}`, $randomUserName: () => `${word()}${int(1, 999)}`,
  $randomEmail: () => `${word()}.${letters(6)}@example.com`, $randomWord: word, $randomCity: word, $randomCountry: word, $randomColor: word,
  $randomProductName: () => `${word()} ${word()}`, $randomCompanyName: () => `${word()} ${word()}`, $randomPrice: () => (int(0, 99999) / 100).toFixed(2),
  $randomIP: () => [0, 0, 0, 0].map(() => int(1, 254)).join('.'), $randomUrl: () => `https://${word()}.example.com`, $randomPhoneNumber: () => `555-${int(100, 999)}-${int(1000, 9999)}`,
};

// ---------------------------------------------------------------- pm.expect
const chai = n.evaluateModule('jslib:k6chaijs');
// An assertion that throws and is not a check: pm.test() is the check.
class Expectation extends chai.Assertion {
  _conclude(pass, text) { if (!pass) throw new Error(text); return this; }
}
const expect = (value, message) => new Expectation(value, message);

// ---------------------------------------------------------------- requests
const list = (value) => (Array.isArray(value) ? value : []);
const enabled = (one) => one && !one.disabled;
function source(event) {
  const exec = event.script && event.script.exec;
  return Array.isArray(exec) ? exec.join('\n') : typeof exec === 'string' ? exec : '';
}
function flatten(items, outer, out) {
  for (const item of list(items)) {
    const events = outer.events.concat(list(item.event).filter(enabled));
    const auth = item.auth || outer.auth;
    if (item.item) flatten(item.item, { events, auth }, out);
    else if (item.request) {
      const request = typeof item.request === 'string' ? { url: item.request } : item.request;
      out.push({ name: String(item.name || ''), request, auth: request.auth || auth, events });
    }
  }
  return out;
}
function rawUrl(url) {
  if (typeof url === 'string') return url;
  if (!url) return '';
  const join = (part, by) => (Array.isArray(part) ? part.map((one) => (typeof one === 'object' ? one.value : one)).join(by) : part || '');
  let raw = url.raw || `${url.protocol ? url.protocol + '://' : ''}${join(url.host, '.')}${url.port ? ':' + url.port : ''}/${join(url.path, '/')}`;
  const query = list(url.query);
  if (query.length > 0) {
    const fields = query.filter(enabled).map((one) => (one.value === undefined || one.value === null ? one.key : `${one.key}=${one.value}`));
    raw = raw.split('?')[0] + (fields.length ? '?' + fields.join('&') : '');
  }
  for (const one of list(url.variable)) raw = raw.replace(new RegExp(`/:${one.key}(?=[/?#]|$)`), () => `/${one.value}`);
  return raw;
}

// A function that makes one visit: all requests of the collection, in order.
function collection(text, environment, globals) {
  const root = typeof text === 'string' ? JSON.parse(text) : text;
  const book = root.collection || root;
  if (!Array.isArray(book.item)) throw new Error('it is not a Postman collection: it has no item');
  const values = (given) => { const made = typeof given === 'string' ? JSON.parse(given) : given; return made && (made.values || made); };
  const scopes = { globals: new Scope(values(globals)), collection: new Scope(book.variable), environment: new Scope(values(environment)), local: new Scope() };
  const items = flatten(book.item, { events: list(book.event).filter(enabled), auth: book.auth }, []);
  const compiled = new Map();
  let iteration = 0;

  function lookUp(name) {
    if (Object.hasOwn(DYNAMIC, name)) return DYNAMIC[name]();
    for (const scope of [scopes.local, scopes.environment, scopes.collection, scopes.globals]) if (scope.has(name)) return scope.get(name);
    return undefined;
  }
  function replaceIn(value) {
    let out = String(value);
    // values may contain marks themselves
    for (let round = 0; round < 5 && out.includes('{{'); round++) {
      const before = out;
      out = out.replace(/\{\{([^{}]+)\}\}/g, (mark, name) => { const found = lookUp(name.trim()); return found === undefined || found === null ? mark : String(found); });
      if (out === before) break;
    }
    return out;
  }
  const pairs = (given) => {
    if (typeof given === 'string') return given.split('\n').map((line) => line.split(':')).filter((one) => one.length > 1).map(([key, ...rest]) => ({ key: key.trim(), value: rest.join(':').trim() }));
    return list(given).filter((one) => enabled(one) && one.key).map((one) => ({ key: one.key, value: one.value }));
  };
  function bodyOf(body, headers) {
    const typed = headers.some((one) => one.key.toLowerCase() === 'content-type');
    const typeIs = (type) => { if (!typed) headers.push({ key: 'Content-Type', value: type }); };
    if (!body || body.disabled) return null;
    switch (body.mode) {
      case 'raw': {
        if (!body.raw) return null;
        const language = body.options && body.options.raw && body.options.raw.language;
        const types = { json: 'application/json', xml: 'application/xml', html: 'text/html', javascript: 'application/javascript', text: 'text/plain' };
        if (types[language]) typeIs(types[language]); else if (/^\s*[[{]/.test(body.raw)) typeIs('application/json');
        return replaceIn(body.raw);
      }
      case 'urlencoded': {
        typeIs('application/x-www-form-urlencoded');
        const part = (value) => encodeURIComponent(replaceIn(value === undefined || value === null ? '' : value)).replace(/%20/g, '+');
        return list(body.urlencoded).filter(enabled).map((one) => `${part(one.key)}=${part(one.value)}`).join('&');
      }
      case 'formdata': {
        const form = {};
        for (const one of list(body.formdata).filter(enabled)) {
          if (one.type === 'file') throw new Error(`the upload ${one.key} is not available: collections with uploads become plans`);
          const value = replaceIn(one.value === undefined || one.value === null ? '' : one.value);
          (form[one.key] = form[one.key] || []).push(value);
        }
        // the boundary is made with the body
        const [content, type] = k6.api.more().multipart(form);
        for (let at = headers.length - 1; at >= 0; at--) if (headers[at].key.toLowerCase() === 'content-type') headers.splice(at, 1);
        headers.push({ key: 'Content-Type', value: type });
        return content;
      }
      case 'graphql': {
        typeIs('application/json');
        const { query, variables } = body.graphql || {};
        return `{"query":${JSON.stringify(replaceIn(query || ''))},"variables":${replaceIn(variables || '') || '{}'}}`;
      }
      case undefined: case '': return null;
      default: throw new Error(`a body of mode ${body.mode} is not available`);
    }
  }
  function logIn(auth, headers, url) {
    if (!auth || !auth.type || auth.type === 'noauth') return url;
    const given = auth[auth.type];
    const value = (name) => {
      const found = Array.isArray(given) ? (given.find((one) => one.key === name) || {}).value : given && given[name];
      return found === undefined || found === null ? '' : replaceIn(found);
    };
    const put = (key, text) => { if (!headers.some((one) => one.key.toLowerCase() === key.toLowerCase())) headers.push({ key, value: text }); };
    if (auth.type === 'bearer') put('Authorization', `Bearer ${value('token')}`);
    else if (auth.type === 'basic') put('Authorization', 'Basic ' + k6.module('k6/encoding').b64encode(`${value('username')}:${value('password')}`));
    else if (auth.type === 'apikey') {
      if (value('in') === 'query') return `${url}${url.includes('?') ? '&' : '?'}${encodeURIComponent(value('key'))}=${encodeURIComponent(value('value'))}`;
      put(value('key') || 'X-API-Key', value('value'));
    } else throw new Error(`the login ${auth.type} is not available`);
    return url;
  }
  function scopeOf(scope) {
    return {
      get: (name) => scope.get(name), has: (name) => scope.has(name), set: (name, value) => scope.set(name, value),
      unset: (name) => scope.unset(name), clear: () => scope.clear(), toObject: () => scope.toObject(), replaceIn,
    };
  }
  function headerList(headers) {
    const find = (name) => headers.findIndex((one) => one.key.toLowerCase() === String(name).toLowerCase());
    const upsert = (one) => { const at = find(one.key); if (at < 0) headers.push({ key: one.key, value: one.value }); else headers[at].value = one.value; };
    return {
      add: (one) => headers.push({ key: one.key, value: one.value }), upsert, remove: (name) => { const at = find(name); if (at >= 0) headers.splice(at, 1); },
      get: (name) => { const at = find(name); return at < 0 ? undefined : headers[at].value; }, has: (name) => find(name) >= 0,
      toObject: () => Object.fromEntries(headers.map((one) => [one.key, one.value])), all: () => headers,
    };
  }
  const refuse = (what) => () => { throw new Error(`${what} is not available in scripts of Postman here`); };
  function responseOf(res) {
    const headers = headerList(Object.keys(res.headers).map((key) => ({ key, value: res.headers[key] })));
    const body = res.body === null ? '' : res.body;
    const made = {
      code: res.status, status: res.status_text, headers, responseTime: res.timings.duration, responseSize: body.length,
      text: () => body, json: () => JSON.parse(body),
    };
    const rules = (negated) => {
      const rule = (met, what) => { if (!!met === negated) throw new Error(`expected the response ${negated ? 'not ' : ''}to ${what}, it is ${res.status}`); };
      const have = {
        status: (wanted) => rule(wanted === res.status || wanted === res.status_text, `have the status ${wanted}`),
        header: (name, value) => rule(headers.has(name) && (value === undefined || headers.get(name) === value), `have the header ${name}`),
        body: (text) => rule(text === undefined ? body !== '' : text instanceof RegExp ? text.test(body) : body === text, 'have that body'),
        jsonBody: (path, value) => {
          let json; try { json = JSON.parse(body); } catch (e) { json = undefined; }
          const found = path === undefined ? json : chai.at(json, path);
          rule(found !== undefined && (value === undefined || chai.equalDeep(found, value)), `have the JSON ${path || 'body'}`);
        },
      };
      const ranges = { info: [100, 199], success: [200, 299], redirection: [300, 399], clientError: [400, 499], serverError: [500, 599], error: [400, 599] };
      const codes = { ok: 200, accepted: 202, badRequest: 400, unauthorized: 401, forbidden: 403, notFound: 404, rateLimited: 429 };
      const be = {};
      for (const name of Object.keys(ranges)) Object.defineProperty(be, name, { get() { rule(res.status >= ranges[name][0] && res.status <= ranges[name][1], `be ${name}`); return true; } });
      for (const name of Object.keys(codes)) Object.defineProperty(be, name, { get() { rule(res.status === codes[name], `be ${name}`); return true; } });
      for (const [name, test] of [['json', () => { JSON.parse(body); return true; }], ['withBody', () => body !== '']]) {
        Object.defineProperty(be, name, { get() { let met = false; try { met = test(); } catch (e) { met = false; } rule(met, `be ${name}`); return true; } });
      }
      return { have, be };
    };
    made.to = rules(false);
    Object.defineProperty(made.to, 'not', { get: () => rules(true) });
    return made;
  }
  function run(code, item, state) {
    if (code.trim() === '') return;
    if (!compiled.has(code)) compiled.set(code, new Function('pm', 'postman', 'tests', 'responseBody', 'responseCode', 'responseTime', 'require', code));
    const tests = {};
    const test = (name, body) => {
      let why = null;
      try { body(); } catch (error) { why = error; }
      check(null, { [String(name).replace(/::/g, ':')]: () => why === null });
      if (why !== null) n.log('info', `${item.name}: ${name}: ${why.message}`);
    };
    test.skip = () => {};
    const next = (name) => { state.next = name; };
    const pm = {
      info: { eventName: state.response ? 'test' : 'prerequest', iteration, iterationCount: 1, requestName: item.name, requestId: item.name },
      globals: scopeOf(scopes.globals), environment: scopeOf(scopes.environment), collectionVariables: scopeOf(scopes.collection),
      variables: Object.assign(scopeOf(scopes.local), { get: lookUp, has: (name) => lookUp(name) !== undefined }),
      iterationData: scopeOf(new Scope()), request: state.request, response: state.response, expect, test,
      cookies: { get: (name) => { const found = state.res && state.res.cookies[name]; return found && found[0] ? found[0].value : undefined; }, has: (name) => !!(state.res && state.res.cookies[name]) },
      execution: { setNextRequest: next, skipRequest: () => { state.skip = true; } }, sendRequest: refuse('pm.sendRequest'), require: refuse('pm.require'), visualizer: { set() {} },
    };
    const old = {
      setNextRequest: next, setEnvironmentVariable: (name, value) => scopes.environment.set(name, value), getEnvironmentVariable: (name) => scopes.environment.get(name),
      setGlobalVariable: (name, value) => scopes.globals.set(name, value), getGlobalVariable: (name) => scopes.globals.get(name),
      getResponseHeader: (name) => (state.response ? state.response.headers.get(name) : undefined),
    };
    const answer = state.response;
    try {
      compiled.get(code)(pm, old, tests, answer ? answer.text() : undefined, answer ? { code: answer.code, name: answer.status } : undefined, answer ? answer.responseTime : undefined, (name) => refuse(`require('${name}')`)());
    } catch (error) {
      n.log('error', `${item.name}: ${error.message}`);
      check(null, { [`script of ${item.name}`.replace(/::/g, ':')]: () => false });
    }
    for (const name of Object.keys(tests)) check(null, { [name.replace(/::/g, ':')]: () => !!tests[name] });
  }
  function make(item, state) {
    const { request } = item;
    const headers = pairs(request.header);
    const raw = { url: rawUrl(request.url), method: String(request.method || 'GET').toUpperCase(), body: request.body };
    state.request = { get url() { return { toString: () => replaceIn(raw.url), getPath: () => replaceIn(raw.url).replace(/^[^/]*\/\/[^/]*/, '').split('?')[0] }; }, set url(value) { raw.url = String(value); }, get method() { return raw.method; }, set method(value) { raw.method = String(value); }, get body() { return raw.body; }, set body(value) { raw.body = value; }, headers: headerList(headers), name: item.name };
    for (const event of item.events) if (event.listen === 'prerequest') run(source(event), item, state);
    if (state.skip) return;
    let url = replaceIn(raw.url);
    if (!/^[a-z]+:\/\//i.test(url)) url = 'http://' + url;
    const all = headers.map((one) => ({ key: one.key, value: replaceIn(one.value === undefined || one.value === null ? '' : one.value) }));
    const body = bodyOf(raw.body, all);
    url = logIn(item.auth, all, url);
    const params = { headers: Object.fromEntries(all.map((one) => [one.key, one.value])), tags: { name: item.name } };
    state.res = http.request(raw.method, url, body, params);
    state.response = responseOf(state.res);
    for (const event of item.events) if (event.listen === 'test') run(source(event), item, state);
  }
  return function visit() {
    let at = 0;
    for (let made = 0; at < items.length; made++) {
      if (made === REQUESTS_MAX) throw new Error(`the collection makes more than ${REQUESTS_MAX} requests: does setNextRequest() end?`);
      const state = { next: undefined, skip: false, request: null, response: undefined, res: null };
      make(items[at], state);
      if (state.next === null) break;
      const named = state.next === undefined ? -1 : items.findIndex((item) => item.name === state.next);
      if (state.next !== undefined && named < 0) throw new Error(`setNextRequest: no request is called "${state.next}"`);
      at = named >= 0 ? named : at + 1;
    }
    scopes.local.clear();
    iteration += 1;
  };
}
k6.byName('loadstone/postman', { collection });
})
