//! The parameter `tls` of gRPC connections.

use super::ran;
use k6::guide::ScriptGuides;
use workload::Guides;

const SCRIPT: &str = r#"
    import grpc from 'k6/net/grpc';
    const CERT = '-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n';
    const KEY = '-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n';
    const client = new grpc.Client();
    function connect(address, tls) {
      try { console.log(client.connect(address, { tls })); } catch (error) { console.log(error.message); }
    }
    export default function () {
      connect('own.example:443', { cacerts: [CERT], cert: CERT, key: KEY });
      connect('own.example:444', { cacerts: CERT, cert: CERT, key: KEY });
      connect('own.example:443', { cacerts: CERT });
      connect('plan.example:443', {});
      connect('bad.example:443', 'x');
      connect('bad.example:443', { cert: 5 });
      connect('bad.example:443', { cacerts: [CERT, 5] });
      connect('bad.example:443', { cacerts: [CERT, 'x'] });
      connect('bad.example:443', { cert: CERT, key: KEY, password: 'x' });
      console.log(client.connect('own.example:80', { plaintext: true, tls: { cacerts: CERT } }));
    }
"#;

#[test]
fn connections_have_the_certificates_of_their_server() {
    let ran = ran(&[("/t/a.js", SCRIPT)]);
    let log = ran.log();
    let expected = [
        "true",
        "true",
        "all connections to own.example share their TLS settings; pass the same \"tls\" to each \
         connect(), or use another name for the server",
        "true",
        "invalid grpc.connect() parameters: invalid tls value: 'x', expected (optional) keys: \
         cert, key, password, and cacerts",
        "invalid grpc.connect() parameters: invalid tls cert value, it needs to be a PEM \
         formatted string",
        "invalid grpc.connect() parameters: invalid tls cacerts value, it needs to be a string \
         or an array of PEM formatted strings",
        "failed to append ca certificate [1] from PEM",
        "a password is given, but the key is not encrypted",
        "true",
    ];
    assert_eq!(log, expected);
    let rules = ScriptGuides(ran.test.clone()).guide().grpc_tls().unwrap();
    let found = rules.settings("own.example").unwrap();
    assert!(!found.authorities.is_empty() && found.identity.is_some(), "{found:?}");
    assert!(rules.settings("plan.example").is_none() && rules.settings("bad.example").is_none());
}
