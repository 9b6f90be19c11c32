// k6/experimental/fs and k6/experimental/csv: files that are opened in the init context.
(function (k6) {
'use strict';
const { n } = k6.api;
const SeekMode = { Start: 0, Current: 1, End: 2 };

class File {
  constructor(path, bytes) {
    this.path = path;
    Object.defineProperty(this, 'bytes', { value: bytes, enumerable: false });
    this.at = 0;
  }
  async stat() { return { name: this.path.split('/').pop(), size: this.bytes.length }; }
  // Fills `into`; returns the number of bytes, or null at the end of the file.
  async read(into) {
    if (!(into instanceof Uint8Array) || into.length === 0) {
      throw new TypeError('read() takes a Uint8Array that is not empty');
    }
    if (this.at >= this.bytes.length) return null;
    const part = this.bytes.subarray(this.at, this.at + into.length);
    into.set(part);
    this.at += part.length;
    return part.length;
  }
  async seek(offset, whence) {
    const from = whence === SeekMode.Current ? this.at : whence === SeekMode.End ? this.bytes.length : 0;
    const to = from + Number(offset);
    if (!(to >= 0 && to <= this.bytes.length)) throw new RangeError('seek() leads outside of the file');
    this.at = to;
    return to;
  }
}
async function open(path) {
  if (!n.initializing()) throw new Error('open() is only available in the init context');
  return new File(String(path), new Uint8Array(n.open(String(path), true)));
}

// The rows of a text (RFC 4180): fields between delimiters, quoted ones with doubled quotes.
function* rows(text, delimiter) {
  let row = [], field = '', quoted = false, at = 0;
  while (at < text.length) {
    const letter = text[at];
    if (quoted) {
      if (letter !== '"') field += letter;
      else if (text[at + 1] === '"') { field += '"'; at++; } else quoted = false;
    } else if (letter === '"' && field === '') {
      quoted = true;
    } else if (letter === delimiter) {
      row.push(field);
      field = '';
    } else if (letter === '\n') {
      row.push(field.endsWith('\r') ? field.slice(0, -1) : field);
      if (row.length > 1 || row[0] !== '') yield row;
      row = [];
      field = '';
    } else {
      field += letter;
    }
    at++;
  }
  if (quoted) throw new Error('the CSV file ends inside of a quoted field');
  if (field !== '' || row.length > 0) yield [...row, field];
}
function* records(file, options) {
  if (!(file instanceof File)) throw new TypeError('csv takes a file of k6/experimental/fs');
  const { delimiter = ',', skipFirstLine = false, fromLine = 0, toLine = Infinity, asObjects = false } = options || {};
  if (typeof delimiter !== 'string' || delimiter.length !== 1) throw new TypeError('delimiter must be one character');
  if (asObjects && skipFirstLine) throw new Error('asObjects needs the first line, which skipFirstLine leaves out');
  let line = -1, names = null;
  for (const row of rows(n.text(file.bytes.buffer), delimiter)) {
    line++;
    if (asObjects && names === null) { names = row; continue; }
    if ((skipFirstLine && line === 0) || line < fromLine) continue;
    if (line > toLine) return;
    yield asObjects ? Object.fromEntries(names.map((name, place) => [name, row[place]])) : row;
  }
}
class Parser {
  constructor(file, options) { this.rows = records(file, options); }
  async next() {
    const { done, value } = this.rows.next();
    return { done: !!done, value: done ? [] : value };
  }
}
async function parse(file, options) {
  const { SharedArray } = k6.module('k6/data');
  return new SharedArray(`csv ${file.path} ${JSON.stringify(options || {})}`, () => [...records(file, options)]);
}
k6.byName('k6/experimental/fs', { open, SeekMode });
k6.byName('k6/experimental/csv', { parse, Parser });
})
