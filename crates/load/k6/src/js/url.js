// URL and URLSearchParams as jslib's url has them.
const parse = globalThis.__k6_parse_url;
export class URLSearchParams {
  constructor(init) {
    this.list = [];
    if (typeof init === 'string') {
      for (const part of init.replace(/^\?/, '').split('&')) {
        if (part === '') continue;
        const at = part.indexOf('=');
        const decode = (text) => { try { return decodeURIComponent(text.replace(/\+/g, ' ')); } catch (e) { return text; } };
        this.list.push(at < 0 ? [decode(part), ''] : [decode(part.slice(0, at)), decode(part.slice(at + 1))]);
      }
    } else if (Array.isArray(init)) {
      for (const [name, value] of init) this.list.push([String(name), String(value)]);
    } else if (init instanceof URLSearchParams) {
      this.list = init.list.map((one) => one.slice());
    } else if (init && typeof init === 'object') {
      for (const name of Object.keys(init)) this.list.push([name, String(init[name])]);
    }
    Object.defineProperty(this, 'changed', { value: () => {}, writable: true, enumerable: false });
  }
  append(name, value) { this.list.push([String(name), String(value)]); this.changed(); }
  delete(name) { this.list = this.list.filter(([known]) => known !== name); this.changed(); }
  get(name) { const found = this.list.find(([known]) => known === name); return found ? found[1] : null; }
  getAll(name) { return this.list.filter(([known]) => known === name).map(([, value]) => value); }
  has(name) { return this.list.some(([known]) => known === name); }
  set(name, value) {
    const at = this.list.findIndex(([known]) => known === name);
    if (at < 0) { this.append(name, value); return; }
    this.list[at][1] = String(value);
    this.list = this.list.filter(([known], i) => known !== name || i === at);
    this.changed();
  }
  sort() { this.list.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0)); this.changed(); }
  forEach(fn) { for (const [name, value] of this.list) fn(value, name, this); }
  keys() { return this.list.map(([name]) => name)[Symbol.iterator](); }
  values() { return this.list.map(([, value]) => value)[Symbol.iterator](); }
  entries() { return this.list.map((one) => one.slice())[Symbol.iterator](); }
  [Symbol.iterator]() { return this.entries(); }
  toString() {
    const encode = (text) => encodeURIComponent(text).replace(/%20/g, '+').replace(/[!'()~]/g, (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase());
    return this.list.map(([name, value]) => encode(name) + '=' + encode(value)).join('&');
  }
}
export class URL {
  constructor(text, base) {
    const made = parse(String(text), base === undefined ? null : String(base));
    if (!made) throw new TypeError(`Invalid URL: ${text}`);
    [, this.protocol, this.hostname, this.port, this.pathname, this.search, this.hash, this.username, this.password] = made;
    this.searchParams = new URLSearchParams(this.search);
    this.searchParams.changed = () => { const query = this.searchParams.toString(); this.search = query === '' ? '' : '?' + query; };
  }
  get host() { return this.hostname + (this.port ? ':' + this.port : ''); }
  get origin() { return this.protocol + '//' + this.host; }
  get href() {
    const login = this.username ? this.username + (this.password ? ':' + this.password : '') + '@' : '';
    return this.protocol + '//' + login + this.host + this.pathname + this.search + this.hash;
  }
  toString() { return this.href; }
  toJSON() { return this.href; }
}
export default { URL, URLSearchParams };
