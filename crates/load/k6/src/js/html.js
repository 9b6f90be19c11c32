// k6/html: a document tree, CSS selectors and a Selection with the methods of jQuery in use.
(function (k6) {
'use strict';
const VOID = new Set(['area', 'base', 'br', 'col', 'embed', 'hr', 'img', 'input', 'link', 'meta', 'param', 'source', 'track', 'wbr']);
const RAW = new Set(['script', 'style', 'textarea', 'title']);
const CLOSES = { li: ['li'], option: ['option'], tr: ['tr', 'td', 'th'], td: ['td', 'th'], th: ['td', 'th'], p: ['p'], dt: ['dt', 'dd'], dd: ['dt', 'dd'] };
const DEPTH_MAX = 500;
const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0', copy: '\u00a9', euro: '\u20ac', hellip: '\u2026', mdash: '\u2014', ndash: '\u2013' };
function decode(text) {
  return text.replace(/&(#x[0-9a-f]+|#\d+|[a-z]+);?/gi, (all, name) => {
    if (name[0] === '#') {
      const code = name[1] === 'x' || name[1] === 'X' ? parseInt(name.slice(2), 16) : parseInt(name.slice(1), 10);
      return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : all;
    }
    return ENTITIES[name] === undefined ? all : ENTITIES[name];
  });
}
const escape = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');

function node(name, parent) { return { name, attrs: [], children: [], parent }; }
function parse(html) {
  const root = node('#document', null);
  let open = root;
  let depth = 0;
  const tag = /<!--[\s\S]*?(?:-->|$)|<![^>]*>|<\/([a-zA-Z][^\s>\/]*)[^>]*>|<([a-zA-Z][^\s>\/]*)((?:[^>"']|"[^"]*"|'[^']*')*)>/g;
  let at = 0;
  const text = (value) => { if (value !== '') open.children.push({ text: decode(value), parent: open }); };
  for (;;) {
    tag.lastIndex = at;
    const found = tag.exec(html);
    if (!found) break;
    text(html.slice(at, found.index));
    at = tag.lastIndex;
    if (found[1] !== undefined) {
      const name = found[1].toLowerCase();
      let up = open;
      while (up && up.name !== name) up = up.parent;
      if (up && up.parent) { while (open !== up.parent) { open = open.parent; depth -= 1; } }
    } else if (found[2] !== undefined) {
      const name = found[2].toLowerCase();
      const closes = CLOSES[name];
      if (closes && closes.includes(open.name)) { open = open.parent; depth -= 1; if (name === 'tr' && open.name === 'tr') { open = open.parent; depth -= 1; } }
      const made = node(name, open);
      const attribute = /([^\s=\/"'<>]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+))?/g;
      let one;
      while ((one = attribute.exec(found[3])) !== null) {
        const raw = one[2] === undefined ? '' : one[2].replace(/^(["'])([\s\S]*)\1$/, '$2');
        const key = one[1].toLowerCase();
        if (!made.attrs.some(([known]) => known === key)) made.attrs.push([key, decode(raw)]);
      }
      open.children.push(made);
      if (RAW.has(name)) {
        const end = html.toLowerCase().indexOf('</' + name, at);
        const inner = html.slice(at, end < 0 ? html.length : end);
        if (inner !== '') made.children.push({ text: name === 'script' || name === 'style' ? inner : decode(inner), raw: true, parent: made });
        at = end < 0 ? html.length : html.indexOf('>', end) + 1 || html.length;
      } else if (!VOID.has(name) && !/\/\s*$/.test(found[3]) && depth < DEPTH_MAX) { open = made; depth += 1; }
    }
  }
  text(html.slice(at));
  return root;
}
const attr = (element, name) => { const found = element.attrs.find(([known]) => known === name); return found ? found[1] : undefined; };
const elements = (one) => one.children.filter((child) => child.name !== undefined);
function textOf(one) { return one.text !== undefined ? one.text : one.children.map(textOf).join(''); }
function inner(one) { return one.children.map(outer).join(''); }
function outer(one) {
  if (one.text !== undefined) return one.raw ? one.text : escape(one.text);
  const attributes = one.attrs.map(([name, value]) => ` ${name}="${escape(value).replace(/"/g, '&#34;')}"`).join('');
  return VOID.has(one.name) ? `<${one.name}${attributes}/>` : `<${one.name}${attributes}>${inner(one)}</${one.name}>`;
}

// A selector: a list of alternatives, each a list of [combinator, tests] from left to right.
function compile(text) {
  const alternatives = [];
  let chain = [];
  let tests = [];
  let combinator = ' ';
  let i = 0;
  const end = () => { if (tests.length > 0) { chain.push([combinator, tests]); tests = []; combinator = ' '; } };
  const word = () => { const found = /^[-\w\u0080-\uffff\\]+/.exec(text.slice(i)); if (!found) throw new Error(`selector "${text}" cannot be read at position ${i + 1}`); i += found[0].length; return found[0].replace(/\\/g, ''); };
  while (i < text.length) {
    const c = text[i];
    if (/\s/.test(c)) { end(); i++; } else if (c === '>' || c === '+' || c === '~') { end(); combinator = c; i++; } else if (c === ',') { end(); alternatives.push(chain); chain = []; i++; } else if (c === '*') { tests.push(() => true); i++; } else if (c === '#') { i++; const id = word(); tests.push((one) => attr(one, 'id') === id); } else if (c === '.') { i++; const name = word(); tests.push((one) => (attr(one, 'class') || '').split(/\s+/).includes(name)); } else if (c === '[') {
      const found = /^\[\s*([-\w:]+)\s*(?:([~|^$*!]?=)\s*("[^"]*"|'[^']*'|[^\]\s]+)\s*)?\]/.exec(text.slice(i));
      if (!found) throw new Error(`selector "${text}" cannot be read at position ${i + 1}`);
      i += found[0].length;
      const [, name, operator, quoted] = found;
      const wanted = quoted === undefined ? '' : quoted.replace(/^(["'])([\s\S]*)\1$/, '$2');
      tests.push((one) => {
        const value = attr(one, name.toLowerCase());
        if (operator === '!=') return value !== wanted;
        if (value === undefined) return false;
        switch (operator) {
          case undefined: return true;
          case '=': return value === wanted;
          case '~=': return value.split(/\s+/).includes(wanted);
          case '|=': return value === wanted || value.startsWith(wanted + '-');
          case '^=': return wanted !== '' && value.startsWith(wanted);
          case '$=': return wanted !== '' && value.endsWith(wanted);
          default: return wanted !== '' && value.includes(wanted);
        }
      });
    } else if (c === ':') {
      i++;
      const name = word();
      let argument = '';
      if (text[i] === '(') {
        let depth = 0;
        const start = i + 1;
        for (; i < text.length; i++) { if (text[i] === '(') depth++; if (text[i] === ')' && --depth === 0) break; }
        argument = text.slice(start, i);
        i++;
      }
      tests.push(pseudo(name, argument, text));
    } else { const name = word().toLowerCase(); tests.push((one) => one.name === name); }
  }
  end();
  alternatives.push(chain);
  return alternatives;
}
function pseudo(name, argument, text) {
  const place = (one) => elements(one.parent).indexOf(one);
  switch (name) {
    case 'first-child': return (one) => one.parent !== null && place(one) === 0;
    case 'last-child': return (one) => one.parent !== null && place(one) === elements(one.parent).length - 1;
    case 'nth-child': {
      const rule = argument.trim() === 'odd' ? [2, 1] : argument.trim() === 'even' ? [2, 0] : null;
      const found = /^(?:([-+]?\d*)n)?\s*([-+]?\s*\d+)?$/.exec(argument.trim());
      if (!rule && !found) throw new Error(`selector "${text}": :nth-child(${argument}) cannot be read`);
      const a = rule ? rule[0] : found[1] === undefined ? 0 : found[1] === '' || found[1] === '+' ? 1 : found[1] === '-' ? -1 : Number(found[1]);
      const b = rule ? rule[1] : found[2] === undefined ? 0 : Number(found[2].replace(/\s/g, ''));
      return (one) => { if (one.parent === null) return false; const at = place(one) + 1 - b; return a === 0 ? at === 0 : at / a >= 0 && at % a === 0; };
    }
    case 'not': { const other = compile(argument); return (one) => !matches(one, other); }
    case 'has': { const other = compile(argument); return (one) => descendants(one).some((child) => matches(child, other)); }
    case 'contains': { const wanted = argument.replace(/^(["'])([\s\S]*)\1$/, '$2'); return (one) => textOf(one).includes(wanted); }
    case 'checked': return (one) => attr(one, 'checked') !== undefined || attr(one, 'selected') !== undefined;
    case 'selected': return (one) => attr(one, 'selected') !== undefined;
    case 'disabled': return (one) => attr(one, 'disabled') !== undefined;
    case 'enabled': return (one) => attr(one, 'disabled') === undefined;
    case 'empty': return (one) => one.children.length === 0;
    case 'input': return (one) => ['input', 'select', 'textarea', 'button'].includes(one.name);
    default: throw new Error(`selector "${text}": :${name} is not available`);
  }
}
function fits(one, chain, at) {
  if (one.name === '#document' || !chain[at][1].every((test) => test(one))) return false;
  if (at === 0) return true;
  const combinator = chain[at][0];
  const siblings = one.parent ? elements(one.parent) : [];
  const place = siblings.indexOf(one);
  switch (combinator) {
    case '>': return one.parent !== null && fits(one.parent, chain, at - 1);
    case '+': return place > 0 && fits(siblings[place - 1], chain, at - 1);
    case '~': return siblings.slice(0, Math.max(place, 0)).some((before) => fits(before, chain, at - 1));
    default: { for (let up = one.parent; up !== null; up = up.parent) if (fits(up, chain, at - 1)) return true; return false; }
  }
}
function matches(one, alternatives) { return alternatives.some((chain) => chain.length > 0 && fits(one, chain, chain.length - 1)); }
function descendants(one) {
  const out = [];
  const walk = (up) => { for (const child of up.children) if (child.name !== undefined) { out.push(child); walk(child); } };
  walk(one);
  return out;
}

class Element {
  constructor(one, url) { Object.defineProperty(this, 'node', { value: one }); Object.defineProperty(this, 'url', { value: url }); }
  nodeName() { return this.node.name; }
  nodeType() { return '1'; }
  getAttribute(name) { const value = attr(this.node, name); return value === undefined ? null : value; }
  hasAttribute(name) { return attr(this.node, name) !== undefined; }
  textContent() { return textOf(this.node); }
  innerHTML() { return inner(this.node); }
  id() { return attr(this.node, 'id') || ''; }
  value() { return attr(this.node, 'value') || ''; }
  selection() { return new Selection([this.node], this.url); }
  toString() { return outer(this.node); }
}
class Selection {
  constructor(nodes, url) {
    Object.defineProperty(this, 'nodes', { value: nodes });
    Object.defineProperty(this, 'url', { value: url });
  }
  _of(nodes) { return new Selection([...new Set(nodes)], this.url); }
  _filter(nodes, selector) { if (selector === undefined) return nodes; const test = compile(String(selector)); return nodes.filter((one) => matches(one, test)); }
  size() { return this.nodes.length; }
  get length() { return this.nodes.length; }
  find(selector) {
    const test = compile(String(selector));
    return this._of(this.nodes.flatMap((one) => descendants(one).filter((child) => matches(child, test))));
  }
  filter(what) {
    if (typeof what === 'function') return this._of(this.nodes.filter((one, i) => what(i, new Selection([one], this.url))));
    return this._of(this._filter(this.nodes, what));
  }
  not(selector) { const test = compile(String(selector)); return this._of(this.nodes.filter((one) => !matches(one, test))); }
  is(selector) { return this._filter(this.nodes, selector).length > 0; }
  has(selector) { const test = compile(String(selector)); return this._of(this.nodes.filter((one) => descendants(one).some((child) => matches(child, test)))); }
  first() { return this._of(this.nodes.slice(0, 1)); }
  last() { return this._of(this.nodes.slice(-1)); }
  eq(index) { const at = index < 0 ? this.nodes.length + index : index; return this._of(this.nodes.slice(at, at + 1)); }
  slice(from, to) { return this._of(this.nodes.slice(from, to)); }
  get(index) {
    if (index === undefined) return this.nodes.map((one) => new Element(one, this.url));
    const one = this.nodes[index < 0 ? this.nodes.length + index : index];
    return one === undefined ? undefined : new Element(one, this.url);
  }
  toArray() { return this.nodes.map((one) => new Selection([one], this.url)); }
  each(fn) { this.nodes.some((one, i) => fn(i, new Element(one, this.url)) === false); return this; }
  map(fn) { return this.nodes.map((one, i) => fn(i, new Selection([one], this.url))); }
  index() { const one = this.nodes[0]; return one && one.parent ? elements(one.parent).indexOf(one) : -1; }
  text() { return this.nodes.map(textOf).join(''); }
  html() { return this.nodes.length === 0 ? undefined : inner(this.nodes[0]); }
  attr(name, fallback) { const value = this.nodes.length === 0 ? undefined : attr(this.nodes[0], String(name).toLowerCase()); return value === undefined ? fallback : value; }
  data(name) {
    const one = this.nodes[0];
    if (one === undefined) return undefined;
    const convert = (value) => { try { return JSON.parse(value); } catch (e) { return value; } };
    if (name !== undefined) { const value = attr(one, 'data-' + name.replace(/[A-Z]/g, (c) => '-' + c.toLowerCase())); return value === undefined ? undefined : convert(value); }
    const made = {};
    for (const [key, value] of one.attrs) if (key.startsWith('data-')) made[key.slice(5).replace(/-(\w)/g, (_, c) => c.toUpperCase())] = convert(value);
    return made;
  }
  val() {
    const one = this.nodes[0];
    if (one === undefined) return undefined;
    if (one.name === 'textarea') return textOf(one);
    if (one.name === 'select') {
      const options = descendants(one).filter((child) => child.name === 'option');
      const chosen = options.filter((option) => attr(option, 'selected') !== undefined);
      const value = (option) => { const given = attr(option, 'value'); return given === undefined ? textOf(option) : given; };
      if (attr(one, 'multiple') !== undefined) return chosen.map(value);
      const picked = chosen[0] || options[0];
      return picked === undefined ? undefined : value(picked);
    }
    return one.name === 'option' && attr(one, 'value') === undefined ? textOf(one) : attr(one, 'value');
  }
  children(selector) { return this._of(this._filter(this.nodes.flatMap(elements), selector)); }
  contents() { return this._of(this.nodes.flatMap((one) => one.children)); }
  parent(selector) { return this._of(this._filter(this.nodes.map((one) => one.parent).filter((one) => one && one.name !== '#document'), selector)); }
  _ups(one) { const out = []; for (let up = one.parent; up && up.name !== '#document'; up = up.parent) out.push(up); return out; }
  parents(selector) { return this._of(this._filter(this.nodes.flatMap((one) => this._ups(one)), selector)); }
  closest(selector) {
    const test = compile(String(selector));
    return this._of(this.nodes.map((one) => [one, ...this._ups(one)].find((up) => matches(up, test))).filter((one) => one !== undefined));
  }
  _siblings(pick, selector) {
    return this._of(this._filter(this.nodes.flatMap((one) => { const all = one.parent ? elements(one.parent) : []; return pick(all, all.indexOf(one)); }), selector));
  }
  next(selector) { return this._siblings((all, at) => all.slice(at + 1, at + 2), selector); }
  nextAll(selector) { return this._siblings((all, at) => all.slice(at + 1), selector); }
  prev(selector) { return this._siblings((all, at) => all.slice(Math.max(at - 1, 0), at), selector); }
  prevAll(selector) { return this._siblings((all, at) => all.slice(0, at).reverse(), selector); }
  siblings(selector) { return this._siblings((all, at) => all.filter((_, i) => i !== at), selector); }
  add(selector) { const root = this.nodes[0] && [this.nodes[0], ...this._ups(this.nodes[0])].pop(); return root ? this._of([...this.nodes, ...new Selection([root.parent || root], this.url).find(selector).nodes]) : this; }
  serializeArray() {
    const form = this.nodes[0];
    if (form === undefined) return [];
    const out = [];
    for (const one of descendants(form)) {
      const name = attr(one, 'name');
      if (!['input', 'select', 'textarea'].includes(one.name) || !name || attr(one, 'disabled') !== undefined) continue;
      const type = (attr(one, 'type') || '').toLowerCase();
      if (['submit', 'button', 'reset', 'image', 'file'].includes(type)) continue;
      if ((type === 'checkbox' || type === 'radio') && attr(one, 'checked') === undefined) continue;
      const value = new Selection([one], this.url).val();
      for (const each of Array.isArray(value) ? value : [value === undefined ? ((type === 'checkbox' || type === 'radio') ? 'on' : '') : value]) out.push({ name, value: each });
    }
    return out;
  }
  serializeObject() { const made = {}; for (const { name, value } of this.serializeArray()) made[name] = value; return made; }
  serialize() { return this.serializeArray().map(({ name, value }) => encodeURIComponent(name).replace(/%20/g, '+') + '=' + encodeURIComponent(value).replace(/%20/g, '+')).join('&'); }
}
k6.byName('k6/html', { parseHTML: (html, url) => new Selection([parse(String(html))], url), Selection, Element });
})
