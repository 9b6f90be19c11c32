//! The requests: `chain/requests.toml`, compiled in.

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
}

impl DisagreementClass {
    pub const ALL: [DisagreementClass; 10] = [
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
    line: String,
    fields: String,
    content: String,
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

/// Every request, those first that nobody can misread.
///
/// # Errors
/// What is wrong in their file, which the tests exclude.
pub fn requests() -> Result<Vec<ChainRequest>, String> {
    let read: RequestsText = toml::from_str(TEXT).map_err(|error| error.to_string())?;
    read.request.into_iter().map(request).collect()
}

fn request(read: RequestText) -> Result<ChainRequest, String> {
    let known = DisagreementClass::ALL.into_iter().find(|class| class.id() == read.pair);
    let class = known.ok_or_else(|| format!("{} is not a pair", quoted(&read.pair)))?;
    let RequestText { name, reference, line, fields, content, .. } = read;
    Ok(ChainRequest { name, class, reference, line, fields, content })
}

impl ChainRequest {
    /// Its bytes, with these field lines of ours.
    ///
    /// # Errors
    /// What is wrong in its text, which the tests exclude.
    pub fn bytes(&self, values: &Values, ours: &str) -> Result<Vec<u8>, String> {
        // the fields of the user are among ours already
        let values = &Values { fields: String::new(), ..values.clone() };
        let inner = format!("GET {} HTTP/1.1\r\nHost: {}\r\n{ours}\r\n", values.path, values.host);
        let size = format!("{:x}", inner.len());
        let (before, after) = match self.content.split_once("{inner}") {
            Some((before, after)) => (before.replace("{X}", &size), after),
            None => (self.content.clone(), ""),
        };
        let mut content = text::bytes(&before, values)?;
        let first = content.len();
        if self.content.contains("{inner}") {
            content.extend_from_slice(inner.as_bytes());
        }
        content.extend_from_slice(&text::bytes(after, values)?);
        let fields = self.fields.replace("{N}", &content.len().to_string());
        let fields = fields.replace("{K}", &first.to_string());
        let line = format!("{}\\r\\nHost: {{host}}\\r\\n", self.line);
        let mut all = text::bytes(&line, values)?;
        all.extend_from_slice(ours.as_bytes());
        all.extend_from_slice(&text::bytes(&fields, values)?);
        all.extend_from_slice(b"\r\n");
        all.extend_from_slice(&content);
        Ok(all)
    }
}
