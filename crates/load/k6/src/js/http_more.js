// Parts of k6/http that few scripts use: multipart bodies, forms, links, batches.
(function (k6) {
'use strict';
const { n, buffer, prepare, request, form, FileData, HTTPURL, Response, checked } = k6.api;

function multipart(object) {
  const boundary = n.hex(n.randomBytes(30));
  const parts = [];
  const quote = (value) => value.replace(/\\/g, '\\\\').replace(/"/g, '\\"');
  const add = (key, value) => {
    if (value instanceof FileData) {
      parts.push(n.utf8(`--${boundary}\r\nContent-Disposition: form-data; name="${quote(key)}"; filename="${quote(value.filename)}"\r\nContent-Type: ${value.content_type}\r\n\r\n`));
      parts.push(buffer(value.data), n.utf8('\r\n'));
    } else {
      parts.push(n.utf8(`--${boundary}\r\nContent-Disposition: form-data; name="${quote(key)}"\r\n\r\n${String(value)}\r\n`));
    }
  };
  for (const key of Object.keys(object)) {
    const value = object[key];
    if (Array.isArray(value)) for (const one of value) add(key, one); else add(key, value);
  }
  parts.push(n.utf8(`--${boundary}--\r\n`));
  let length = 0;
  for (const part of parts) length += part.byteLength;
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) { all.set(new Uint8Array(part), at); at += part.byteLength; }
  return [all.buffer, 'multipart/form-data; boundary=' + boundary];
}

function submitForm(res, args) {
  const page = res.html(args.formSelector || 'form').first();
  if (page.size() === 0) throw new Error(`no form found for selector '${args.formSelector || 'form'}' in response '${res.url}'`);
  const method = (page.attr('method') || 'get').toUpperCase();
  const action = page.attr('action');
  const target = action === undefined ? res.url : n.join(res.url, action);
  const values = page.serializeObject();
  const submit = page.find(args.submitSelector || '[type="submit"]').first();
  const name = submit.attr('name');
  if (name !== undefined) values[name] = submit.attr('value') || '';
  Object.assign(values, args.fields || {});
  if (method === 'GET') return request('GET', target.split('?')[0] + '?' + form(values), null, args.params);
  return request(method, target, values, args.params);
}
function clickLink(res, args) {
  const link = res.html(args.selector || 'a[href]').first();
  const href = link.attr('href');
  if (href === undefined) throw new Error(`no element found for selector '${args.selector || 'a[href]'}' in response '${res.url}'`);
  return request('GET', n.join(res.url, href), null, args.params);
}

function batch(requests) {
  if (requests === null || typeof requests !== 'object') throw new TypeError('invalid http.batch() argument type');
  const one = (entry, key) => {
    if (typeof entry === 'string' || entry instanceof HTTPURL) return prepare('GET', entry, null, {});
    if (Array.isArray(entry)) return prepare(String(entry[0]).toUpperCase(), entry[1], entry[2], entry[3]);
    if (entry && typeof entry === 'object') {
      if (entry.url === undefined) throw new Error(`batch request '${key}' doesn't have a url key`);
      const method = entry.method === undefined ? 'GET' : String(entry.method).toUpperCase();
      return prepare(method, entry.url, method === 'GET' || method === 'HEAD' ? null : entry.body, entry.params);
    }
    throw new TypeError(`invalid http.batch() request '${key}'`);
  };
  const many = Array.isArray(requests);
  const keys = Object.keys(requests);
  const ready = keys.map((key) => one(requests[key], key));
  const answers = n.batch(Response, ready);
  const out = many ? [] : {};
  keys.forEach((key, i) => {
    out[key] = checked(answers[i], ready[i].throws);
  });
  return out;
}

k6.api.httpMore = { multipart, submitForm, clickLink, batch };
})
