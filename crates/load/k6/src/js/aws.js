// jslib's aws: requests to services of AWS, signed by Signature Version 4. All bundles of the library (s3.js, sqs.js, ...) are this module.
import http from 'k6/http';
import crypto from 'k6/crypto';
import { b64decode, b64encode } from 'k6/encoding';

export const AMZ_CONTENT_SHA256_HEADER = 'x-amz-content-sha256', UNSIGNED_PAYLOAD = 'UNSIGNED-PAYLOAD';
const ALGORITHM = 'AWS4-HMAC-SHA256';
// Seconds for which a presigned URL may be valid.
const EXPIRES_MAX = 604800;
const UNSIGNABLE = ['authorization', 'cache-control', 'connection', 'expect', 'from', 'keep-alive', 'max-forwards', 'pragma', 'referer', 'te',
  'trailer', 'transfer-encoding', 'upgrade', 'user-agent', 'x-amzn-trace-id'];

export class AWSError extends Error {
  constructor(message, code) { super(message); this.name = 'AWSError'; this.code = code; }
  static parseXML(body) {
    const text = isBinary(body) ? new TextDecoder().decode(body) : body;
    return new AWSError(inner(text, 'Message') || '', inner(text, 'Code'));
  }
}
const errorClass = (name) => class extends AWSError { constructor(message, code, operation) { super(message, code); this.name = name; this.operation = operation; } };
export const InvalidSignatureError = errorClass('InvalidSignatureError'), InvalidAWSConfigError = errorClass('InvalidAWSConfigError'),
  S3ServiceError = errorClass('S3ServiceError'), SecretsManagerServiceError = errorClass('SecretsManagerServiceError'), KMSServiceError = errorClass('KMSServiceError'),
  SystemsManagerServiceError = errorClass('SystemsManagerServiceError'), SQSServiceError = errorClass('SQSServiceError'), KinesisServiceError = errorClass('KinesisServiceError'),
  EventBridgeServiceError = errorClass('EventBridgeServiceError'), LambdaServiceError = errorClass('LambdaServiceError'), LambdaInvocationError = errorClass('LambdaInvocationError');

export class Endpoint {
  constructor(text) {
    const parts = /^([a-z]+):\/\/([^/:]+)(?::(\d+))?\/?$/.exec(String(text));
    if (parts === null) throw new InvalidAWSConfigError(`"${text}" is not an endpoint; write it like https://host or http://host:port`);
    [, this.protocol, this.hostname, this.port] = parts;
  }
  get host() { return this.hostname + (this.port === undefined ? '' : ':' + this.port); }
  get href() { return `${this.protocol}://${this.host}`; }
  toString() { return this.href; }
}

export class AWSConfig {
  constructor(given, accessKeyId, secretAccessKey, sessionToken) {
    const all = typeof given === 'string' ? { region: given, accessKeyId, secretAccessKey, sessionToken } : given || {};
    const wrong = (what) => new InvalidAWSConfigError(`invalid AWS ${what}`);
    const text = (value, least, most) => typeof value === 'string' && value.length >= least && value.length <= most;
    if (!text(all.region, 1, 64)) throw wrong(`region; expected a region like us-east-1, got ${all.region}`);
    if (!text(all.accessKeyId, 1, 128)) throw wrong('access key ID; expected 1 to 128 characters');
    if (!text(all.secretAccessKey, 1, 128)) throw wrong('secret access key; expected 1 to 128 characters');
    if (all.sessionToken !== undefined && typeof all.sessionToken !== 'string') throw wrong('session token; expected a text');
    Object.assign(this, { region: all.region, accessKeyId: all.accessKeyId, secretAccessKey: all.secretAccessKey, sessionToken: all.sessionToken });
    const scheme = all.scheme || 'https';
    if (all.endpoint instanceof Endpoint) this.endpoint = all.endpoint;
    else if (all.endpoint) this.endpoint = new Endpoint(/:\/\//.test(all.endpoint) ? all.endpoint : `${scheme}://${all.endpoint}`);
    this.scheme = this.endpoint ? this.endpoint.protocol : scheme;
  }
  static fromEnvironment(more) {
    const { AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = __ENV;
    return new AWSConfig(Object.assign({ region: AWS_REGION, accessKeyId: AWS_ACCESS_KEY_ID, secretAccessKey: AWS_SECRET_ACCESS_KEY, sessionToken: AWS_SESSION_TOKEN }, more));
  }
}

// ---------------------------------------------------------------- Signature Version 4
const escapeURI = (text) => encodeURIComponent(text).replace(/[!'()*]/g, (one) => '%' + one.charCodeAt(0).toString(16).toUpperCase());
const isBinary = (value) => value instanceof ArrayBuffer || ArrayBuffer.isView(value);
function dates(value) {
  const long = new Date(typeof value === 'number' && value < 1e11 ? value * 1000 : value).toISOString().replace(/[:-]|\.\d{3}/g, '');
  return [long, long.slice(0, 8)];
}
// Names and values of a query, in their order.
function pairs(query) {
  return Object.keys(query || {}).flatMap((name) => [].concat(query[name]).filter((value) => value !== undefined && value !== null).map((value) => [name, String(value)]));
}
const before = ([a, x], [b, y]) => (a < b || (a === b && x < y) ? -1 : 1);
const queryText = (all) => all.map((one) => one.map(escapeURI)).sort(before).map((one) => one.join('=')).join('&');
const lower = (headers) => new Map(Object.keys(headers || {}).map((name) => [name.toLowerCase(), String(headers[name])]));
const payloadOf = (body) => (body === undefined || body === null ? '' : body);

export class SignatureV4 {
  constructor({ service, region, credentials, uriEscapePath = true, applyChecksum = true }) {
    Object.assign(this, { service, region, credentials, uriEscapePath, applyChecksum });
  }
  // The endpoint of a request: older versions name the protocol and the host.
  _server(request) {
    if (request.endpoint !== undefined) return request.endpoint instanceof Endpoint ? request.endpoint : new Endpoint(request.endpoint);
    return { protocol: request.protocol || 'https', host: request.hostname };
  }
  _path(path) {
    if (!this.uriEscapePath) return path;
    const parts = [];
    for (const part of path.split('/')) if (part === '..') parts.pop(); else if (part !== '' && part !== '.') parts.push(part);
    const normal = (path.startsWith('/') ? '/' : '') + parts.join('/') + (parts.length > 0 && path.endsWith('/') ? '/' : '');
    return escapeURI(normal).replace(/%2F/g, '/');
  }
  _payloadHash(request, headers) { return headers.get(AMZ_CONTENT_SHA256_HEADER) || crypto.sha256(payloadOf(request.body), 'hex'); }
  // Signed headers in order, with whitespace in their values collapsed.
  _signed(headers, { unsignableHeaders = new Set(), signableHeaders = new Set() }) {
    const kept = (name) => signableHeaders.has(name) || !(UNSIGNABLE.includes(name) || /^(proxy|sec)-/.test(name) || unsignableHeaders.has(name));
    return [...headers].filter(([name]) => kept(name)).sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => [name, value.trim().replace(/\s+/g, ' ')]);
  }
  _signature(request, query, signed, hash, [long, short], scope) {
    const lines = [request.method, this._path(request.path || '/'), queryText(query), ...signed.map((one) => one.join(':')), '', signed.map(([name]) => name).join(';'), hash];
    const text = [ALGORITHM, long, scope, crypto.sha256(lines.join('\n'), 'hex')].join('\n');
    const [, region, service] = scope.split('/');
    const step = (key, part) => crypto.hmac('sha256', key, part, 'binary');
    const key = step(step(step(step('AWS4' + this.credentials.secretAccessKey, short), region), service), 'aws4_request');
    return crypto.hmac('sha256', key, text, 'hex');
  }
  _scope(options, short) { return `${short}/${options.signingRegion || this.region}/${options.signingService || this.service}/aws4_request`; }
  _url(server, request, query) { return `${server.protocol}://${server.host}${request.path || '/'}${query.length > 0 ? '?' + queryText(query) : ''}`; }
  sign(request, options = {}) {
    const [long, short] = dates(options.signingDate === undefined ? new Date() : options.signingDate);
    const [server, scope, headers] = [this._server(request), this._scope(options, short), lower(request.headers)];
    for (const name of ['authorization', 'date']) headers.delete(name);
    headers.set('host', server.host).set('x-amz-date', long);
    if (this.credentials.sessionToken) headers.set('x-amz-security-token', this.credentials.sessionToken);
    const hash = this._payloadHash(request, headers);
    if (this.applyChecksum) headers.set(AMZ_CONTENT_SHA256_HEADER, hash);
    const [signed, query] = [this._signed(headers, options), pairs(request.query)];
    const signature = this._signature(request, query, signed, hash, [long, short], scope);
    const names = signed.map(([name]) => name).join(';');
    headers.set('authorization', `${ALGORITHM} Credential=${this.credentials.accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`);
    const named = Object.fromEntries([...headers].map(([name, value]) => [name === 'host' ? 'Host' : name === 'authorization' ? 'Authorization' : name, value]));
    return Object.assign({}, request, { url: this._url(server, request, query), headers: named, body: payloadOf(request.body) });
  }
  presign(request, options = {}) {
    const { expiresIn = 3600, unhoistableHeaders = new Set() } = options;
    if (expiresIn > EXPIRES_MAX) throw new InvalidSignatureError('presigned URLs are valid for at most 7 days');
    const [long, short] = dates(options.signingDate === undefined ? new Date() : options.signingDate);
    const [server, scope, headers] = [this._server(request), this._scope(options, short), lower(request.headers)];
    const hash = this._payloadHash(request, headers);
    const query = Object.assign({}, request.query);
    for (const [name, value] of [...headers]) if (name.startsWith('x-amz-') && !unhoistableHeaders.has(name)) { query[name] = value; headers.delete(name); }
    headers.set('host', server.host);
    if (this.credentials.sessionToken) query['X-Amz-Security-Token'] = this.credentials.sessionToken;
    const signed = this._signed(headers, options);
    Object.assign(query, { 'X-Amz-Algorithm': ALGORITHM, 'X-Amz-Credential': `${this.credentials.accessKeyId}/${scope}`, 'X-Amz-Date': long,
      'X-Amz-Expires': String(expiresIn), 'X-Amz-SignedHeaders': signed.map(([name]) => name).join(';') });
    query['X-Amz-Signature'] = this._signature(request, pairs(query), signed, hash, [long, short], scope);
    return Object.assign({}, request, { url: this._url(server, request, pairs(query)), headers: Object.fromEntries(headers), query });
  }
}

// ---------------------------------------------------------------- clients
export class AWSClient {
  constructor(config, service, Failure, uriEscapePath = true) {
    const { region, accessKeyId, secretAccessKey, sessionToken } = config;
    Object.assign(this, { awsConfig: config, serviceName: service, Failure, baseRequestParams: { responseType: 'text' } });
    this.signature = new SignatureV4({ service, region, credentials: { accessKeyId, secretAccessKey, sessionToken }, uriEscapePath, applyChecksum: true });
  }
  get endpoint() { return this.awsConfig.endpoint || (this._endpoint = this._endpoint || new Endpoint(`${this.awsConfig.scheme}://${this.serviceName}.${this.awsConfig.region}.amazonaws.com`)); }
  get host() { return this.endpoint.host; }
  async _send(operation, request, params = {}) {
    const signed = this.signature.sign(Object.assign({ endpoint: this.endpoint, headers: {} }, request));
    const response = await http.asyncRequest(request.method, signed.url, signed.body === '' ? null : signed.body, Object.assign({}, this.baseRequestParams, params, { headers: signed.headers }));
    if (response.status < 200 || response.status > 299) throw this._failure(response, operation);
    return response;
  }
  _failure(response, operation) {
    if (response.status === 0) return new AWSError(response.error, String(response.error_code));
    let body = {};
    try { body = response.json() || {}; } catch (error) { body = {}; }
    const code = String(body.__type || response.headers['X-Amzn-Errortype'] || response.status).replace(/^.*#|:.*$/g, '');
    const message = body.Message || body.message || code;
    return code === 'InvalidSignatureException' ? new InvalidSignatureError(message, code) : new this.Failure(message, code, operation);
  }
  // A request of the JSON protocol; fields without a value are left out.
  async _call(operation, body) {
    const [version, target] = this.protocol;
    const headers = { 'Content-Type': `application/x-amz-json-${version}`, 'x-amz-target': `${target}.${operation}` };
    const response = await this._send(operation, { method: 'POST', path: '/', headers, body: JSON.stringify(body) });
    return response.body ? response.json() : {};
  }
}
const unescape = (text) => text.replace(/&(lt|gt|quot|apos|amp|#\d+|#x[0-9a-fA-F]+);/g, (_, name) => {
  if (name[0] === '#') return String.fromCodePoint(name[1] === 'x' ? parseInt(name.slice(2), 16) : Number(name.slice(1)));
  return { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' }[name];
});
// The contents of all elements of a name in XML, and the text of the first one.
const elements = (xml, name) => [...String(xml).matchAll(new RegExp(`<${name}(?:\\s[^>]*)?>([\\s\\S]*?)</${name}>`, 'g'))].map((found) => found[1]);
function inner(xml, name) { const found = elements(xml, name); return found.length > 0 ? unescape(found[0]) : undefined; }

export class S3Client extends AWSClient {
  constructor(config) { super(config, 's3', S3ServiceError, false); }
  _failure(response, operation) {
    if (response.status === 301) return new S3ServiceError('Resource not found', 'ResourceNotFound', operation);
    if (response.status === 0) return super._failure(response, operation);
    const { message, code } = AWSError.parseXML(response.body || '');
    return code === 'AuthorizationHeaderMalformed' ? new InvalidSignatureError(message, code) : new S3ServiceError(message || response.status_text, code || String(response.status), operation);
  }
  // Buckets are names of hosts, unless an endpoint is given.
  _object(operation, method, bucket, key, more = {}, params = {}) {
    const custom = this.awsConfig.endpoint;
    const endpoint = custom || new Endpoint(`${this.endpoint.protocol}://${bucket}.${this.endpoint.host}`);
    const path = `${custom ? `/${bucket}` : ''}/${escapeURI(key).replace(/%2F/g, '/')}`;
    return this._send(operation, Object.assign({ method, endpoint, path }, more), params);
  }
  async listBuckets() {
    const response = await this._send('ListBuckets', { method: 'GET', path: '/' });
    return elements(response.body, 'Bucket').map((one) => ({ name: inner(one, 'Name'), creationDate: Date.parse(inner(one, 'CreationDate')) }));
  }
  async listObjects(bucket, prefix) {
    const response = await this._object('ListObjectsV2', 'GET', bucket, '', { query: { 'list-type': '2', prefix: prefix || '' } });
    return elements(response.body, 'Contents').map((one) => ({ key: inner(one, 'Key'), lastModified: Date.parse(inner(one, 'LastModified')), etag: inner(one, 'ETag'),
      size: parseInt(inner(one, 'Size'), 10), storageClass: inner(one, 'StorageClass'), data: undefined }));
  }
  async getObject(bucket, key, headers = {}) {
    const binary = lower(headers).get('accept') === 'application/octet-stream';
    const response = await this._object('GetObject', 'GET', bucket, key, { headers }, binary ? { responseType: 'binary' } : {});
    const field = (name) => response.headers[name];
    return { key, lastModified: Date.parse(field('Last-Modified')), etag: field('Etag') || field('ETag'), size: parseInt(field('Content-Length'), 10), storageClass: field('X-Amz-Storage-Class') || 'STANDARD', data: response.body };
  }
  async putObject(bucket, key, data, params = {}) {
    const names = { contentDisposition: 'Content-Disposition', contentEncoding: 'Content-Encoding', contentLength: 'Content-Length', contentMD5: 'Content-MD5', contentType: 'Content-Type', aclId: 'x-amz-acl' };
    const headers = {};
    for (const name of Object.keys(params)) {
      if (names[name] === undefined) throw new S3ServiceError(`unknown parameter "${name}"`, 'InvalidArgument', 'PutObject');
      headers[names[name]] = params[name];
    }
    const response = await this._object('PutObject', 'PUT', bucket, key, { body: data, headers });
    const eTag = response.headers.Etag || response.headers.ETag;
    return { eTag, etag: eTag, crc32: response.headers['X-Amz-Checksum-Crc32'], sha256: response.headers['X-Amz-Checksum-Sha256'], size: isBinary(data) ? data.byteLength : String(data).length };
  }
  async deleteObject(bucket, key) { await this._object('DeleteObject', 'DELETE', bucket, key); }
  async copyObject(sourceBucket, sourceKey, bucket, key) {
    const source = `${sourceBucket}/${escapeURI(sourceKey).replace(/%2F/g, '/')}`;
    await this._object('CopyObject', 'PUT', bucket, key, { headers: { 'x-amz-copy-source': source } });
  }
  async createMultipartUpload(bucket, key) {
    const response = await this._object('CreateMultipartUpload', 'POST', bucket, key, { query: { uploads: '' } });
    return { key: inner(response.body, 'Key'), uploadId: inner(response.body, 'UploadId') };
  }
  async uploadPart(bucket, key, uploadId, partNumber, data) {
    const response = await this._object('UploadPart', 'PUT', bucket, key, { query: { partNumber: String(partNumber), uploadId }, body: data });
    return { partNumber, eTag: response.headers.Etag || response.headers.ETag };
  }
  async completeMultipartUpload(bucket, key, uploadId, parts) {
    const list = parts.map((part) => `<Part><PartNumber>${part.partNumber}</PartNumber><ETag>${part.eTag}</ETag></Part>`).join('');
    const response = await this._object('CompleteMultipartUpload', 'POST', bucket, key, { query: { uploadId }, body: `<CompleteMultipartUpload>${list}</CompleteMultipartUpload>` });
    const eTag = inner(response.body, 'ETag');
    return { location: inner(response.body, 'Location'), bucket: inner(response.body, 'Bucket'), key: inner(response.body, 'Key'), eTag, etag: eTag };
  }
  async abortMultipartUpload(bucket, key, uploadId) { await this._object('AbortMultipartUpload', 'DELETE', bucket, key, { query: { uploadId } }); }
}

const millis = (seconds) => (typeof seconds === 'number' ? seconds * 1e3 : seconds);
const secretOf = (one) => ({ name: one.Name, secret: one.SecretString, arn: one.ARN, createdAt: millis(one.CreatedDate), lastAccessedDate: millis(one.LastAccessedDate), lastChangedDate: millis(one.LastChangedDate), tags: one.Tags || [] });
export class SecretsManagerClient extends AWSClient {
  constructor(config) { super(config, 'secretsmanager', SecretsManagerServiceError); this.protocol = ['1.1', 'secretsmanager']; }
  async listSecrets() { return ((await this._call('ListSecrets', {})).SecretList || []).map(secretOf); }
  async getSecret(id) { return secretOf(await this._call('GetSecretValue', { SecretId: id })); }
  async createSecret(name, secret, description, versionId, tags) {
    const list = Array.isArray(tags) ? tags.flatMap((one) => (one.Key === undefined ? Object.entries(one).map(([Key, Value]) => ({ Key, Value })) : [one])) : undefined;
    return secretOf(await this._call('CreateSecret', { Name: name, Description: description, ClientRequestToken: versionId || globalThis.crypto.randomUUID(), SecretString: secret, Tags: list }));
  }
  async putSecretValue(id, secret, versionId) { return secretOf(await this._call('PutSecretValue', { SecretId: id, SecretString: secret, ClientRequestToken: versionId || globalThis.crypto.randomUUID() })); }
  async deleteSecret(id, { recoveryWindow = 30, noRecovery = false } = {}) {
    await this._call('DeleteSecret', noRecovery ? { SecretId: id, ForceDeleteWithoutRecovery: true } : { SecretId: id, RecoveryWindowInDays: recoveryWindow });
  }
}
export class SystemsManagerClient extends AWSClient {
  constructor(config) { super(config, 'ssm', SystemsManagerServiceError); this.protocol = ['1.1', 'AmazonSSM']; }
  async getParameter(name, withDecryption = false) {
    const one = (await this._call('GetParameter', { Name: name, WithDecryption: withDecryption })).Parameter || {};
    return { arn: one.ARN, dataType: one.DataType, lastModifiedDate: millis(one.LastModifiedDate), name: one.Name, selector: one.Selector, sourceResult: one.SourceResult, type: one.Type, value: one.Value, version: one.Version };
  }
}
export class KMSClient extends AWSClient {
  constructor(config) { super(config, 'kms', KMSServiceError); this.protocol = ['1.1', 'TrentService']; }
  async listKeys() { return ((await this._call('ListKeys', {})).Keys || []).map((one) => ({ keyId: one.KeyId, keyArn: one.KeyArn })); }
  async generateDataKey(id, size = 32) {
    const one = await this._call('GenerateDataKey', { KeyId: id, NumberOfBytes: size });
    return { ciphertextBlob: one.CiphertextBlob, id: one.KeyId, plaintext: one.Plaintext };
  }
}
export class SQSClient extends AWSClient {
  constructor(config) { super(config, 'sqs', SQSServiceError); this.protocol = ['1.0', 'AmazonSQS']; }
  _message(body, options = {}) {
    const { messageDeduplicationId, messageGroupId, messageAttributes, delaySeconds } = options;
    const attribute = ({ type, value }) => ({ DataType: type, [String(type).startsWith('Binary') ? 'BinaryValue' : 'StringValue']: value });
    const attributes = messageAttributes && Object.fromEntries(Object.entries(messageAttributes).map(([name, one]) => [name, attribute(one)]));
    return { MessageBody: body, MessageDeduplicationId: messageDeduplicationId, MessageGroupId: messageGroupId, MessageAttributes: attributes, DelaySeconds: delaySeconds };
  }
  async sendMessage(queueUrl, body, options) {
    const made = await this._call('SendMessage', Object.assign({ QueueUrl: queueUrl }, this._message(body, options)));
    return { id: made.MessageId, messageId: made.MessageId, bodyMD5: made.MD5OfMessageBody };
  }
  async sendMessageBatch(queueUrl, entries) {
    const list = entries.map((one) => Object.assign({ Id: one.messageId }, this._message(one.messageBody, one.messageOptions)));
    const made = await this._call('SendMessageBatch', { QueueUrl: queueUrl, Entries: list });
    return { successful: (made.Successful || []).map((one) => ({ id: one.MessageId, messageId: one.MessageId, bodyMD5: one.MD5OfMessageBody })),
      failed: (made.Failed || []).map((one) => new SQSServiceError(one.Message, one.Code, 'SendMessageBatch')) };
  }
  async listQueues({ maxResults, nextToken, queueNamePrefix } = {}) {
    const made = await this._call('ListQueues', { MaxResults: maxResults, NextToken: nextToken, QueueNamePrefix: queueNamePrefix });
    const urls = made.QueueUrls || [];
    return { urls, queueUrls: urls, nextToken: made.NextToken };
  }
  async receiveMessages(queueUrl, ...given) {
    const names = ['messageAttributeNames', 'messageSystemAttributeNames', 'maxNumberOfMessages', 'visibilityTimeout', 'waitTimeSeconds', 'receiveRequestAttemptId'];
    const one = given[0] && !Array.isArray(given[0]) ? given[0] : Object.fromEntries(given.map((value, i) => [names[i], value]));
    const made = await this._call('ReceiveMessage', { QueueUrl: queueUrl, MessageAttributeNames: one.messageAttributeNames || ['All'], MessageSystemAttributeNames: one.messageSystemAttributeNames || ['All'],
      MaxNumberOfMessages: one.maxNumberOfMessages || 1, VisibilityTimeout: one.visibilityTimeout === undefined ? 30 : one.visibilityTimeout, WaitTimeSeconds: one.waitTimeSeconds === undefined ? 10 : one.waitTimeSeconds,
      ReceiveRequestAttemptId: one.receiveRequestAttemptId });
    return (made.Messages || []).map((it) => Object.assign({ id: it.MessageId, messageId: it.MessageId, body: it.Body, receiptHandle: it.ReceiptHandle, bodyMD5: it.MD5OfBody, attributes: it.Attributes }, it));
  }
  async deleteMessage(queueUrl, receiptHandle) { await this._call('DeleteMessage', { QueueUrl: queueUrl, ReceiptHandle: receiptHandle }); }
}

// Field names may begin with a small letter, or with a capital as in the service; results have both forms.
const recased = (value, change) => {
  if (Array.isArray(value)) return value.map((one) => recased(one, change));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).flatMap(([name, one]) => change(name).map((made) => [made, recased(one, change)])));
};
const capital = (name) => [name[0].toUpperCase() + name.slice(1)];
const either = (name) => [...new Set([name, name[0].toLowerCase() + name.slice(1)])];
const decoded = (record) => (record.Data === undefined ? record : Object.assign({}, record, { Data: b64decode(record.Data, 'std', 's') }));
export class KinesisClient extends AWSClient {
  constructor(config) { super(config, 'kinesis', KinesisServiceError); this.protocol = ['1.1', 'Kinesis_20131202']; }
  // The first argument is the request, or the name that stands for it.
  async _run(operation, first, name, more) {
    const request = typeof first === 'string' ? Object.assign({ [name]: first }, more) : first;
    return recased(await this._call(operation, recased(request || {}, capital)), either);
  }
  async createStream(stream, options) { await this._run('CreateStream', stream, 'StreamName', options); }
  async deleteStream(stream, options) { await this._run('DeleteStream', stream, 'StreamName', options); }
  listStreams(request) { return this._run('ListStreams', request, 'ExclusiveStartStreamName'); }
  listShards(stream, options) { return this._run('ListShards', stream, 'StreamName', options); }
  putRecords(stream, records) {
    const request = typeof stream === 'string' ? { StreamName: stream, Records: records } : recased(stream, capital);
    const encoded = request.Records.map((one) => recased(one, capital)).map((one) => Object.assign({}, one, { Data: b64encode(one.Data) }));
    return this._run('PutRecords', Object.assign({}, request, { Records: encoded }));
  }
  getShardIterator(stream, shardId, type, options) { return this._run('GetShardIterator', stream, 'StreamName', Object.assign({ ShardId: shardId, ShardIteratorType: type }, options)); }
  async getRecords(iterator, options) {
    const made = await this._call('GetRecords', recased(typeof iterator === 'string' ? Object.assign({ ShardIterator: iterator }, options) : iterator, capital));
    return recased(Object.assign({}, made, { Records: (made.Records || []).map(decoded) }), either);
  }
}
export class EventBridgeClient extends AWSClient {
  constructor(config) { super(config, 'events', EventBridgeServiceError); this.protocol = ['1.1', 'AWSEvents']; }
  putEvents(input) {
    const entries = input.Entries.map((one) => Object.assign({}, one, { Detail: typeof one.Detail === 'string' ? one.Detail : JSON.stringify(one.Detail) }));
    return this._call('PutEvents', Object.assign({}, input, { Entries: entries }));
  }
}
export class LambdaClient extends AWSClient {
  constructor(config) { super(config, 'lambda', LambdaServiceError); }
  async invoke(name, payload, { invocationType = 'RequestResponse', logType = 'None', clientContext, qualifier } = {}) {
    const headers = { 'Content-Type': 'application/json', 'X-Amz-Invocation-Type': invocationType, 'X-Amz-Log-Type': logType };
    if (clientContext !== undefined) headers['X-Amz-Client-Context'] = clientContext;
    const path = `/2015-03-31/functions/${escapeURI(name)}/invocations`;
    const response = await this._send('Invoke', { method: 'POST', path, headers, query: { Qualifier: qualifier }, body: payload });
    const failed = response.headers['X-Amz-Function-Error'];
    const made = { statusCode: response.status, executedVersion: response.headers['X-Amz-Executed-Version'], logResult: response.headers['X-Amz-Log-Result'], payload: response.body };
    if (failed) throw Object.assign(new LambdaInvocationError(`the function failed: ${failed}`, failed, 'Invoke'), { response: made });
    return made;
  }
}
