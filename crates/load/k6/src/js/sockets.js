// k6/ws and k6/websockets on the user's WebSocket, of which there is one at a time.
(function (k6) {
'use strict';
const { n, inside, buffer, isBinary } = k6.api;
const TEXT = 1, BINARY = 2, CLOSE = 8, PONG = 10;
const ONE = 'a user has one WebSocket at a time here: close the open one first';
// The open WebSocket of k6/websockets, and whether there is one of k6/ws.
let live = null, blocking = false;

function payload(data) {
  if (typeof data === 'string') return data;
  if (isBinary(data)) return buffer(data);
  throw new TypeError('a message is a string, an ArrayBuffer or a typed array');
}
// The error of a close that k6 does not expect; null for the usual codes.
function unexpected(code) {
  if (code === 1000 || code === 1001) return null;
  return code === 1006 ? 'websocket: close 1006 (abnormal closure): unexpected EOF' : `websocket: close ${code}`;
}
function response(address, opened) {
  const headers = {};
  for (let i = 0; i < opened.headers.length; i += 2) headers[opened.headers[i]] = opened.headers[i + 1];
  return { url: address, status: opened.status, headers, body: '', error: opened.error, cookies: {} };
}

// ---------------------------------------------------------------- k6/ws
class Socket {
  constructor() { this.handlers = {}; this.timers = []; this.count = 0; this.over = false; }
  on(name, handler) {
    if (typeof handler !== 'function') throw new TypeError('socket.on() takes a function');
    (this.handlers[name] = this.handlers[name] || []).push(handler);
  }
  fire(name, ...args) { for (const handler of this.handlers[name] || []) handler(...args); }
  fault(message) { this.fire('error', { error: () => message, toString: () => message }); }
  // What the server sent before it closed is still to be read.
  put(data) { if (!this.over && !n.socketSend(data)) this.fault('websocket: close sent'); }
  send(text) { this.put(String(text)); }
  sendBinary(data) {
    if (!isBinary(data)) throw new TypeError('sendBinary() takes an ArrayBuffer');
    this.put(buffer(data));
  }
  ping() { if (!this.over) n.socketPing(); }
  setTimeout(callback, ms) { return this.timer(callback, ms, 0); }
  setInterval(callback, ms) { return this.timer(callback, ms, ms); }
  timer(callback, ms, every) {
    if (typeof callback !== 'function') throw new TypeError('a timer takes a function');
    if (!(ms > 0)) throw new Error('a timer takes a time above 0');
    this.timers.push({ at: n.now() + Number(ms), callback, every: Number(every) });
    return (this.count += 1);
  }
  close(code) {
    if (this.over) return;
    this.over = true;
    n.socketClose(code === undefined ? 1000 : Number(code));
    this.fire('close', code === undefined ? 1000 : Number(code));
  }
  end(code, why) {
    if (this.over) return;
    this.over = true;
    if (why) this.fault(why);
    this.fire('close', code);
  }
  // Handles one event: what the server sends, or the next timer.
  turn() {
    let next = null;
    for (const one of this.timers) if (next === null || one.at < next.at) next = one;
    const wait = next === null ? -1 : Math.max(0, next.at - n.now());
    const heard = wait === 0 ? null : n.socketListen(wait);
    if (heard) return this.receive(heard[0], heard[1]);
    // the wait may have ended before the timer
    if (next === null || next.at > n.now()) return;
    if (next.every > 0) next.at += next.every; else this.timers = this.timers.filter((one) => one !== next);
    next.callback();
  }
  receive(kind, content) {
    if (kind === TEXT) this.fire('message', content);
    else if (kind === BINARY) this.fire('binaryMessage', content);
    else if (kind === PONG) this.fire('pong');
    else if (kind === CLOSE) this.end(content, unexpected(content));
  }
}
function connect(address, params, setup) {
  inside('ws.connect()');
  if (typeof params === 'function') { setup = params; params = null; }
  if (typeof setup !== 'function') throw new TypeError('the last argument of ws.connect() must be a function');
  if (blocking || live !== null) throw new Error(ONE);
  const ready = k6.api.prepare('GET', address, null, params || {});
  const opened = n.socketOpen(ready);
  const socket = new Socket();
  blocking = true;
  try {
    setup(socket);
    if (opened.error !== '') {
      socket.over = true;
      socket.fault(opened.error);
      if (ready.throws) throw new Error(opened.error);
      n.log('warning', `Attempt to establish a WebSocket connection failed: ${opened.error}`);
      return response(String(address), opened);
    }
    if (!socket.over) socket.fire('open');
    while (!socket.over) socket.turn();
  } finally {
    blocking = false;
    if (!socket.over) n.socketClose(1000);
    n.socketOver();
  }
  return response(String(address), opened);
}
k6.byName('k6/ws', { connect, Socket });

// ---------------------------------------------------------------- k6/websockets
const CONNECTING = 0, OPEN = 1, CLOSING = 2, CLOSED = 3;
const TYPES = ['open', 'message', 'ping', 'pong', 'error', 'close'];
class WebSocket {
  constructor(address, protocols, params) {
    inside('new WebSocket()');
    if (blocking || live !== null) throw new Error(ONE);
    this.url = String(address);
    this.readyState = CONNECTING;
    this.bufferedAmount = 0;
    this.binaryType = 'arraybuffer';
    this.protocol = '';
    this.extensions = '';
    const headers = Object.assign({}, (params || {}).headers);
    const wanted = protocols === undefined || protocols === null ? [] : [].concat(protocols);
    if (wanted.length > 0) headers['Sec-WebSocket-Protocol'] = wanted.join(', ');
    const hidden = (name, value) => Object.defineProperty(this, name, { value, enumerable: false, writable: true });
    hidden('_ready', k6.api.prepare('GET', address, null, Object.assign({}, params, { headers })));
    hidden('_listeners', {});
    for (const type of TYPES) this['on' + type] = null;
    live = this;
  }
  addEventListener(type, listener) {
    if (!TYPES.includes(type)) throw new Error(`unknown event type ${type}`);
    if (typeof listener !== 'function') throw new TypeError('addEventListener() takes a function');
    (this._listeners[type] = this._listeners[type] || []).push(listener);
  }
  send(data) {
    if (this.readyState === CONNECTING) throw new Error('InvalidStateError: the WebSocket is not open yet');
    const content = payload(data);
    if (this.readyState === OPEN && !n.socketSend(content)) this._fire('error', { error: 'websocket: close sent' });
  }
  ping() {
    if (this.readyState !== OPEN) throw new Error("InvalidStateError: can't ping unless the WebSocket is open");
    n.socketPing();
  }
  close(code, reason) {
    if (this.readyState >= CLOSING) return;
    if (code !== undefined && code !== 1000 && !(code >= 3000 && code <= 4999)) throw new Error(`InvalidAccessError: ${code} is not a code for close()`);
    void reason;
    const opened = this.readyState === OPEN;
    this.readyState = CLOSING;
    if (opened) n.socketClose(code === undefined ? 1000 : code);
    this._closing = code === undefined ? 1000 : code;
  }
  _fire(type, fields) {
    const event = Object.assign({ type, target: this, timestamp: Date.now() }, fields);
    if (typeof this['on' + type] === 'function') this['on' + type](event);
    for (const listener of this._listeners[type] || []) listener(event);
  }
  _over(code, why) {
    if (this.readyState === CLOSED) return;
    this.readyState = CLOSED;
    live = null;
    n.socketOver();
    if (why) this._fire('error', { error: why });
    this._fire('close', { code, reason: '', wasClean: code !== 1006 });
  }
  _turn() {
    if (this.readyState === CLOSING) return this._over(this._closing, null);
    if (this.readyState === CONNECTING) {
      const opened = n.socketOpen(this._ready);
      if (opened.error !== '') return this._over(1006, opened.error);
      const named = response(this.url, opened).headers['Sec-Websocket-Protocol'];
      this.protocol = named === undefined ? '' : named;
      this.readyState = OPEN;
      return this._fire('open', {});
    }
    const wait = k6.nextTimer();
    const heard = wait === 0 ? null : n.socketListen(wait);
    if (!heard) { if (k6.nextTimer() === 0) k6.fireTimer(); return undefined; }
    const [kind, content] = heard;
    if (kind === TEXT || kind === BINARY) return this._fire('message', { data: content });
    if (kind === PONG) return this._fire('pong', {});
    return this._over(content, unexpected(content));
  }
}
Object.assign(WebSocket, { CONNECTING, OPEN, CLOSING, CLOSED });
// Handles one event of the open WebSocket; false: there is none.
k6.api.socketTurn = () => { if (live === null) return false; live._turn(); return true; };
k6.api.socketReset = () => { live = null; blocking = false; };
k6.byName('k6/websockets', { WebSocket });
})
