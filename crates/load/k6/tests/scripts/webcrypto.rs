//! WebCrypto: known results, and results that its own operations reverse.

use super::ran;

const KNOWN: &str = r#"
    const { subtle } = crypto;
    const hex = (data) => [...new Uint8Array(data)].map((it) => it.toString(16).padStart(2, '0')).join('');
    const of = (text) => new Uint8Array(text.match(/../g).map((it) => parseInt(it, 16)));
    const text = (it) => new TextEncoder().encode(it);
    const key = (bytes, name, ...uses) => subtle.importKey('raw', bytes, name, true, uses);
    const show = async (what) => { try { console.log(hex(await what())); } catch (error) { console.log(`${error.name}: ${error.message}`); } };
    // RFC 7518 appendix C
    const ALICE = { kty: 'EC', crv: 'P-256', x: 'gI0GAILBdu7T53akrFmMyGcsF3n5dO7MmwNBHKW5SV0', y: 'SLW_xSffzlPWrHEVI30DHM_4egVwt3NQqeUD7nMFpps', d: '0_NxaRPUMQoAJt50Gz8YiTr8gRTwyEaCumd-MToTmIo' };
    const BOB = { kty: 'EC', crv: 'P-256', x: 'weNJy2HscCSM6AEDTDg04biOvhFhyyWvOHQfeF_PxMQ', y: 'e8lnCO-AlStT-NJVX-crhB7QRYhiix03illJOVAOyck' };
    export default async function () {
      // SP 800-38A F.5.1 and F.2.1, and the second case of the GCM specification
      const block = of('6bc1bee22e409f96e93d7e117393172a'), aes = of('2b7e151628aed2a6abf7158809cf4f3c');
      await show(async () => subtle.encrypt({ name: 'AES-CTR', counter: of('f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff'), length: 64 }, await key(aes, 'AES-CTR', 'encrypt'), block));
      await show(async () => (await subtle.encrypt({ name: 'aes-cbc', iv: of('000102030405060708090a0b0c0d0e0f') }, await key(aes, 'AES-CBC', 'encrypt'), block)).slice(0, 16));
      await show(async () => subtle.encrypt({ name: 'AES-GCM', iv: new Uint8Array(12) }, await key(new Uint8Array(16), 'AES-GCM', 'encrypt'), new Uint8Array(16)));
      // RFC 4231 test case 2, RFC 7914 section 11
      await show(async () => subtle.sign('HMAC', await key(text('Jefe'), { name: 'HMAC', hash: 'SHA-256' }, 'sign'), text('what do ya want for nothing?')));
      await show(async () => (await subtle.deriveBits({ name: 'PBKDF2', hash: 'SHA-256', salt: text('salt'), iterations: 1 }, await key(text('passwd'), 'PBKDF2', 'deriveBits'), 512)).slice(0, 8));
      await show(async () => subtle.deriveBits({ name: 'ECDH', public: await subtle.importKey('jwk', BOB, { name: 'ECDH', namedCurve: 'P-256' }, true, []) },
        await subtle.importKey('jwk', ALICE, { name: 'ECDH', namedCurve: 'P-256' }, true, ['deriveBits']), 256));
      await show(async () => subtle.encrypt({ name: 'AES-CBC', iv: new Uint8Array(3) }, await key(aes, 'AES-CBC', 'encrypt'), block));
      await show(async () => subtle.encrypt({ name: 'AES-GCM', iv: new Uint8Array(12) }, await key(aes, 'AES-GCM', 'decrypt'), block));
      await show(async () => subtle.decrypt({ name: 'AES-GCM', iv: new Uint8Array(12) }, await key(aes, 'AES-GCM', 'decrypt'), new Uint8Array(20)));
      await show(async () => key(new Uint8Array(5), 'AES-GCM', 'decrypt'));
      await show(async () => key(aes, 'AES-KW', 'wrapKey'));
      await show(async () => subtle.wrapKey('raw', await key(aes, 'AES-GCM', 'decrypt'), await key(aes, 'AES-GCM', 'wrapKey'), 'AES-GCM'));
      await show(async () => subtle.exportKey('raw', await subtle.importKey('raw', aes, 'AES-GCM', false, [])));
    }
"#;

#[test]
fn operations_have_known_results() {
    assert_eq!(
        ran(&[("/t/a.js", KNOWN)]).log(),
        [
            "874d6191b620e3261bef6864990db6ce",
            "7649abac8119b246cee98e9b12e9197d",
            "0388dace60b6a392f328c2b971b2fe78ab6e47d42cec13bdf53a67b21257bddf",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            "55ac046e56e3089f",
            "9e56d91d817135d372834283bf84269cfb316ea3da806a48f6daa7798cfe90c4",
            "OperationError: iv has 16 bytes; write new Uint8Array(16) and fill it",
            "InvalidAccessError: the usages of the key do not include \"encrypt\"",
            "OperationError: AES-GCM failed",
            "DataError: a key of AES has 16, 24 or 32 bytes",
            "NotSupportedError: AES-KW is not available",
            "NotSupportedError: wrapKey, which k6 does not implement either, is not available",
            "InvalidAccessError: the key is not extractable",
        ]
    );
}

const ROUND: &str = r#"
    const { subtle } = crypto;
    const data = new TextEncoder().encode('data'), iv = new Uint8Array(16), is = (it) => new TextDecoder().decode(it) === 'data';
    const again = async (format, key, algorithm, uses) => subtle.importKey(format, await subtle.exportKey(format, key), algorithm, true, uses);
    const signed = async (algorithm, make, more = {}) => {
      const own = Object.assign({}, algorithm, make), { privateKey, publicKey } = await subtle.generateKey(own, true, ['sign', 'verify']);
      const one = await again('pkcs8', privateKey, own, ['sign']), other = await again('spki', publicKey, own, ['verify']);
      const by = Object.assign({}, algorithm, more), made = await subtle.sign(by, one, data);
      const bad = new Uint8Array(made.slice(0));
      bad[3] ^= 1;
      return [await subtle.verify(by, other, made, data), await subtle.verify(by, publicKey, bad, data), made.byteLength].join();
    };
    export default async function () {
      for (const [namedCurve, hash] of [['P-256', 'SHA-256'], ['P-384', 'SHA-384'], ['P-521', 'SHA-512']]) {
        console.log(await signed({ name: 'ECDSA', hash }, { namedCurve }));
      }
      const rsa = { modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]) };
      console.log(await signed({ name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }, rsa));
      console.log(await signed({ name: 'RSA-PSS', hash: 'SHA-384' }, rsa, { saltLength: 48 }));
      const oaep = { name: 'RSA-OAEP', hash: 'SHA-256' }, pair = await subtle.generateKey(Object.assign({}, oaep, rsa), true, ['encrypt', 'decrypt']);
      console.log(is(await subtle.decrypt(oaep, pair.privateKey, await subtle.encrypt(oaep, pair.publicKey, data))));
      for (const name of ['AES-CBC', 'AES-CTR', 'AES-GCM']) {
        const key = await subtle.generateKey({ name, length: 256 }, true, ['encrypt', 'decrypt']), by = { name, iv: name === 'AES-GCM' ? iv.slice(4) : iv, counter: iv, length: 64, additionalData: iv };
        console.log(name, is(await subtle.decrypt(by, await again('jwk', key, name, ['decrypt']), await subtle.encrypt(by, key, data))));
      }
      const ecdh = { name: 'ECDH', namedCurve: 'P-384' }, ours = await subtle.generateKey(ecdh, true, ['deriveKey']), theirs = await subtle.generateKey(ecdh, true, ['deriveKey']);
      const share = async (mine, other) => subtle.exportKey('raw', await subtle.deriveKey({ name: 'ECDH', public: other }, mine, { name: 'AES-GCM', length: 256 }, true, ['encrypt']));
      const [a, b] = [await share(ours.privateKey, theirs.publicKey), await share(await again('jwk', theirs.privateKey, ecdh, ['deriveKey']), await again('raw', ours.publicKey, ecdh, []))];
      console.log(new Uint8Array(a).join() === new Uint8Array(b).join(), a.byteLength);
    }
"#;

#[test]
fn operations_reverse_each_other() {
    assert_eq!(
        ran(&[("/t/a.js", ROUND)]).log(),
        [
            "true,false,64",
            "true,false,96",
            "true,false,132",
            "true,false,256",
            "true,false,256",
            "true",
            "AES-CBC true",
            "AES-CTR true",
            "AES-GCM true",
            "true 32",
        ]
    );
}
