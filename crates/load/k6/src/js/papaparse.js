// The common part of Papa Parse: parse(text, config) and unparse(rows, config).
function rows(text, delimiter, quote) {
  const out = [];
  let row = [];
  let field = '';
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c === quote && text[i + 1] === quote) { field += quote; i++; } else if (c === quote) quoted = false; else field += c;
    } else if (c === quote && field === '') quoted = true;
    else if (c === delimiter) { row.push(field); field = ''; }
    else if (c === '\n' || c === '\r') {
      if (c === '\r' && text[i + 1] === '\n') i++;
      row.push(field); out.push(row); row = []; field = '';
    } else field += c;
  }
  row.push(field);
  out.push(row);
  return out;
}
function guess(text) {
  const line = text.split(/\r?\n/, 1)[0];
  return [',', '\t', '|', ';'].reduce((best, one) => (line.split(one).length > line.split(best).length ? one : best), ',');
}
function typed(value) {
  if (value === 'true' || value === 'TRUE') return true;
  if (value === 'false' || value === 'FALSE') return false;
  if (/^\s*-?(\d+\.?|\.\d+|\d+\.\d+)([eE][-+]?\d+)?\s*$/.test(value)) return parseFloat(value);
  return value === '' ? null : value;
}
function parse(input, config) {
  config = config || {};
  const text = String(input).replace(/^\ufeff/, '');
  const delimiter = config.delimiter || guess(text);
  let all = rows(text, delimiter, config.quoteChar || '"');
  if (config.comments) all = all.filter((row) => !row[0].startsWith(config.comments === true ? '#' : config.comments));
  if (config.skipEmptyLines) all = all.filter((row) => (config.skipEmptyLines === 'greedy' ? row.join('').trim() !== '' : !(row.length === 1 && row[0] === '')));
  const convert = (value) => (config.dynamicTyping ? typed(value) : value);
  const meta = { delimiter, linebreak: text.includes('\r\n') ? '\r\n' : '\n', aborted: false, truncated: false };
  const errors = [];
  let data;
  if (config.header) {
    const fields = (all.shift() || []).map((name, i) => (config.transformHeader ? config.transformHeader(name, i) : name));
    meta.fields = fields;
    data = all.map((row, at) => {
      const made = {};
      fields.forEach((name, i) => { if (i < row.length) made[name] = convert(row[i]); });
      if (row.length !== fields.length) errors.push({ type: 'FieldMismatch', code: row.length < fields.length ? 'TooFewFields' : 'TooManyFields', message: `expected ${fields.length} fields but parsed ${row.length}`, row: at });
      return made;
    });
  } else data = all.map((row) => row.map(convert));
  if (config.preview) data = data.slice(0, config.preview);
  return { data, errors, meta };
}
function unparse(input, config) {
  config = config || {};
  const delimiter = config.delimiter || ',';
  const list = Array.isArray(input) ? input : input.data;
  const keyed = list.length > 0 && !Array.isArray(list[0]);
  const fields = keyed ? Object.keys(list[0]) : (input.fields || null);
  const cell = (value) => {
    const text = value === null || value === undefined ? '' : String(value);
    return /["\r\n]/.test(text) || text.includes(delimiter) ? '"' + text.replace(/"/g, '""') + '"' : text;
  };
  const lines = list.map((row) => (keyed ? fields.map((name) => row[name]) : row).map(cell).join(delimiter));
  if (fields && config.header !== false) lines.unshift(fields.map(cell).join(delimiter));
  return lines.join(config.newline || '\r\n');
}
export { parse, unparse };
export default { parse, unparse };
