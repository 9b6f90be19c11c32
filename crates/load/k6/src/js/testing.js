// jslib's k6-testing without the matchers of the browser: a failed expectation ends the test.
import { test } from 'k6/execution';
const DISPLAYS = ['pretty', 'inline'];
// The matchers that wait are those of the browser.
const OF_THE_BROWSER = ['timeout', 'interval'];
const CHOICES = ['timeout', 'interval', 'soft', 'softMode', 'colorize', 'display', 'assertFn'];
class AssertionFailedError extends Error { constructor(message) { super(message); this.name = 'AssertionFailedError'; } }
function assert(met, message, soft, softMode = 'throw') {
  if (met) return;
  if (!soft) test.abort(message);
  if (softMode === 'fail') return test.fail(message);
  throw new AssertionFailedError(message);
}
function equalDeep(a, b) {
  if (a === b) return true;
  if (a === null || b === null || typeof a !== 'object' || typeof b !== 'object') return false;
  const [left, right] = [Object.keys(a), Object.keys(b)];
  return left.length === right.length && left.every((key) => right.includes(key) && equalDeep(a[key], b[key]));
}
function shown(value) {
  if (typeof value === 'string') return value;
  try { return String(JSON.stringify(value)); } catch (error) { return String(value); }
}
function items(value, what) {
  if (Array.isArray(value) || value instanceof Set) return [...value];
  throw new Error(`${what} is only supported for ${what === 'toContain' ? 'strings, ' : ''}arrays${what === 'toContain' ? ',' : ''} and sets`);
}
function hasProperty(object, path, rest) {
  if (typeof object !== 'object' || object === null) throw new Error('toHaveProperty is only supported for objects');
  let inner = object;
  for (const key of String(path).replace(/\[(\w+)\]/g, '.$1').split('.').filter((part) => part !== '')) {
    if (inner === null || inner === undefined || !Object.hasOwn(Object(inner), key)) return false;
    inner = inner[key];
  }
  return rest.length === 0 || rest[0] === undefined || equalDeep(inner, rest[0]);
}
const MATCHERS = {
  toBe: (value, other) => Object.is(value, other),
  toEqual: equalDeep,
  toBeCloseTo: (value, other, digits = 2) => Math.abs(value - other) < 10 ** -digits * Math.max(Math.abs(value), Math.abs(other)),
  toBeDefined: (value) => value !== undefined, toBeUndefined: (value) => value === undefined,
  toBeTruthy: (value) => !!value, toBeFalsy: (value) => !value, toBeNull: (value) => value === null, toBeNaN: (value) => isNaN(value),
  toBeGreaterThan: (value, other) => value > other, toBeGreaterThanOrEqual: (value, other) => value >= other,
  toBeLessThan: (value, other) => value < other, toBeLessThanOrEqual: (value, other) => value <= other,
  toBeInstanceOf: (value, type) => value instanceof type,
  toHaveLength: (value, count) => value.length === count,
  toContain: (value, part) => (typeof value === 'string' ? value.includes(part) : items(value, 'toContain').includes(part)),
  toContainEqual: (value, part) => items(value, 'toContainEqual').some((one) => equalDeep(one, part)),
  toHaveProperty: (value, path, ...rest) => hasProperty(value, path, rest),
};
const paint = (options, color, text) => (options.colorize ? `\x1b[${color}m${text}\x1b[0m` : text);
const RED = 31, GREEN = 32;
// The text of a failed expectation, on one line or on several.
function report(options, name, wanted, value) {
  const lines = [`expect(received).${name}(${wanted === '' ? '' : 'expected'})`];
  if (wanted !== '') lines.push(`Expected: ${paint(options, GREEN, wanted)}`);
  lines.push(`Received: ${paint(options, RED, shown(value))}`);
  return options.display === 'inline' ? lines.join(' ') : lines.join('\n  ');
}
function expectation(value, options, message, negated) {
  const made = { get not() { return expectation(value, options, message, !negated); } };
  for (const [name, matches] of Object.entries(MATCHERS)) {
    made[name] = (...given) => {
      const met = matches(value, ...given) !== negated;
      const wanted = given.map((one) => (typeof one === 'function' ? one.name : shown(one))).join(', ');
      const text = message || report(options, (negated ? 'not.' : '') + name, wanted, value);
      (options.assertFn || assert)(met, text, options.soft, options.softMode);
    };
  }
  return made;
}
function make(given) {
  const unknown = Object.keys(given).find((name) => !CHOICES.includes(name));
  if (unknown !== undefined) console.warn(`expect.configure(): unknown option "${unknown}"`);
  if (given.display !== undefined && !DISPLAYS.includes(given.display)) throw new Error(`expect.configure(): display must be one of ${DISPLAYS.join(' and ')}, not ${given.display}`);
  const options = Object.assign({ timeout: 5000, interval: 100, soft: false, softMode: 'fail', colorize: false, display: 'inline', assertFn: assert }, given);
  return Object.assign((value, message) => expectation(value, options, message, false), {
    soft: (value, message) => expectation(value, Object.assign({}, options, { soft: true }), message, false),
    configure: (more) => {
      const idle = Object.keys(more).filter((name) => OF_THE_BROWSER.includes(name));
      if (idle.length > 0) console.warn(`expect.configure(): no effect of ${idle.join(' and ')}: only the matchers of the browser wait`);
      return make(Object.assign({}, options, more));
    },
    get config() { return Object.assign({}, options); },
  });
}
export const expect = make({});
const COLORS = { red: RED, green: GREEN, yellow: 33, blue: 34, magenta: 35, cyan: 36, white: 37, gray: 90, black: 30, brightGreen: 92, brightRed: 91, darkGrey: 90, bright: 1 };
export const colorize = (color, text) => paint({ colorize: COLORS[color] !== undefined }, COLORS[color], text);
