// jslib's formdata: a multipart body that is put together part by part.
const latin = (text) => Uint8Array.from(text, (letter) => letter.charCodeAt(0) & 0xff);
const bytesOf = (data) => {
  if (typeof data === 'string') return latin(data);
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return Uint8Array.from(Array.isArray(data) ? data : []);
};
export class FormData {
  constructor() { this.boundary = '------RWWorkerFormDataBoundary' + Math.random().toString(36); this.parts = []; }
  append(field, data) {
    if (arguments.length < 2) throw new SyntaxError('Not enough arguments');
    this.parts.push({ field, file: typeof data === 'string' ? { data, content_type: 'text/plain' } : data });
  }
  body() {
    const chunks = [];
    for (const { field, file } of this.parts) {
      const name = file.filename ? `; filename="${file.filename.replace(/"/g, '%22')}"` : '';
      chunks.push(latin(`--${this.boundary}\r\nContent-Disposition: form-data; name="${field}"${name}\r\nContent-Type: ${file.content_type || 'application/octet-stream'}\r\n\r\n`));
      chunks.push(bytesOf(file.data), latin('\r\n'));
    }
    chunks.push(latin(`--${this.boundary}--\r\n`));
    const whole = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
    let place = 0;
    for (const chunk of chunks) { whole.set(chunk, place); place += chunk.length; }
    return whole.buffer;
  }
}
export default { FormData };
