//! The HTTP/1.1 requests: `chain/requests.toml`, compiled in. Those of HTTP/2 are in
//! [`super::downgrade`].

use super::downgrade::{self, Downgrade};
use dialogue::http2::Protocol;
use dialogue::text;
use dialogue::text::Values;
use serde::Deserialize;
use units::quoted;

const TEXT: &str = include_str!("../../chain/requests.toml");

/// Class of disagreement, with the usual name: which length each side uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DisagreementClass {
    /// No disagreement is possible: shows that the two can communicate.
    Control,
    ClTe,
    TeCl,
    TeTe,
    ZeroCl,
    ClZero,
    Numbers,
    ChunkExtension,
    BareLf,
    Trailers,
    /// HTTP/2 frames the content; Content-Length differs.
    H2Cl,
    /// Transfer-Encoding, which does not exist in HTTP/2.
    H2Te,
    /// CR LF inside an HTTP/2 field or pseudo-header field.
    H2LineEnd,
    /// Bytes that would form an extra word of the request line, or another target.
    H2RequestLine,
    /// Fields that are invalid in HTTP/2, or repeated.
    H2Fields,
}

impl DisagreementClass {
    pub const ALL: [DisagreementClass; 15] = [
        DisagreementClass::Control,
        DisagreementClass::ClTe,
        DisagreementClass::TeCl,
        DisagreementClass::TeTe,
        DisagreementClass::ZeroCl,
        DisagreementClass::ClZero,
        DisagreementClass::Numbers,
        DisagreementClass::ChunkExtension,
        DisagreementClass::BareLf,
        DisagreementClass::Trailers,
        DisagreementClass::H2Cl,
        DisagreementClass::H2Te,
        DisagreementClass::H2LineEnd,
        DisagreementClass::H2RequestLine,
        DisagreementClass::H2Fields,
    ];

    pub fn id(self) -> &'static str {
        match self {
            DisagreementClass::Control => "control",
            DisagreementClass::ClTe => "CL.TE",
            DisagreementClass::TeCl => "TE.CL",
            DisagreementClass::TeTe => "TE.TE",
            DisagreementClass::ZeroCl => "0.CL",
            DisagreementClass::ClZero => "CL.0",
            DisagreementClass::Numbers => "numbers",
            DisagreementClass::ChunkExtension => "chunk extension",
            DisagreementClass::BareLf => "bare LF",
            DisagreementClass::Trailers => "trailers",
            DisagreementClass::H2Cl => "H2.CL",
            DisagreementClass::H2Te => "H2.TE",
            DisagreementClass::H2LineEnd => "H2 line end",
            DisagreementClass::H2RequestLine => "H2 request line",
            DisagreementClass::H2Fields => "H2 fields",
        }
    }
}

/// A request that proxy and server may interpret differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainRequest {
    /// Unique among the requests.
    pub name: String,
    pub class: DisagreementClass,
    /// The specification that defines its meaning.
    pub reference: String,
    form: RequestForm,
}

/// Form of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum RequestForm {
    /// The text of an HTTP/1.1 message.
    Http1 {
        line: String,
        fields: String,
        content: String,
    },
    Http2(Box<Downgrade>),
    /// The same over QUIC.
    Http3(Box<Downgrade>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestsText {
    request: Vec<RequestText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestText {
    name: String,
    pair: String,
    #[serde(rename = "ref")]
    reference: String,
    #[serde(default = "post")]
    line: String,
    fields: String,
    content: String,
}

fn post() -> String {
    "POST {post} HTTP/1.1".to_owned()
}

/// Returns all HTTP/1.1 requests, the unambiguous ones first.
///
/// # Errors
/// Fails for an error in their file, which the tests rule out.
pub fn requests() -> Result<Vec<ChainRequest>, String> {
    let read: RequestsText = toml::from_str(TEXT).map_err(|error| error.to_string())?;
    read.request.into_iter().map(request).collect()
}

fn request(read: RequestText) -> Result<ChainRequest, String> {
    let class = class_of(&read.pair)?;
    let RequestText { name, reference, line, fields, content, .. } = read;
    Ok(ChainRequest { name, class, reference, form: RequestForm::Http1 { line, fields, content } })
}

fn class_of(pair: &str) -> Result<DisagreementClass, String> {
    let known = DisagreementClass::ALL.into_iter().find(|class| class.id() == pair);
    known.ok_or_else(|| format!("{} is not a pair", quoted(pair)))
}

/// Returns all requests for an HTTP/2 or HTTP/3 connection.
///
/// # Errors
/// Fails for an error in their file, which the tests rule out.
pub fn downgrades(protocol: Protocol) -> Result<Vec<ChainRequest>, String> {
    downgrade::read()?
        .into_iter()
        .map(|read| {
            let class = class_of(&read.pair)?;
            let (name, reference) = (read.name.clone(), read.reference.clone());
            let form = match protocol.is_http3() {
                true => RequestForm::Http3(Box::new(read)),
                false => RequestForm::Http2(Box::new(read)),
            };
            Ok(ChainRequest { name, class, reference, form })
        })
        .collect()
}

impl ChainRequest {
    /// Returns its bytes with our field lines: an HTTP/1.1 message, or the content of one stream.
    ///
    /// # Errors
    /// Fails for an error in its text, which the tests rule out.
    pub fn bytes(&self, values: &Values, ours: &str) -> Result<Vec<u8>, String> {
        match &self.form {
            RequestForm::Http1 { line, fields, content } => {
                message(line, fields, content, values, ours)
            }
            RequestForm::Http2(downgrade) => downgrade.frames(values, ours),
            RequestForm::Http3(downgrade) => downgrade.pieces(values, ours),
        }
    }

    /// Returns its regular HTTP/1.1 form, with which an arrival is compared.
    ///
    /// # Errors
    /// Fails like [`ChainRequest::bytes`].
    pub fn in_http1(&self, values: &Values, ours: &str) -> Result<Vec<u8>, String> {
        match &self.form {
            RequestForm::Http1 { .. } => self.bytes(values, ours),
            RequestForm::Http2(downgrade) | RequestForm::Http3(downgrade) => {
                downgrade.plain(values, ours)
            }
        }
    }

    /// Returns whether it is sent on an HTTP/2 or HTTP/3 stream.
    pub fn has_frames(&self) -> bool {
        !matches!(self.form, RequestForm::Http1 { .. })
    }
}

fn message(
    line: &str,
    fields: &str,
    content: &str,
    values: &Values,
    ours: &str,
) -> Result<Vec<u8>, String> {
    // the user's fields are already among ours
    let values = &Values { fields: String::new(), ..values.clone() };
    let inner = format!("GET {} HTTP/1.1\r\nHost: {}\r\n{ours}\r\n", values.path, values.host);
    let size = format!("{:x}", inner.len());
    let (before, after) = match content.split_once("{inner}") {
        Some((before, after)) => (before.replace("{X}", &size), after),
        None => (content.to_owned(), ""),
    };
    let mut body = text::bytes(&before, values)?;
    let first = body.len();
    if content.contains("{inner}") {
        body.extend_from_slice(inner.as_bytes());
    }
    body.extend_from_slice(&text::bytes(after, values)?);
    let fields = fields.replace("{N}", &body.len().to_string());
    let fields = fields.replace("{K}", &first.to_string());
    let line = format!("{line}\\r\\nHost: {{host}}\\r\\n");
    let mut all = text::bytes(&line, values)?;
    all.extend_from_slice(ours.as_bytes());
    all.extend_from_slice(&text::bytes(&fields, values)?);
    all.extend_from_slice(b"\r\n");
    all.extend_from_slice(&body);
    Ok(all)
}
