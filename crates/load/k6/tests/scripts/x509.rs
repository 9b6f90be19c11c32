//! `k6/crypto/x509`: the fields of two certificates of openssl, as k6 2.2 prints them.

use super::ran;

const SCRIPT: &str = r#"
    import x509, { parse, getSubject, getIssuer, getAltNames } from 'k6/crypto/x509';
    const RSA = `-----BEGIN CERTIFICATE-----
MIIEzDCCA7SgAwIBAgIUI8rFzMTy9A+z67kUmkTebLbtN0AwDQYJKoZIhvcNAQEL
BQAwgcgxCzAJBgNVBAYTAlpaMRkwFwYDVQQIDBBLb3B1bmNlemlzIEtyYWlzMREw
DwYDVQQHDAhBc2h0aW5vazEOMAwGA1UEEQwFOTk5OTkxGjAYBgNVBAkMETIyMUIg
QmFrZXIgU3RyZWV0MRwwGgYDVQQKDBNFeHVtYnJhbiBDb252ZW50aW9uMRkwFwYD
VQQLDBBFeHVtYnJhbiBDb3VuY2lsMQ8wDQYDVQQLDAZTZWNvbmQxFTATBgNVBAMM
DGV4Y291bmNpbC56ejAeFw0yNjExMzAxMTIzMDBaFw0yNjEyMzAxMTIzMDBaMIHI
MQswCQYDVQQGEwJaWjEZMBcGA1UECAwQS29wdW5jZXppcyBLcmFpczERMA8GA1UE
BwwIQXNodGlub2sxDjAMBgNVBBEMBTk5OTk5MRowGAYDVQQJDBEyMjFCIEJha2Vy
IFN0cmVldDEcMBoGA1UECgwTRXh1bWJyYW4gQ29udmVudGlvbjEZMBcGA1UECwwQ
RXh1bWJyYW4gQ291bmNpbDEPMA0GA1UECwwGU2Vjb25kMRUwEwYDVQQDDAxleGNv
dW5jaWwuenowggEiMA0GCSqGSIb3DQEBAQUAA4IBDwAwggEKAoIBAQCy1IQyhDE7
//VZ/XEZmv70sRqUOI7jSSbYrMnR6ZpcbPGYrUQa0eK9UHdIhJmv9GHie6t3ae7E
pBO+FwqPr2s4ZQ2kDNyoV2sCgORTrrV/WG2b6NEumFxxgSXGuwvoR4qlhGQ4MskD
NNQuHSIZbZm6odikoMEUt+6P+5PES23kf3xgEngqNoyGqNB2K036oDZtgk8B3UJQ
vaVpvGt9TCO70RVCZMk5aoE4bsW8iRdfeu54s0pRqWJ1sU2YXljS6nz4nnhqLE+X
Jy5g9pGO4igUrRDUtnvBYBuVlsppUWkpzk39E2N5CBBhe3N//onSkouybdmOt3TE
errc77nzpitvAgMBAAGjgaswgagwHQYDVR0OBBYEFK+3mH6EAihiVKBB1Exc5L26
dJ2DMB8GA1UdIwQYMBaAFK+3mH6EAihiVKBB1Exc5L26dJ2DMA8GA1UdEwEB/wQF
MAMBAf8wVQYDVR0RBE4wTIIMZXhjb3VuY2lsLnp6ggRiLnp6gQZhQGIuenqHBH8A
AAGHEAAAAAAAAAAAAAAAAAAAAAGGFmh0dHA6Ly9sZWFybmluZy56ei94P3kwDQYJ
KoZIhvcNAQELBQADggEBAIli8nmwoDNOGTQJb3mZERiYx4fBDuqriuypWEdfj4Un
8rcUsO4pPQJwIWLIC/gvLBlSlB2++H8vZItuY3J5lKGlH5umrHUIAT0p7bBHsBst
5SpG5QassbbBVlTBgv2LDurcor+Cf5YhuER2LHZqzOt0IkFKdlgZ7iobYmdEQgMc
VOrmHJn6YmD5IrcObSL0vL43/9IWGJd1nO7XVxxZ8GV4t9U6t6tgL4H6KhNPB522
QK88oCLtsPusimxy6k/ZSdc+9NhTI34XrGybiy35btRGDmPF8Kzkp4yeWEn4nZLG
VKlr722VRHA1AnmK/72H1iObGuutufAZcJZNwnwqbLg=
-----END CERTIFICATE-----`;
    const EC = `-----BEGIN CERTIFICATE-----
MIIBbDCCAROgAwIBAgIUSc1aKfM0rBEWkiicUZH8Be9ODkswCgYIKoZIzj0EAwIw
DDEKMAgGA1UEAwwBZTAeFw0yNjExMzAxMTIzMDFaFw0yNjEyMzAxMTIzMDFaMAwx
CjAIBgNVBAMMAWUwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAS4FRgSmJCTpszP
Hzz9AVBmKsEw/Y16IoWbfnfhludE+8WLJbCjGUPb5vPidjUvLGfPK0FVB4qmCN77
MSEGZISRo1MwUTAdBgNVHQ4EFgQUfvO7t8VBG5eijPQm9rGATnmbTlgwHwYDVR0j
BBgwFoAUfvO7t8VBG5eijPQm9rGATnmbTlgwDwYDVR0TAQH/BAUwAwEB/zAKBggq
hkjOPQQDAgNHADBEAiAbFOXB303uUdLK2aoRchgOdoQPINm3yEfHktacysYFhwIg
Pa2b2BFCnVJkrG4shBfhEcmVvQLLYToyrrk1wGtEILM=
-----END CERTIFICATE-----`;
    const n256 = (value) => value.toString(16).match(/../g).map((byte) => parseInt(byte, 16));
    const thrown = (what) => { try { what(); } catch (error) { console.log(error.message); } };
    export default function () {
      for (const pem of [RSA, EC]) {
        const { publicKey, ...rest } = parse(pem), key = publicKey.key;
        console.log(JSON.stringify(rest));
        console.log(publicKey.algorithm, key.e || key.curve.params().name, typeof (key.n || key.x));
        const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);
        console.log(same(getSubject(pem), rest.subject), same(x509.getIssuer(pem), rest.issuer), same(getAltNames(pem), rest.altNames));
      }
      const rsa = parse(RSA).publicKey.key, ec = parse(EC).publicKey.key, base = ec.params();
      console.log(rsa.size(), rsa.equal(parse(RSA).publicKey.key), rsa.equal(ec), ec.equal(parse(EC).publicKey.key));
      const twice = ec.double(base.gx, base.gy), thrice = ec.add(...twice, base.gx, base.gy);
      console.log(ec.isOnCurve(ec.x, ec.y), ec.isOnCurve(ec.x, ec.y + 1n), ec.curve.isOnCurve(...thrice), String(ec.scalarBaseMult([3])) === String(thrice));
      console.log(ec.scalarBaseMult(n256(base.n)).join(), ec.bytes().length, ec.bytes()[0], base.bit_size);
      thrown(() => parse('x'));
      thrown(() => getIssuer());
      thrown(() => parse('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'));
      let refused = 0;
      for (let at = 100; at < EC.length - 100; at += 7) try { parse(EC.slice(0, at) + EC.slice(at + 4)); } catch (_) { refused++; }
      console.log(refused > 10);
    }
"#;

const RSA: &str = r#"{"subject":{"commonName":"excouncil.zz","country":"ZZ","postalCode":"99999","stateOrProvinceName":"Kopuncezis Krais","localityName":"Ashtinok","streetAddress":"221B Baker Street","organizationName":"Exumbran Convention","organizationalUnitName":["Exumbran Council","Second"],"names":[{"type":"2.5.4.6","value":"ZZ"},{"type":"2.5.4.8","value":"Kopuncezis Krais"},{"type":"2.5.4.7","value":"Ashtinok"},{"type":"2.5.4.17","value":"99999"},{"type":"2.5.4.9","value":"221B Baker Street"},{"type":"2.5.4.10","value":"Exumbran Convention"},{"type":"2.5.4.11","value":"Exumbran Council"},{"type":"2.5.4.11","value":"Second"},{"type":"2.5.4.3","value":"excouncil.zz"}]},"issuer":{"commonName":"excouncil.zz","country":"ZZ","stateOrProvinceName":"Kopuncezis Krais","localityName":"Ashtinok","organizationName":"Exumbran Convention","names":[{"type":"2.5.4.6","value":"ZZ"},{"type":"2.5.4.8","value":"Kopuncezis Krais"},{"type":"2.5.4.7","value":"Ashtinok"},{"type":"2.5.4.17","value":"99999"},{"type":"2.5.4.9","value":"221B Baker Street"},{"type":"2.5.4.10","value":"Exumbran Convention"},{"type":"2.5.4.11","value":"Exumbran Council"},{"type":"2.5.4.11","value":"Second"},{"type":"2.5.4.3","value":"excouncil.zz"}]},"notBefore":"2026-11-30T11:23:00Z","notAfter":"2026-12-30T11:23:00Z","altNames":["excouncil.zz","b.zz","a@b.zz","127.0.0.1","::1","http://learning.zz/x?y"],"signatureAlgorithm":"SHA256-RSA","fingerPrint":[40,80,179,215,163,14,227,99,38,36,44,86,109,209,128,210,46,150,51,232]}"#;
const EC: &str = r#"{"subject":{"commonName":"e","country":"","postalCode":"","stateOrProvinceName":"","localityName":"","streetAddress":"","organizationName":"","organizationalUnitName":[],"names":[{"type":"2.5.4.3","value":"e"}]},"issuer":{"commonName":"e","country":"","stateOrProvinceName":"","localityName":"","organizationName":"","names":[{"type":"2.5.4.3","value":"e"}]},"notBefore":"2026-11-30T11:23:01Z","notAfter":"2026-12-30T11:23:01Z","altNames":[],"signatureAlgorithm":"ECDSA-SHA256","fingerPrint":[28,142,219,214,153,43,112,196,84,132,204,156,102,72,236,229,255,167,33,11]}"#;

#[test]
fn certificates_have_the_fields_of_k6() {
    assert_eq!(
        ran(&[("/t/a.js", SCRIPT)]).log(),
        [
            RSA,
            "RSA 65537 bigint",
            "true true true",
            EC,
            "ECDSA P-256 bigint",
            "true true true",
            "256 true false true",
            "true false true true",
            "0,0 65 4 256",
            "failed to decode certificate PEM file",
            "failed to decode certificate PEM file",
            "failed to parse certificate: x509: malformed certificate",
            "true",
        ]
    );
}
