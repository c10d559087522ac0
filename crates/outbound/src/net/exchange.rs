//! A plain call: a request out, the whole answer back. Over a kept line where there may be one.

use super::line::{Cut, Lines, Target};
use super::{AGENT, Net, Outgoing, address, origin};
use crate::client::error::ClientError;
use bytes::Bytes;
use http::header::{ACCEPT, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use http_body_util::Full;
use reqwest::Response;
use std::sync::Arc;
use std::time::Duration;

/// An answer that came in one piece.
pub struct Received {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

/// The lines a call may take, and where they lead.
type Way<'a> = (&'a Arc<Lines>, Arc<Target>);

/// A header as it is sent.
pub fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), ClientError> {
    let sent = HeaderName::try_from(name)
        .map_err(|_| ClientError::Setting(format!("'{name}' cannot be the name of a header")))?;
    let value = HeaderValue::try_from(value)
        .map_err(|_| ClientError::Setting(format!("the value of '{name}' cannot stand in a header")))?;
    Ok((sent, value))
}

impl Net {
    /// Sends, and reads all that is answered; `patience` bounds the wait for the answer's head.
    pub async fn exchange(&self, outgoing: Outgoing, patience: Option<Duration>) -> Result<Received, ClientError> {
        let Some((lines, target)) = self.target(&outgoing)? else {
            let response = Box::pin(self.send(outgoing, patience)).await?;
            return Box::pin(self.received(response)).await;
        };
        let mut request = Request::new(Full::new(outgoing.body.map(Bytes::from).unwrap_or_default()));
        (*request.method_mut(), *request.uri_mut()) = (outgoing.method, target.uri.clone());
        let headers = request.headers_mut();
        headers.reserve(outgoing.headers.len() + 3);
        headers.insert(HOST, target.host.clone());
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        for (name, value) in &outgoing.headers {
            let (name, value) = header(name, value)?;
            headers.append(name, value);
        }
        let called = lines.call(&target.place, request, &self.limits, patience).await;
        let whole = called.map_err(|cut| self.cut(cut, &outgoing.url, patience))?;
        Ok(Received { status: whole.status, headers: whole.headers, text: self.checked(whole.body)? })
    }

    /// All of an answer that has begun.
    pub async fn received(&self, mut response: Response) -> Result<Received, ClientError> {
        let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
        Ok(Received { status, headers, text: self.text(response).await? })
    }

    /// Where a line may lead: in the clear, without secrets in the address, and with nobody looking on.
    fn target(&self, outgoing: &Outgoing) -> Result<Option<Way<'_>>, ClientError> {
        let Some(lines) = self.lines.as_ref().filter(|_| self.observer.is_none()) else { return Ok(None) };
        if outgoing.grpc.is_some() || !outgoing.query.is_empty() || !outgoing.url.starts_with("http://") {
            return Ok(None);
        }
        if let Some(known) = lines.target(&outgoing.url) {
            return Ok(Some((lines, known)));
        }
        let url = address::check(&outgoing.url)?;
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else { return Ok(None) };
        let named = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let (Ok(named), Ok(uri)) =
            (HeaderValue::try_from(named), url[url::Position::BeforePath..url::Position::AfterQuery].parse())
        else {
            return Ok(None);
        };
        let place = format!("{host}:{port}").into();
        let target = Target { url: outgoing.url.clone(), place, host: named, uri };
        Ok(Some((lines, lines.know(target))))
    }

    fn cut(&self, cut: Cut, url: &str, patience: Option<Duration>) -> ClientError {
        let url = origin(url);
        match cut {
            Cut::Unconnected(problem) => ClientError::Unconnected { url, problem },
            Cut::Unanswered(problem) => ClientError::Unreachable { url, problem },
            Cut::Late => {
                let problem = format!("no answer within {} s", patience.unwrap_or_default().as_secs());
                ClientError::Unreachable { url, problem }
            }
            Cut::Broken(problem) => ClientError::Broken(problem),
            Cut::TooLarge => ClientError::TooLarge { limit: self.limits.bytes },
        }
    }
}
