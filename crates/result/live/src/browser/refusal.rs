//! Refusal of a request: a status and a sentence, as a page.

use crate::browser::pages;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use store::StoreError;

#[derive(Clone, Debug)]
pub(crate) struct HttpRefusal {
    pub(crate) status: StatusCode,
    pub(crate) text: String,
}

impl HttpRefusal {
    pub(crate) fn new(status: StatusCode, text: impl Into<String>) -> HttpRefusal {
        HttpRefusal { status, text: text.into() }
    }
}

impl From<StoreError> for HttpRefusal {
    fn from(error: StoreError) -> HttpRefusal {
        let status = match &error {
            StoreError::Unknown { .. } | StoreError::Missing(_) => StatusCode::NOT_FOUND,
            StoreError::BadTag { .. } => StatusCode::BAD_REQUEST,
            StoreError::Running(_) => StatusCode::CONFLICT,
            StoreError::Locked(_) => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        HttpRefusal::new(status, error.to_string())
    }
}

impl IntoResponse for HttpRefusal {
    fn into_response(self) -> Response {
        (self.status, Html(pages::refusal(&self).into_string())).into_response()
    }
}
