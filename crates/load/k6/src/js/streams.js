// k6/experimental/streams: streams of the web, without bytes and pipes.
(function (k6) {
'use strict';
class CountQueuingStrategy { constructor({ highWaterMark }) { this.highWaterMark = highWaterMark; } size() { return 1; } }
class ByteLengthQueuingStrategy { constructor({ highWaterMark }) { this.highWaterMark = highWaterMark; } size(chunk) { return chunk.byteLength; } }
function deferred() { const made = {}; made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject })); made.promise.catch(() => {}); return made; }
const later = (work) => Promise.resolve().then(work);

class ReadableStreamDefaultController {
  constructor(stream) { this._stream = stream; }
  get desiredSize() {
    const stream = this._stream;
    if (stream._state === 'errored') return null;
    return stream._state === 'closed' ? 0 : stream._mark - stream._total;
  }
  enqueue(chunk) {
    const stream = this._stream;
    if (stream._state !== 'readable' || stream._ending) throw new TypeError('cannot close or enqueue');
    const waiting = stream._waiting.shift();
    if (waiting) waiting.resolve({ value: chunk, done: false });
    else { const size = stream._size(chunk); stream._queue.push({ chunk, size }); stream._total += size; }
    stream._pull();
  }
  close() {
    const stream = this._stream;
    if (stream._state !== 'readable' || stream._ending) throw new TypeError('cannot close or enqueue');
    stream._ending = true;
    if (stream._queue.length === 0) stream._close();
  }
  error(why) { this._stream._fail(why); }
}
class ReadableStream {
  constructor(source = {}, strategy = {}) {
    if (source === null || typeof source !== 'object') throw new TypeError('the source of a ReadableStream is an object');
    const state = { _source: source, _queue: [], _waiting: [], _total: 0, _state: 'readable', _ending: false, _reader: null, _pulling: false, _again: false, _started: false,
      _mark: strategy.highWaterMark === undefined ? 1 : Number(strategy.highWaterMark), _size: (chunk) => (typeof strategy.size === 'function' ? Number(strategy.size(chunk)) : 1), _closed: deferred() };
    if (Number.isNaN(state._mark) || state._mark < 0) throw new RangeError('invalid highWaterMark');
    for (const name of Object.keys(state)) Object.defineProperty(this, name, { value: state[name], writable: true, enumerable: false });
    const controller = new ReadableStreamDefaultController(this);
    Object.defineProperty(this, '_controller', { value: controller });
    const begun = typeof source.start === 'function' ? source.start(controller) : undefined;
    Promise.resolve(begun).then(() => { this._started = true; this._pull(); }, (why) => this._fail(why));
  }
  get locked() { return this._reader !== null; }
  _pull() {
    const wanted = this._state === 'readable' && this._started && !this._ending && (this._waiting.length > 0 || this._mark - this._total > 0);
    if (!wanted || typeof this._source.pull !== 'function') return;
    if (this._pulling) { this._again = true; return; }
    this._pulling = true;
    later(() => this._source.pull(this._controller)).then(() => {
      this._pulling = false;
      if (this._again) { this._again = false; this._pull(); }
    }, (why) => this._fail(why));
  }
  _close() {
    this._state = 'closed';
    for (const waiting of this._waiting.splice(0)) waiting.resolve({ value: undefined, done: true });
    this._closed.resolve();
  }
  _fail(why) {
    if (this._state !== 'readable') return;
    Object.assign(this, { _state: 'errored', _why: why, _queue: [] });
    for (const waiting of this._waiting.splice(0)) waiting.reject(why);
    this._closed.reject(why);
  }
  cancel(why) {
    if (this.locked) return Promise.reject(new TypeError('cannot cancel a locked stream'));
    return this._cancel(why);
  }
  _cancel(why) {
    if (this._state === 'closed') return Promise.resolve();
    if (this._state === 'errored') return Promise.reject(this._why);
    Object.assign(this, { _queue: [], _total: 0 });
    this._close();
    return later(() => (typeof this._source.cancel === 'function' ? this._source.cancel(why) : undefined)).then(() => undefined);
  }
  getReader(options) {
    if (options && options.mode !== undefined) throw new TypeError('only readers of any chunks are available');
    return new ReadableStreamDefaultReader(this);
  }
}
class ReadableStreamDefaultReader {
  constructor(stream) {
    if (!(stream instanceof ReadableStream)) throw new TypeError('a reader takes a ReadableStream');
    if (stream.locked) throw new TypeError('the stream is locked to another reader');
    stream._reader = this;
    Object.defineProperty(this, '_stream', { value: stream, writable: true });
    this.closed = stream._closed.promise;
  }
  read() {
    const stream = this._stream;
    if (stream === null) return Promise.reject(new TypeError('the reader was released'));
    if (stream._state === 'errored') return Promise.reject(stream._why);
    if (stream._queue.length > 0) {
      const { chunk, size } = stream._queue.shift();
      stream._total -= size;
      if (stream._ending && stream._queue.length === 0) stream._close(); else stream._pull();
      return Promise.resolve({ value: chunk, done: false });
    }
    if (stream._state === 'closed') return Promise.resolve({ value: undefined, done: true });
    const waiting = deferred();
    stream._waiting.push(waiting);
    stream._pull();
    return waiting.promise;
  }
  cancel(why) { return this._stream === null ? Promise.reject(new TypeError('the reader was released')) : this._stream._cancel(why); }
  releaseLock() {
    if (this._stream === null) return;
    for (const waiting of this._stream._waiting.splice(0)) waiting.reject(new TypeError('the reader was released'));
    this._stream._reader = null;
    this._stream = null;
  }
}
class WritableStreamDefaultController {
  constructor(stream) { this._stream = stream; }
  error(why) { this._stream._fail(why); }
}
class WritableStream {
  constructor(sink = {}, strategy = {}) {
    const state = { _sink: sink, _state: 'writable', _writer: null, _total: 0, _mark: strategy.highWaterMark === undefined ? 1 : Number(strategy.highWaterMark), _closed: deferred() };
    for (const name of Object.keys(state)) Object.defineProperty(this, name, { value: state[name], writable: true, enumerable: false });
    const controller = new WritableStreamDefaultController(this);
    Object.defineProperty(this, '_controller', { value: controller });
    const begun = typeof sink.start === 'function' ? sink.start(controller) : undefined;
    // writes follow each other
    Object.defineProperty(this, '_last', { value: Promise.resolve(begun), writable: true });
    this._last.catch((why) => this._fail(why));
  }
  get locked() { return this._writer !== null; }
  _fail(why) { if (this._state === 'writable') { Object.assign(this, { _state: 'errored', _why: why }); this._closed.reject(why); } }
  _do(work) {
    if (this._state === 'errored') return Promise.reject(this._why);
    if (this._state !== 'writable') return Promise.reject(new TypeError('the stream is closed'));
    const done = this._last.then(() => (this._state === 'errored' ? Promise.reject(this._why) : work()));
    this._last = done;
    done.catch((why) => this._fail(why));
    return done.then(() => undefined);
  }
  _write(chunk) { this._total += 1; return this._do(() => (typeof this._sink.write === 'function' ? this._sink.write(chunk, this._controller) : undefined)).finally(() => { this._total -= 1; }); }
  _close() {
    const done = this._do(() => (typeof this._sink.close === 'function' ? this._sink.close() : undefined));
    if (this._state === 'writable') this._state = 'closed';
    done.then(() => this._closed.resolve(), () => {});
    return done;
  }
  _abort(why) {
    this._fail(why);
    return later(() => (typeof this._sink.abort === 'function' ? this._sink.abort(why) : undefined)).then(() => undefined);
  }
  close() { return this._close(); }
  abort(why) { return this._abort(why); }
  getWriter() {
    if (this.locked) throw new TypeError('the stream is locked to another writer');
    this._writer = new WritableStreamDefaultWriter(this);
    return this._writer;
  }
}
class WritableStreamDefaultWriter {
  constructor(stream) { Object.defineProperty(this, '_stream', { value: stream, writable: true }); this.closed = stream._closed.promise; }
  get desiredSize() { return this._stream._state === 'errored' ? null : this._stream._mark - this._stream._total; }
  get ready() { return this._stream._last.then(() => undefined, () => undefined); }
  write(chunk) { return this._stream._write(chunk); }
  close() { return this._stream._close(); }
  abort(why) { return this._stream._abort(why); }
  releaseLock() { this._stream._writer = null; }
}
k6.byName('k6/experimental/streams', { ReadableStream, ReadableStreamDefaultReader, ReadableStreamDefaultController, WritableStream, WritableStreamDefaultWriter, CountQueuingStrategy, ByteLengthQueuingStrategy });
})
