// GJSON paths as `response.json(selector)` takes them: names, indexes, `#`, `#.name`, `#(query)`,
// `#(query)#`, wildcards, escapes, and the modifiers in use.
(function (k6) {
'use strict';
function parts(path) {
  const out = [];
  let part = '';
  let depth = 0;
  let quote = '';
  for (let i = 0; i < path.length; i++) {
    const c = path[i];
    if (c === '\\' && depth === 0) { part += '\\' + (path[++i] || ''); continue; }
    if (quote) { if (c === quote) quote = ''; part += c; continue; }
    if (depth > 0 && c === '"') { quote = c; part += c; continue; }
    if (c === '(' ) depth += 1;
    if (c === ')' ) depth -= 1;
    if (depth === 0 && (c === '.' || c === '|')) { out.push(part); part = ''; continue; }
    part += c;
  }
  out.push(part);
  return out;
}
function pattern(text, wild) {
  let source = '';
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === '\\' && i + 1 < text.length) source += text[++i].replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    else if (wild && c === '*') source += '.*';
    else if (wild && c === '?') source += '.';
    else source += c.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  }
  return new RegExp('^' + source + '$', 's');
}
const OPERATORS = ['==', '!=', '<=', '>=', '!%', '<', '>', '%', '='];
function query(text) {
  let best = null;
  for (let i = 0; i < text.length && best === null; i++) {
    for (const operator of OPERATORS) {
      if (text.startsWith(operator, i)) { best = [text.slice(0, i).trim(), operator, text.slice(i + operator.length).trim()]; break; }
    }
  }
  if (best === null) return (item) => get(item, text.trim()) !== undefined;
  const [path, operator, literal] = best;
  let wanted;
  try { wanted = JSON.parse(literal); } catch (e) { wanted = literal.replace(/^"|"$/g, ''); }
  return (item) => {
    const value = path === '' ? item : get(item, path);
    if (value === undefined) return false;
    switch (operator) {
      case '==': case '=': return value === wanted;
      case '!=': return value !== wanted;
      case '<': return typeof value === typeof wanted && value < wanted;
      case '<=': return typeof value === typeof wanted && value <= wanted;
      case '>': return typeof value === typeof wanted && value > wanted;
      case '>=': return typeof value === typeof wanted && value >= wanted;
      case '%': return typeof value === 'string' && pattern(String(wanted), true).test(value);
      default: return typeof value === 'string' && !pattern(String(wanted), true).test(value);
    }
  };
}
function modifier(value, name) {
  switch (name.split(':')[0]) {
    case '@this': return value;
    case '@reverse': return Array.isArray(value) ? value.slice().reverse() : value;
    case '@keys': return value && typeof value === 'object' ? Object.keys(value) : [];
    case '@values': return value && typeof value === 'object' ? Object.values(value) : [];
    case '@flatten': return Array.isArray(value) ? value.flat() : value;
    default: return undefined;
  }
}
function walk(value, path, at) {
  if (at === path.length) return value;
  const part = path[at];
  if (value === undefined || value === null) return undefined;
  if (part.startsWith('@')) return walk(modifier(value, part), path, at + 1);
  if (Array.isArray(value)) {
    if (part === '#') {
      if (at + 1 === path.length) return value.length;
      const found = [];
      for (const item of value) { const one = walk(item, path, at + 1); if (one !== undefined) found.push(one); }
      return found;
    }
    if (part.startsWith('#(')) {
      const all = part.endsWith(')#');
      const test = query(part.slice(2, all ? -2 : -1));
      if (!all) { const one = value.find(test); return one === undefined ? undefined : walk(one, path, at + 1); }
      const found = value.filter(test);
      if (at + 1 === path.length) return found;
      if (path[at + 1] === '#') return walk(found, path, at + 1);
      return found.map((item) => walk(item, path, at + 1)).filter((one) => one !== undefined);
    }
    return /^\d+$/.test(part) ? walk(value[Number(part)], path, at + 1) : undefined;
  }
  if (typeof value !== 'object') return undefined;
  if (/(^|[^\\])[*?]/.test(part)) {
    const wanted = pattern(part, true);
    for (const key of Object.keys(value)) if (wanted.test(key)) return walk(value[key], path, at + 1);
    return undefined;
  }
  const key = part.replace(/\\(.)/g, '$1');
  return Object.prototype.hasOwnProperty.call(value, key) ? walk(value[key], path, at + 1) : undefined;
}
function get(value, path) { return walk(value, parts(path), 0); }
k6.api.gjson = get;
})
