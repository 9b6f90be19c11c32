// CommonJS: `require`, and files that have no import and no export.
(function (k6) {
'use strict';
const n = k6.api.n;
const cache = Object.create(null);
function requireFrom(from) {
  return (name) => {
    const [kind, key] = n.moduleText(from, String(name));
    if (kind === 'native') return k6.module(key);
    return load(kind, key);
  };
}
function load(kind, key) {
  if (cache[key]) return cache[key].exports;
  if (kind === 'module') {
    cache[key] = { exports: n.evaluateModule(key) };
    return cache[key].exports;
  }
  const module = { exports: {} };
  cache[key] = module;
  n.evaluateFile(key)(module, module.exports, requireFrom(key));
  return module.exports;
}
k6.load = load;
// for modules that import CommonJS files
Object.defineProperty(globalThis, '__k6_load_file', { value: (key) => load('file', key) });
globalThis.require = requireFrom(n.entry());
})
