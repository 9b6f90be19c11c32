//! Libraries of jslib that are built in.

use crate::support::{Reply, run};
use crate::{load, ran};
use k6::test::StopReason;

const LIBRARIES: &str = r#"
        import http from 'k6/http';
        import chai, { describe, expect } from 'https://jslib.k6.io/k6chaijs/4.3.4.3/index.js';
        import { expect as check } from 'https://jslib.k6.io/k6-testing/0.6.1/index.js';
        import { Httpx, Get } from 'https://jslib.k6.io/httpx/0.1.0/index.js';
        import { FormData } from 'https://jslib.k6.io/formdata/0.0.2/index.js';
        import tempo from 'https://jslib.k6.io/http-instrumentation-tempo/1.0.1/index.js';
        import { ReadableStream, WritableStream } from 'k6/experimental/streams';
        const session = new Httpx({ baseURL: 'http://h.example', headers: { 'X-A': '1' } });
        export default async function () {
          const done = [describe('met', () => {
            const response = session.get('/get', null, { tags: { t: '1' } });
            expect(response.status, 'status').to.equal(200);
            expect(response).to.have.validJsonBody();
            expect(response.json().items, 'items').to.be.an('array').that.has.lengthOf.above(1);
            expect({ a: { b: 1 } }).to.deep.include({ a: { b: 1 } });
            expect([1, 2], 'list').to.include(2).and.not.be.empty;
            expect('text', 'word').to.be.a('string').and.match(/^t/);
            expect(false, 'flag').to.be.false();
            expect([1, 2]).to.have.ordered.members([1, 2], 'order');
            expect(2).to.equal(2, 'two');
          }), describe('missed', () => { expect(3, 'three').to.be.below(2); throw 1; }),
          describe('thrown', () => { throw new Error('odd'); })];
          console.log(done.join());
          check({ a: [1] }).toEqual({ a: [1] });
          check([1, 2]).not.toContain(3);
          try { check.configure({ softMode: 'throw' }).soft(1, 'no').toBe(2); } catch (error) { console.log(error.message); }
          try { check.configure({ softMode: 'throw', display: 'pretty', colorize: true }).soft(1).toBe(2); } catch (error) { console.log(JSON.stringify(error.message)); }
          try { check.configure({ display: 'loud', timeout: 1 }); } catch (error) { console.log(error.message); }
          const form = new FormData();
          form.append('n', '1');
          form.append('f', { data: new Uint8Array([65]), filename: 'a.txt', content_type: 'text/plain' });
          console.log(new TextDecoder().decode(form.body()).includes('filename="a.txt"\r\nContent-Type: text/plain\r\n\r\nA\r\n'));
          console.log(session.batch([new Get('/1'), new Get('/2')]).map((r) => r.status).join());
          const seen = [];
          const stream = new ReadableStream({ start(c) { c.enqueue(1); }, pull(c) { c.enqueue(2); c.close(); } });
          const reader = stream.getReader();
          const writer = new WritableStream({ write(chunk) { seen.push(chunk); } }).getWriter();
          for (;;) { const { done: over, value } = await reader.read(); if (over) break; await writer.write(value); }
          console.log(seen.join());
          tempo.instrumentHTTP({ propagator: 'w3c' });
          http.get('http://h.example/traced');
          check(1, 'ends the test').toBeNull();
        }
    "#;

#[test]
fn libraries_of_jslib_are_built_in() {
    let ran = ran(&[("/t/a.js", LIBRARIES)]);
    assert_eq!(
        ran.log()[1..],
        [
            "true,false,false",
            "no",
            r#""expect(received).toBe(expected)\n  Expected: \u001b[32m2\u001b[0m\n  Received: \u001b[31m1\u001b[0m""#,
            "expect.configure(): no effect of timeout: only the matchers of the browser wait",
            "expect.configure(): display must be one of pretty and inline, not loud",
            "true",
            "200,200",
            "1,2"
        ]
        .map(str::to_owned)
    );
    let checks = &ran.data()["root_group"]["groups"];
    let named = |group: &str| {
        let found = checks.as_array().unwrap().iter().find(|it| it["name"] == group).unwrap();
        let all = found["checks"].as_array().unwrap().iter();
        all.map(|it| format!("{} {}", it["name"].as_str().unwrap(), it["passes"]))
            .collect::<Vec<_>>()
    };
    assert_eq!(named("missed"), ["expected three to be below 2 0"]);
    assert_eq!(named("thrown"), ["Exception raised \"Error: odd\" 0"]);
    let met = named("met");
    for name in [
        "status to equal 200",
        "items to be an array",
        "items to have a length above 1 got ${actual}",
        "list to include 2",
        "list not to be empty",
        "word to match /^t/",
        "flag to be false",
        "two to equal 2",
        "order to have the same ordered members as [ 1, 2 ]",
    ] {
        assert!(met.contains(&format!("expected {name} 1")), "{name}: {met:?}");
    }
    assert!(ran.sent[0].1.contains("GET /get ") && ran.sent[0].1.contains("X-A: 1"));
    let traced = &ran.sent[3].1;
    assert!(traced.contains("Traceparent: 00-dc0718"), "{traced}");
    assert!(
        matches!(ran.test.stop_reason(), Some(StopReason::Aborted(why)) if why == "ends the test")
    );
}

#[test]
fn modules_import_common_js_files() {
    let ran = ran(&[
        (
            "/t/a.js",
            "import lib, { double } from './lib.js';
            import flagged, * as all from './flagged.js';
            export default function () {
              console.log(lib.double(2), double(3), flagged, all.named, Object.keys(all).join());
            }",
        ),
        (
            "/t/lib.js",
            "const two = require('./two.js'); module.exports = { double: (x) => x * two };",
        ),
        ("/t/two.js", "module.exports = 2;"),
        (
            "/t/flagged.js",
            "Object.defineProperty(exports, '__esModule', { value: true });
            exports.default = 'mine'; exports.named = 1; exports.delete = 2; exports['a-b'] = 3;",
        ),
    ]);
    assert_eq!(ran.log(), ["4 6 mine 1 default,delete,named"]);
}

/// The keys and signatures are examples of AWS's documentation and its test suite for Signature
/// Version 4.
const SIGNATURES: &str = r#"
    import { Endpoint, SignatureV4 } from 'https://jslib.k6.io/aws/1.0.0/signature.js';
    const suite = new SignatureV4({ service: 'service', region: 'us-east-1', applyChecksum: false,
      credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' } });
    const signature = (request) => {
      const signed = suite.sign(Object.assign({ method: 'GET', protocol: 'https', hostname: 'example.amazonaws.com', path: '/', headers: {} }, request),
        { signingDate: new Date('2015-08-30T12:36:00Z') });
      return signed.headers.Authorization.replace(/.*Signature=/, '');
    };
    const s3 = new SignatureV4({ service: 's3', region: 'us-east-1', uriEscapePath: false,
      credentials: { accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY' } });
    const object = { method: 'GET', endpoint: new Endpoint('https://examplebucket.s3.amazonaws.com'), path: '/test.txt' };
    export default function () {
      console.log(signature({}));
      console.log(signature({ path: '/example/..' }));
      console.log(signature({ method: 'POST' }));
      console.log(signature({ query: { Param2: 'value2', Param1: 'value1' } }));
      console.log(signature({ path: '/ሴ' }));
      console.log(signature({ headers: { 'My-Header1': ' value1', 'My-Header2': ' "a   b   c"' } }));
      console.log(signature({ method: 'POST', headers: { 'Content-Type': 'application/x-www-form-urlencoded' }, body: 'Param1=value1' }));
      const get = Object.assign({}, object, { headers: { Range: 'bytes=0-9' } });
      const signed = s3.sign(get, { signingDate: '2013-05-24T00:00:00Z' });
      console.log(signed.headers.Authorization.replace(/.*SignedHeaders/, ''));
      const hash = 'x-amz-content-sha256';
      const presigned = s3.presign(Object.assign({ headers: { [hash]: 'UNSIGNED-PAYLOAD' } }, object),
        { signingDate: '2013-05-24T00:00:00Z', expiresIn: 86400, unhoistableHeaders: new Set([hash]), unsignableHeaders: new Set([hash]) });
      console.log(presigned.url.split('?')[0], presigned.query['X-Amz-Signature']);
    }
"#;

#[test]
fn requests_to_aws_are_signed_as_its_examples() {
    assert_eq!(
        ran(&[("/t/a.js", SIGNATURES)]).log(),
        [
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85",
            "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
            "=host;range;x-amz-content-sha256;x-amz-date, \
             Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            "https://examplebucket.s3.amazonaws.com/test.txt \
             aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404",
        ]
    );
}

const AWS: &str = r#"
    import { AWSConfig, EventBridgeClient, KinesisClient, KMSClient, LambdaClient, S3Client, SecretsManagerClient, SQSClient, SystemsManagerClient }
      from 'https://jslib.k6.io/aws/1.0.0/aws.js';
    const config = new AWSConfig({ region: 'eu-west-1', accessKeyId: 'AK', secretAccessKey: 'SK', endpoint: 'http://aws.test:4566' });
    const show = (value) => console.log(JSON.stringify(value));
    const thrown = async (call) => { try { await call(); return 'none'; } catch (error) { return `${error.name} ${error.code}: ${error.message}`; } };
    export default async function () {
      const s3 = new S3Client(config);
      show(await s3.listBuckets());
      show((await s3.listObjects('b', 'p')).map((one) => one.key + one.size));
      await s3.putObject('b', 'a b/c.txt', 'text', { contentType: 'text/plain' });
      show((await s3.getObject('b', 'c.txt')).data);
      const { uploadId } = await s3.createMultipartUpload('b', 'k');
      await s3.completeMultipartUpload('b', 'k', uploadId, [await s3.uploadPart('b', 'k', uploadId, 1, 'x')]);
      console.log(await thrown(() => s3.deleteObject('b', 'missing')));
      console.log(await thrown(() => s3.getObject('b', 'gone', { Accept: 'application/octet-stream' })));
      const sqs = new SQSClient(config);
      show(await sqs.sendMessage('http://q', 'm', { messageAttributes: { a: { type: 'String', value: 'v' } } }));
      show((await new SecretsManagerClient(config).getSecret('s')).secret);
      show((await new SystemsManagerClient(config).getParameter('p')).value);
      show((await new KMSClient(config).listKeys())[0]);
      const kinesis = new KinesisClient(config);
      const put = await kinesis.putRecords('st', [{ data: 'd', partitionKey: 'k' }]);
      show([put.failedRecordCount, put.FailedRecordCount, put.records[0].shardId]);
      await new EventBridgeClient(config).putEvents({ Entries: [{ Source: 's', Detail: { a: 1 } }] });
      show((await new LambdaClient(config).invoke('fn', '{}')).payload);
      console.log(await thrown(() => kinesis.deleteStream('none')));
      console.log(await thrown(async () => new AWSConfig({ region: 'r', accessKeyId: 'AK' })));
    }
"#;

/// Answers as the services do.
fn aws(request: &str) -> Reply {
    let ok = |body: &str| {
        let head =
            format!("HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: {}\r\n\r\n", body.len());
        Reply::Whole(head, body.to_owned())
    };
    let failed = |status: &str, body: &str| {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
        Reply::Whole(head, body.to_owned())
    };
    let lower = request.to_lowercase();
    let target = lower.split("x-amz-target: ").nth(1).and_then(|it| it.split("\r\n").next());
    match target {
        Some("amazonsqs.sendmessage") => ok(r#"{"MessageId":"1","MD5OfMessageBody":"m5"}"#),
        Some("secretsmanager.getsecretvalue") => ok(r#"{"Name":"s","SecretString":"hush"}"#),
        Some("amazonssm.getparameter") => ok(r#"{"Parameter":{"Name":"p","Value":"v"}}"#),
        Some("trentservice.listkeys") => ok(r#"{"Keys":[{"KeyId":"i","KeyArn":"a"}]}"#),
        Some("kinesis_20131202.putrecords") => {
            ok(r#"{"FailedRecordCount":0,"Records":[{"ShardId":"s0"}]}"#)
        }
        Some("kinesis_20131202.deletestream") => {
            let body = r#"{"__type":"com.aws#ResourceNotFoundException","message":"no stream"}"#;
            failed("400 Bad Request", body)
        }
        Some(_) => ok("{}"),
        None if request.starts_with("GET / ") => ok("<R><Buckets><Bucket><Name>b&amp;1</Name>\
            <CreationDate>2020-01-01T00:00:00Z</CreationDate></Bucket></Buckets></R>"),
        None if lower.contains("list-type=2&prefix=p ") => {
            ok("<R><Contents><Key>k</Key><Size>3</Size></Contents></R>")
        }
        None if request.starts_with("DELETE") || request.contains("/gone") => {
            failed("404 Not Found", "<Error><Code>NoSuchKey</Code><Message>none</Message></Error>")
        }
        None if request.contains("?uploads=") => ok("<R><Key>k</Key><UploadId>u1</UploadId></R>"),
        None => ok("content"),
    }
}

#[test]
fn clients_of_aws_send_signed_requests() {
    let test = load(Box::leak(Box::new([("/t/a.js", AWS)]))).map_err(|error| error.text);
    let ran = run(test.unwrap(), &aws);
    assert_eq!(
        ran.log(),
        [
            r#"[{"name":"b&1","creationDate":1577836800000}]"#,
            r#"["k3"]"#,
            r#""content""#,
            "S3ServiceError NoSuchKey: none",
            "S3ServiceError NoSuchKey: none",
            r#"{"id":"1","messageId":"1","bodyMD5":"m5"}"#,
            r#""hush""#,
            r#""v""#,
            r#"{"keyId":"i","keyArn":"a"}"#,
            r#"[0,0,"s0"]"#,
            r#""content""#,
            "KinesisServiceError ResourceNotFoundException: no stream",
            "InvalidAWSConfigError undefined: invalid AWS secret access key; expected 1 to 128 \
             characters",
        ]
    );
    let signed = |part: &str| ran.sent.iter().any(|(_, text)| text.contains(part));
    for part in [
        "PUT /b/a%20b/c.txt HTTP/1.1\r\nHost: aws.test:4566\r\n",
        "/eu-west-1/s3/aws4_request, SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date",
        "/eu-west-1/kinesis/aws4_request",
        "<Part><PartNumber>1</PartNumber><ETag>\"e\"</ETag></Part>",
        r#"{"QueueUrl":"http://q","MessageBody":"m","MessageAttributes":{"a":{"DataType":"String","StringValue":"v"}}}"#,
        r#"{"StreamName":"st","Records":[{"Data":"ZA==","PartitionKey":"k"}]}"#,
        r#"{"Entries":[{"Source":"s","Detail":"{\"a\":1}"}]}"#,
        "POST /2015-03-31/functions/fn/invocations HTTP/1.1",
    ] {
        assert!(signed(part), "{part}\n{:#?}", ran.sent);
    }
}
