// The common part of jslib's k6chaijs: each assertion is a check with the text of Chai.
import { check, group } from 'k6';
import { test } from 'k6/execution';
export const config = { truncateThreshold: 40, truncateVariableThreshold: 100, truncateMsgThreshold: 300,
  aggregateChecks: true, logFailures: false, exitOnError: false, includeStack: false };
export class AssertionError extends Error {
  constructor(message, fields) { super(message); this.name = 'AssertionError'; Object.assign(this, fields); }
}
const shorten = (text, most) => (text.length > most ? text.substring(0, most) + '...' : text);
function kind(value) {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value === 'object' ? Object.prototype.toString.call(value).slice(8, -1).toLowerCase() : typeof value;
}
function inspect(value, depth = 2) {
  if (typeof value === 'string') return `'${JSON.stringify(value).slice(1, -1).replace(/'/g, "\\'").replace(/\\"/g, '"')}'`;
  if (typeof value === 'function') return value.name ? `[Function: ${value.name}]` : '[Function]';
  if (typeof value === 'bigint') return `${value}n`;
  if (value === null || typeof value !== 'object') return Object.is(value, -0) ? '-0' : String(value);
  if (value instanceof Date) return value.toISOString();
  if (value instanceof RegExp) return String(value);
  if (value instanceof Error) return `[${value}]`;
  if (depth < 0) return Array.isArray(value) ? '[Array]' : '[Object]';
  if (Array.isArray(value)) return value.length === 0 ? '[]' : `[ ${value.map((one) => inspect(one, depth - 1)).join(', ')} ]`;
  const fields = Object.keys(value).map((key) => `${/^[a-zA-Z_][a-zA-Z_0-9]*$/.test(key) ? key : inspect(key)}: ${inspect(value[key], depth - 1)}`);
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`;
}
function display(value) {
  const text = inspect(value);
  if (text.length < config.truncateThreshold) return text;
  if (Array.isArray(value)) return `[ Array(${value.length}) ]`;
  if (kind(value) !== 'object') return text;
  const keys = Object.keys(value);
  return `{ Object (${keys.length > 2 ? keys.slice(0, 2).join(', ') + ', ...' : keys.join(', ')}) }`;
}
export function equalDeep(a, b) {
  if (Object.is(a, b)) return true;
  if (kind(a) !== kind(b) || typeof a !== 'object' || a === null || b === null) return false;
  if (a instanceof Date) return a.getTime() === b.getTime();
  if (a instanceof RegExp) return String(a) === String(b);
  if (a instanceof Map || a instanceof Set) return equalDeep([...a], [...b]);
  const [left, right] = [Object.keys(a), Object.keys(b)];
  return left.length === right.length && left.every((key) => Object.hasOwn(b, key) && equalDeep(a[key], b[key]));
}
const sizeOf = (value) => (value instanceof Map || value instanceof Set ? value.size : value.length);
export const at = (value, path) => path.replace(/\[(\w+)\]/g, '.$1').split('.').reduce((inner, key) => (inner === null || inner === undefined ? undefined : inner[key]), value);
const article = (type) => (/^[aeiou]/i.test(type) ? 'an' : 'a');

export class Assertion {
  constructor(object, message, flags) { this._obj = object; this._flags = Object.assign({ message }, flags); }
  assert(met, text, negated, expected, actual) {
    const flags = this._flags;
    const pass = flags.negate ? !met : !!met;
    let words = flags.negate && negated !== undefined ? negated : text;
    words = (typeof words === 'function' ? words() : words).replace('but ', '');
    if (flags.anonymous) words = flags.anonymous(words);
    const variable = (value) => shorten(display(value), config.truncateVariableThreshold);
    // functions, so that values are not read as patterns
    words = words.replace(/#\{exp\}/g, () => variable(expected));
    const fill = (mine, its) => words.replace(/#\{this\}/g, () => mine).replace(/#\{act\}/g, () => its);
    const whole = fill(variable(this._obj), variable(actual === undefined ? this._obj : actual));
    const full = flags.message ? `${flags.message}: ${whole}` : whole;
    return this._conclude(pass, full, fill, { actual, expected });
  }
  // Counts a check, and throws if it failed.
  _conclude(pass, full, fill, values) {
    const name = config.aggregateChecks ? shorten(fill(this._flags.message || '${this}', '${actual}'), config.truncateVariableThreshold) : full;
    check(null, { [name.replaceAll('::', ':')]: () => pass });
    if (pass) return this;
    const said = shorten(full, config.truncateMsgThreshold);
    if (config.logFailures) console.warn(said);
    if (config.exitOnError) test.abort(said);
    throw new AssertionError(said, values);
  }
  _on(object) { return new this.constructor(object, this._flags.message); }
  // The last argument of an assertion may be a message.
  _says(message) { if (message !== undefined) this._flags.message = message; return this; }
  _same(other) { return this._flags.deep ? equalDeep(this._obj, other) : this._obj === other; }
  get not() { this._flags.negate = true; return this; }
  equal(other, message) {
    this._says(message);
    if (this._flags.deep) return this.eql(other);
    return this.assert(this._obj === other, 'expected #{this} to equal #{exp}', 'expected #{this} to not equal #{exp}', other);
  }
  eql(other, message) { return this._says(message).assert(equalDeep(this._obj, other), 'expected #{this} to deeply equal #{exp}', 'expected #{this} to not deeply equal #{exp}', other); }
  _compare(met, other, is, isNot) {
    if (!this._flags.length) return this.assert(met(this._obj, other), `expected #{this} to be ${is} #{exp}`, `expected #{this} to be ${isNot} #{exp}`, other);
    this._on(this._obj).property('length');
    const size = sizeOf(this._obj);
    return this.assert(met(size, other), `expected #{this} to have a length ${is} #{exp} but got #{act}`, `expected #{this} to have a length ${isNot} #{exp}`, other, size);
  }
  above(other, message) { return this._says(message)._compare((a, b) => a > b, other, 'above', 'at most'); }
  least(other, message) { return this._says(message)._compare((a, b) => a >= b, other, 'at least', 'below'); }
  below(other, message) { return this._says(message)._compare((a, b) => a < b, other, 'below', 'at least'); }
  most(other, message) { return this._says(message)._compare((a, b) => a <= b, other, 'at most', 'above'); }
  within(low, high, message) {
    this._says(message);
    const value = this._flags.length ? sizeOf(this._obj) : this._obj;
    const what = this._flags.length ? 'have a length' : 'be';
    return this.assert(value >= low && value <= high, `expected #{this} to ${what} within ${low}..${high}`, `expected #{this} to not ${what} within ${low}..${high}`);
  }
  closeTo(other, delta, message) {
    this._says(message)._on(this._obj).a('number');
    return this.assert(Math.abs(this._obj - other) <= delta, `expected #{this} to be close to ${other} +/- ${delta}`, `expected #{this} not to be close to ${other} +/- ${delta}`);
  }
  instanceof(type, message) { return this._says(message).assert(this._obj instanceof type, `expected #{this} to be an instance of ${type.name}`, `expected #{this} to not be an instance of ${type.name}`); }
  property(name, value, message) {
    this._says(message);
    const { nested, own, deep } = this._flags;
    const object = this._obj;
    const found = nested ? at(object, String(name)) : (object === null || object === undefined ? undefined : object[name]);
    const has = own ? Object.hasOwn(Object(object), name) : (nested ? found !== undefined : object !== null && object !== undefined && name in Object(object));
    const title = `${deep ? 'deep ' : ''}${own ? 'own ' : ''}${nested ? 'nested ' : ''}property ${inspect(name)}`;
    const valued = arguments.length > 1;
    if (!valued || !this._flags.negate) this.assert(has, `expected #{this} to have ${title}`, `expected #{this} to not have ${title}`);
    if (valued) {
      const same = has && (deep ? equalDeep(found, value) : found === value);
      this.assert(same, `expected #{this} to have ${title} of #{exp}, but got #{act}`, `expected #{this} to not have ${title} of #{act}`, value, found);
    }
    this._obj = found;
    return this;
  }
  _lengthOf(count, message) {
    this._says(message);
    this._on(this._obj).property('length');
    const size = sizeOf(this._obj);
    return this.assert(size === count, 'expected #{this} to have a length of #{exp} but got #{act}', 'expected #{this} to not have a length of #{act}', count, size);
  }
  match(pattern, message) { return this._says(message).assert(pattern.test(this._obj), `expected #{this} to match ${pattern}`, `expected #{this} not to match ${pattern}`); }
  string(part, message) {
    this._says(message)._on(this._obj).a('string');
    return this.assert(String(this._obj).includes(part), `expected #{this} to contain ${inspect(part)}`, `expected #{this} to not contain ${inspect(part)}`);
  }
  keys(...all) {
    const wanted = all.length === 1 && typeof all[0] === 'object' ? (Array.isArray(all[0]) ? all[0] : Object.keys(all[0])) : all;
    const own = this._obj instanceof Map || this._obj instanceof Set ? [...this._obj.keys()] : Object.keys(Object(this._obj));
    const any = this._flags.any;
    const found = any ? wanted.some((key) => own.includes(key)) : wanted.every((key) => own.includes(key)) && (this._flags.contains || own.length === wanted.length);
    const names = wanted.map((key) => inspect(key));
    const list = names.length > 1 ? `keys ${names.slice(0, -1).join(', ')}, ${any ? 'or' : 'and'} ${names[names.length - 1]}` : `key ${names[0]}`;
    const words = `${this._flags.contains ? 'contain' : 'have'} ${list}`;
    return this.assert(found, `expected #{this} to ${words}`, `expected #{this} to not ${words}`, wanted, own);
  }
  members(list, message) {
    this._says(message);
    for (const one of [this._obj, list]) this._on(one).an('array');
    const same = this._flags.deep ? equalDeep : (a, b) => a === b;
    const ordered = this._flags.ordered;
    const inside = list.every((one, i) => (ordered ? i < this._obj.length && same(one, this._obj[i]) : this._obj.some((other) => same(one, other))));
    const set = ordered ? 'ordered ' : '';
    if (this._flags.contains) return this.assert(inside, `expected #{this} to be ${ordered ? 'an ordered' : 'a'} superset of #{exp}`, `expected #{this} to not be ${ordered ? 'an ordered' : 'a'} superset of #{exp}`, list);
    return this.assert(inside && list.length === this._obj.length, `expected #{this} to have the same ${set}members as #{exp}`, `expected #{this} to not have the same ${set}members as #{exp}`, list);
  }
  oneOf(list, message) { return this._says(message).assert(list.some((one) => this._same(one)), 'expected #{this} to be one of #{exp}', 'expected #{this} to not be one of #{exp}', list); }
  satisfy(test, message) { return this._says(message).assert(test(this._obj), `expected #{this} to satisfy ${display(test)}`, `expected #{this} to not satisfy ${display(test)}`); }
  throw(type, pattern) {
    this._on(this._obj).a('function');
    let caught = null;
    try { this._obj(); } catch (error) { caught = { error }; }
    const [wanted, words] = typeof type === 'function' ? [type, pattern] : [null, type];
    const text = caught === null ? '' : String(caught.error && caught.error.message !== undefined ? caught.error.message : caught.error);
    const fits = words === undefined || (words instanceof RegExp ? words.test(text) : text.includes(words));
    const met = caught !== null && (wanted === null || caught.error instanceof wanted) && fits;
    const what = wanted === null ? 'an error' : wanted.name;
    return this.assert(met, `expected #{this} to throw ${what}`, `expected #{this} to not throw ${what}`);
  }
  respondTo(name) { return this.assert(typeof Object(this._obj)[name] === 'function', `expected #{this} to respond to ${inspect(name)}`, `expected #{this} to not respond to ${inspect(name)}`); }
  anonymize(make = (text) => text.replace(/#\{this\}/g, '<anonymized>')) { this._flags.anonymous = make; return this; }
  validJsonBody() {
    let valid = true;
    try { this._obj.json('__unlikelyidefintifier1'); } catch (error) { valid = false; }
    return this.assert(valid, 'has valid json body', 'does not have a valid json body');
  }
  _type(type, message) {
    this._says(message);
    const wanted = String(type).toLowerCase();
    return this.assert(kind(this._obj) === wanted, `expected #{this} to be ${article(wanted)} ${type}`, `expected #{this} not to be ${article(wanted)} ${type}`);
  }
  _include(value, message) {
    this._says(message);
    const [object, deep] = [this._obj, this._flags.deep];
    const words = `${deep ? 'deep ' : ''}include ${inspect(value)}`;
    let found;
    if (typeof object === 'string') found = object.includes(value);
    else if (object instanceof Map) found = [...object.values()].some((one) => (deep ? equalDeep(one, value) : one === value));
    else if (Array.isArray(object) || object instanceof Set) found = [...object].some((one) => (deep ? equalDeep(one, value) : Object.is(one, value)));
    else {
      // each of the fields is a check, as in Chai
      for (const key of Object.keys(value)) {
        const one = this._on(object);
        Object.assign(one._flags, { deep, own: this._flags.own, nested: this._flags.nested, negate: this._flags.negate });
        one.property(key, value[key]);
      }
      return this;
    }
    return this.assert(found, `expected #{this} to ${words}`, `expected #{this} to not ${words}`, value);
  }
}
const STATES = {
  ok: ['truthy', 'falsy', (value) => !!value], true: ['true', 'false', (value) => value === true], false: ['false', 'true', (value) => value === false],
};
const FACTS = {
  null: ['be null', (value) => value === null], undefined: ['be undefined', (value) => value === undefined], NaN: ['be NaN', (value) => Number.isNaN(value)],
  finite: ['be a finite number', (value) => Number.isFinite(value)],
  empty: ['be empty', (value) => (typeof value === 'object' && value !== null && !Array.isArray(value) && sizeOf(value) === undefined ? Object.keys(value).length : sizeOf(value)) === 0],
};
// A property that may also be called, as in `to.be.true()`.
function callable(assertion) { return new Proxy(() => assertion, { get: (_, key) => { const value = assertion[key]; return typeof value === 'function' ? value.bind(assertion) : value; } }); }
const getter = (name, get) => Object.defineProperty(Assertion.prototype, name, { get, configurable: true });
for (const word of ['to', 'be', 'been', 'is', 'and', 'has', 'have', 'with', 'that', 'which', 'at', 'of', 'same', 'but', 'does', 'still', 'also']) getter(word, function () { return this; });
for (const flag of ['deep', 'nested', 'own', 'any', 'all', 'ordered']) getter(flag, function () { this._flags[flag] = true; return this; });
for (const [name, [is, isNot, met]] of Object.entries(STATES)) getter(name, function () { return callable(this.assert(met(this._obj), `expected #{this} to be ${is}`, `expected #{this} to be ${isNot}`)); });
for (const [name, [words, met]] of Object.entries(FACTS)) getter(name, function () { return callable(this.assert(met(this._obj), `expected #{this} to ${words}`, `expected #{this} not to ${words}`)); });
getter('exist', function () { return callable(this.assert(this._obj !== null && this._obj !== undefined, 'expected #{this} to exist', 'expected #{this} to not exist')); });
getter('exists', function () { return this.exist; });
function chainable(names, flag, method) {
  for (const name of names) {
    getter(name, function () {
      const plain = Object.assign({}, this._flags);
      if (flag) this._flags[flag] = true;
      return new Proxy(() => 0, {
        apply: (_, __, given) => { if (flag === 'length') this._flags = plain; return method.apply(this, given); },
        get: (_, key) => { const value = this[key]; return typeof value === 'function' ? value.bind(this) : value; },
      });
    });
  }
}
chainable(['a', 'an'], '', function (...given) { return this._type(...given); });
chainable(['include', 'includes', 'contain', 'contains'], 'contains', function (...given) { return this._include(...given); });
chainable(['length', 'lengthOf'], 'length', function (...given) { return this._lengthOf(...given); });
const ALIASES = { equals: 'equal', eq: 'equal', eqls: 'eql', gt: 'above', greaterThan: 'above', gte: 'least', greaterThanOrEqual: 'least', lt: 'below', lessThan: 'below',
  lte: 'most', lessThanOrEqual: 'most', approximately: 'closeTo', instanceOf: 'instanceof', matches: 'match', key: 'keys', throws: 'throw', Throw: 'throw', satisfies: 'satisfy' };
for (const [name, known] of Object.entries(ALIASES)) Assertion.prototype[name] = Assertion.prototype[known];

export function expect(value, message) { return new Assertion(value, message); }
export function describe(name, body) {
  let success = true;
  group(name, () => {
    try { body(); } catch (error) {
      success = false;
      if (error instanceof AssertionError) return;
      // the end of the test
      if (error instanceof Error && /^(test aborted|interrupted)/.test(error.message)) throw error;
      console.error(`Exception raised in test "${name}". Failing the test and continuing. \n${error}`);
      check(null, { [`Exception raised "${error}"`.replaceAll('::', ':')]: () => false });
    }
  });
  return success;
}
const chai = { config, expect, describe, Assertion, AssertionError };
export default chai;
