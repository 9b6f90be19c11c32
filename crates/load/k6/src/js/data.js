// k6/data: arrays that all users share.
(function (k6) {
'use strict';
const { n, modules } = k6.api;

class SharedArray {
  constructor(name, fn) {
    if (!n.initializing()) throw new Error('new SharedArray must be called in the init context');
    if (typeof name !== 'string' || name === '') throw new TypeError('empty name provided to SharedArray\'s constructor');
    if (typeof fn !== 'function') throw new TypeError('a function is expected as the second argument of SharedArray\'s constructor');
    let length = n.sharedLength(name);
    if (length < 0) {
      const made = fn();
      if (!Array.isArray(made)) throw new TypeError('only arrays can be made into SharedArray');
      length = n.sharedPut(name, Array.prototype.map.call(made, (item) => { const json = JSON.stringify(item); return json === undefined ? 'null' : json; }));
    }
    const at = (index) => freeze(JSON.parse(n.sharedAt(name, index)));
    const target = [];
    return new Proxy(target, {
      get(_, key) {
        if (key === 'length') return length;
        if (typeof key === 'string') {
          const index = Number(key);
          if (Number.isInteger(index)) return index >= 0 && index < length ? at(index) : undefined;
        }
        if (key === Symbol.iterator) return function* () { for (let i = 0; i < length; i++) yield at(i); };
        return Array.prototype[key];
      },
      has(_, key) { const i = Number(key); return (Number.isInteger(i) && i >= 0 && i < length) || key in Array.prototype; },
      ownKeys() { return Array.from({ length }, (_, i) => String(i)).concat('length'); },
      getOwnPropertyDescriptor(_, key) {
        if (key === 'length') return { value: length, writable: true, enumerable: false, configurable: false };
        const i = Number(key);
        return Number.isInteger(i) && i >= 0 && i < length ? { value: at(i), writable: false, enumerable: true, configurable: true } : undefined;
      },
      set() { throw new TypeError('SharedArray is immutable'); },
      deleteProperty() { throw new TypeError('SharedArray is immutable'); },
    });
  }
}
function freeze(value) {
  if (typeof value === 'object' && value !== null) {
    Object.freeze(value);
    for (const key of Object.keys(value)) freeze(value[key]);
  }
  return value;
}
modules['k6/data'] = { SharedArray };
})
