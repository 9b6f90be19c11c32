// Objects and arrays as `console.log` prints them.
(function (k6) {
'use strict';
function binary(value) {
  if (value instanceof ArrayBuffer) {
    const bytes = Array.from(new Uint8Array(value), (byte) => byte.toString(16).padStart(2, '0'));
    return `ArrayBuffer { [Uint8Contents]: <${bytes.join(' ')}>, byteLength: ${value.byteLength} }`;
  }
  const list = value.length === 0 ? '[]' : `[ ${Array.prototype.join.call(value, ', ')} ]`;
  return `${value.constructor.name}(${value.length}) ${list}`;
}

// `above`: the objects that contain the value.
function inspect(value, above) {
  if (value === undefined || value === null) return 'null';
  if (typeof value === 'function') return '[object Function]';
  if (typeof value === 'string') return `"${value}"`;
  if (typeof value === 'symbol') return value.description || '';
  if (typeof value !== 'object') return String(value);
  if (above.includes(value)) return '[Circular]';
  if (value instanceof Error) return String(value);
  if (value instanceof ArrayBuffer || (ArrayBuffer.isView(value) && !(value instanceof DataView))) return binary(value);
  above.push(value);
  let shown;
  if (Array.isArray(value)) {
    shown = value.length === 0 ? '[]' : `[ ${Array.from(value, (one) => inspect(one, above)).join(', ')} ]`;
  } else {
    const parts = Object.keys(value).map((key) => `${key}: ${inspect(value[key], above)}`);
    const isDate = value instanceof Date && !Number.isNaN(value.getTime());
    if (parts.length > 0) shown = `{ ${parts.join(', ')} }`;
    else shown = isDate ? `"${value.toISOString()}"` : '{}';
  }
  above.pop();
  return shown;
}

k6.api.inspect = inspect;
})
