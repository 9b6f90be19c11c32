//! The requests: `chain/requests.toml`, compiled in; those of HTTP/2 are in [`super::downgrade`].

use super::downgrade::{self, Downgrade};
use dialogue::http2::Spoken;
use dialogue::text;
use dialogue::text::Values;
use serde::Deserialize;
use units::quoted;

const TEXT: &str = include_str!("../../chain/requests.toml");

/// Where proxy and server may part, named as usual: who believes which length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DisagreementClass {
    /// Nobody can disagree: it shows that the two speak with each other.
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
    /// HTTP/2 has a length of its own; Content-Length says another.
    H2Cl,
    /// Transfer-Encoding, which HTTP/2 does not have.
    H2Te,
    /// Line ends within what is one field, or one part of the request line, in HTTP/2.
    H2LineEnd,
    /// What would be two words of the request line, or another target.
    H2RequestLine,
    /// Fields that HTTP/2 does not have, or has once.
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

/// A request that two may read differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainRequest {
    /// Tells it from the others.
    pub name: String,
    pub class: DisagreementClass,
    /// The text that says how it is to be read.
    pub reference: String,
    form: RequestForm,
}

/// How it is said.
#[derive(Clone, Debug, PartialEq, Eq)]
enum RequestForm {
    /// In the text of a message of HTTP/1.1.
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

/// Every request of HTTP/1.1, those first that nobody can misread.
///
/// # Errors
/// What is wrong in their file, which the tests exclude.
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

/// Every request of HTTP/2 or HTTP/3, whose connection speaks that.
///
/// # Errors
/// What is wrong in their file, which the tests exclude.
pub fn downgrades(spoken: Spoken) -> Result<Vec<ChainRequest>, String> {
    downgrade::read()?
        .into_iter()
        .map(|read| {
            let class = class_of(&read.pair)?;
            let (name, reference) = (read.name.clone(), read.reference.clone());
            let form = match spoken.is_http3() {
                true => RequestForm::Http3(Box::new(read)),
                false => RequestForm::Http2(Box::new(read)),
            };
            Ok(ChainRequest { name, class, reference, form })
        })
        .collect()
}

impl ChainRequest {
    /// Its bytes, with these field lines of ours: a message of HTTP/1.1, or what goes on one stream.
    ///
    /// # Errors
    /// What is wrong in its text, which the tests exclude.
    pub fn bytes(&self, values: &Values, ours: &str) -> Result<Vec<u8>, String> {
        match &self.form {
            RequestForm::Http1 { line, fields, content } => {
                message(line, fields, content, values, ours)
            }
            RequestForm::Http2(downgrade) => downgrade.frames(values, ours),
            RequestForm::Http3(downgrade) => downgrade.pieces(values, ours),
        }
    }

    /// What it is in HTTP/1.1, nothing odd in it: that with which an arrival is compared.
    ///
    /// # Errors
    /// As [`ChainRequest::bytes`].
    pub fn in_http1(&self, values: &Values, ours: &str) -> Result<Vec<u8>, String> {
        match &self.form {
            RequestForm::Http1 { .. } => self.bytes(values, ours),
            RequestForm::Http2(downgrade) | RequestForm::Http3(downgrade) => {
                downgrade.plain(values, ours)
            }
        }
    }

    /// It is said on a stream, of HTTP/2 or HTTP/3.
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
    // the fields of the user are among ours already
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
