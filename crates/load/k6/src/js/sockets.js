// k6/ws and k6/websockets on the user's WebSockets, which native functions know by their numbers.
(function (k6) {
'use strict';
const { n, inside, buffer, isBinary } = k6.api;
const TEXT = 1, BINARY = 2, CLOSE = 8, PONG = 10;

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
  constructor(id) { this.handlers = {}; this.timers = []; this.count = 0; this.over = false; Object.defineProperty(this, 'id', { value: id }); }
  on(name, handler) {
    if (typeof handler !== 'function') throw new TypeError('socket.on() takes a function');
    (this.handlers[name] = this.handlers[name] || []).push(handler);
  }
  fire(name, ...args) { for (const handler of this.handlers[name] || []) handler(...args); }
  fault(message) { this.fire('error', { error: () => message, toString: () => message }); }
  // What the server sent before it closed is still to be read.
  put(data) { if (!this.over && !n.socketSend(this.id, data)) this.fault('websocket: close sent'); }
  send(text) { this.put(String(text)); }
  sendBinary(data) {
    if (!isBinary(data)) throw new TypeError('sendBinary() takes an ArrayBuffer');
    this.put(buffer(data));
  }
  ping() { if (!this.over) n.socketPing(this.id, false); }
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
    n.socketClose(this.id, code === undefined ? 1000 : Number(code));
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
    const heard = wait === 0 ? null : n.socketListen(this.id, wait);
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
  const ready = k6.api.prepare('GET', address, null, params || {});
  const socket = new Socket(n.socketNew());
  const opened = n.socketOpen(socket.id, ready);
  try {
    setup(socket);
    if (opened.error !== '') {
      socket.over = true;
      socket.fault(opened.error);
      if (ready.throws) throw new Error(opened.error);
      n.warn(`Attempt to establish a WebSocket connection failed: ${opened.error}`);
      return response(String(address), opened);
    }
    if (!socket.over) socket.fire('open');
    while (!socket.over) socket.turn();
  } finally {
    if (!socket.over) n.socketClose(socket.id, 1000);
    n.socketOver(socket.id);
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
    hidden('_id', n.socketNew());
    for (const type of TYPES) this['on' + type] = null;
    k6.onEnd(n.socketBeginOpen(this._id, this._ready), (opened) => this._opened(opened));
  }
  addEventListener(type, listener) {
    if (!TYPES.includes(type)) throw new Error(`unknown event type ${type}`);
    if (typeof listener !== 'function') throw new TypeError('addEventListener() takes a function');
    (this._listeners[type] = this._listeners[type] || []).push(listener);
  }
  send(data) {
    if (this.readyState === CONNECTING) throw new Error('InvalidStateError: the WebSocket is not open yet');
    const content = payload(data);
    if (this.readyState === OPEN && !n.socketSend(this._id, content)) this._fire('error', { error: 'websocket: close sent' });
  }
  ping() {
    if (this.readyState !== OPEN) throw new Error("InvalidStateError: can't ping unless the WebSocket is open");
    n.socketPing(this._id, true);
  }
  close(code, reason) {
    if (this.readyState >= CLOSING) return;
    if (code !== undefined && code !== 1000 && !(code >= 3000 && code <= 4999)) throw new Error(`InvalidAccessError: ${code} is not a code for close()`);
    void reason;
    const opened = this.readyState === OPEN;
    this.readyState = CLOSING;
    this._closing = code === undefined ? 1000 : code;
    if (opened) k6.onEnd(n.socketBeginClose(this._id, this._closing), () => this._over(this._closing, null));
  }
  _fire(type, fields) {
    const event = Object.assign({ type, target: this, timestamp: Date.now() }, fields);
    if (typeof this['on' + type] === 'function') this['on' + type](event);
    for (const listener of this._listeners[type] || []) listener(event);
  }
  _over(code, why) {
    if (this.readyState === CLOSED) return;
    this.readyState = CLOSED;
    n.socketOver(this._id);
    if (why) this._fire('error', { error: why });
    this._fire('close', { code, reason: '', wasClean: code !== 1006 });
  }
  _opened(opened) {
    if (opened.error !== '') return this._over(1006, opened.error);
    // closed before it was open
    if (this.readyState === CLOSING) { this.readyState = OPEN; return this.close(this._closing); }
    const named = response(this.url, opened).headers['Sec-Websocket-Protocol'];
    this.protocol = named === undefined ? '' : named;
    this.readyState = OPEN;
    this._fire('open', {});
    return this._listen();
  }
  _listen() {
    if (this.readyState !== OPEN) return;
    k6.onEnd(n.socketBeginListen(this._id), (heard) => {
      // nothing was heard before the socket was used otherwise, or the time was up
      if (heard && this.readyState !== CLOSED) this._heard(heard);
      this._listen();
    });
  }
  _heard([kind, content]) {
    if (kind === CLOSE) return this._over(content, unexpected(content));
    if (this.readyState !== OPEN) return undefined;
    if (kind === TEXT || kind === BINARY) return this._fire('message', { data: content });
    return this._fire('pong', {});
  }
}
Object.assign(WebSocket, { CONNECTING, OPEN, CLOSING, CLOSED });
k6.byName('k6/websockets', { WebSocket });
})
