//! The pages over HTTP/3, by a client of quinn and h3.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use hyper::body::{Buf, Bytes};
use quinn::crypto::rustls::QuicClientConfig;

use super::*;
use crate::Address;

/// A site and a client that trusts it.
struct OverQuic {
    site: Site,
    client: quinn::ClientConfig,
}

impl OverQuic {
    fn start(mut config: Config) -> OverQuic {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let name =
            format!("site-http3-{}-{:?}.pem", std::process::id(), std::thread::current().id());
        let file = std::env::temp_dir().join(name);
        std::fs::write(&file, made.cert.pem() + &made.signing_key.serialize_pem()).unwrap();
        config.parse_option("http3", file.to_str().unwrap()).unwrap();
        let site = Site::start(config);
        std::fs::remove_file(file).unwrap();
        OverQuic { site: site.unwrap(), client: trusting(made.cert.der().clone()) }
    }

    /// Status and body of the response to each request, one after the other on one connection.
    fn ask(&self, requests: &[(&str, &str, &str)]) -> Vec<(u16, String)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let asked = self.conversation(requests);
            tokio::time::timeout(PATIENCE, asked).await.expect("the site answers")
        })
    }

    async fn conversation(&self, requests: &[(&str, &str, &str)]) -> Vec<(u16, String)> {
        let Address::Tcp(address) = *self.site.address() else { panic!("a port") };
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let endpoint = quinn::Endpoint::client(here).unwrap();
        let connecting = endpoint.connect_with(self.client.clone(), address, "localhost").unwrap();
        let connection = h3_quinn::Connection::new(connecting.await.unwrap());
        let (_driver, mut client) = h3::client::new(connection).await.unwrap();
        let mut responses = Vec::new();
        for (method, path, body) in requests {
            let request = hyper::Request::builder().method(*method);
            let request = request.uri(format!("https://localhost{path}")).body(()).unwrap();
            let mut stream = client.send_request(request).await.unwrap();
            if !body.is_empty() {
                stream.send_data(Bytes::from((*body).to_owned())).await.unwrap();
            }
            stream.finish().await.unwrap();
            let status = stream.recv_response().await.unwrap().status().as_u16();
            let mut got = Vec::new();
            while let Some(mut data) = stream.recv_data().await.unwrap() {
                got.extend_from_slice(&data.copy_to_bytes(data.remaining()));
            }
            responses.push((status, String::from_utf8(got).unwrap()));
        }
        responses
    }
}

fn trusting(cert: rustls_pki_types::CertificateDer<'static>) -> quinn::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(cert).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()))
}

#[test]
fn bodies_that_are_held_are_bounded_over_http3() {
    let config = Config { held_max: 10, body_max: 12, ..config(&[]) };
    let over = OverQuic::start(config);
    let echo = |body| ("POST", "/echo", body);
    // what was held is given back with each response
    let got = over.ask(&[
        echo("ten bytes."),
        echo("ten bytes!"),
        echo("ten and one"),
        echo("ten again."),
    ]);
    let told = |status, body: &str| (status, body.to_owned());
    assert_eq!(
        got,
        [told(200, "ten bytes."), told(200, "ten bytes!"), told(503, ""), told(200, "ten again.")]
    );
    let served = over.site.stop().unwrap();
    assert_eq!(served.requests, 4);
    assert_eq!(served.responses.into_iter().collect::<Vec<(u16, u64)>>(), [(200, 3), (503, 1)]);
}
