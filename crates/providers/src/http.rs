//! The way to a server: addresses, proxies, time limits.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Client, ClientBuilder, Response, Url, redirect};

use crate::endpoint::Auth;
use crate::keys::{Key, bare};
use crate::wire::Protocol;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(15);
/// How long a server may send nothing. The agent has a limit of its own that is shorter by
/// default; this one holds where it was turned off. Models on a slow computer read for minutes.
const SILENCE: Duration = Duration::from_secs(900);
/// How long an unused connection is kept: servers close theirs after a minute.
const IDLE: Duration = Duration::from_secs(45);
/// So much of a body that is no stream is read.
const BODY: usize = 64 << 20;

/// The clients: one for this computer, one for the rest of the world. Clones share them.
///
/// A client reads all certificates of the system, so each is made when it is first needed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Http(Arc<Clients>);

#[derive(Debug, Default)]
struct Clients {
    /// Trusted beside those of the system, in PEM form.
    certificates: Vec<Vec<u8>>,
    near: OnceLock<Result<Client, String>>,
    far: OnceLock<Result<Client, String>>,
}

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum Fault {
    /// There is no client: in words, why.
    Client(String),
    Request(reqwest::Error),
}

impl From<reqwest::Error> for Fault {
    fn from(error: reqwest::Error) -> Self {
        Self::Request(error)
    }
}

impl Http {
    pub(crate) fn new(certificates: Vec<Vec<u8>>) -> Self {
        Self(Arc::new(Clients {
            certificates,
            ..Clients::default()
        }))
    }

    pub(crate) fn certificates(&self) -> &[Vec<u8>] {
        &self.0.certificates
    }

    fn client(&self, url: &Url) -> Result<&Client, Fault> {
        let clients = &*self.0;
        let client = if is_near(url) {
            // A proxy cannot reach what is on this computer.
            clients
                .near
                .get_or_init(|| clients.build(Client::builder().no_proxy()))
        } else {
            clients.far.get_or_init(|| clients.build(Client::builder()))
        };
        client
            .as_ref()
            .map_err(|error| Fault::Client(error.clone()))
    }

    /// # Errors
    /// There is no client, or no answer within `limit`.
    pub(crate) async fn get(
        &self,
        url: Url,
        headers: HeaderMap,
        limit: Duration,
    ) -> Result<Response, Fault> {
        let request = self.client(&url)?.get(url).headers(headers);
        Ok(request.timeout(limit).send().await?)
    }

    /// Sends JSON; `limit` holds for the whole answer.
    ///
    /// # Errors
    /// There is no client, or no answer within `limit`.
    pub(crate) async fn post(
        &self,
        url: Url,
        headers: HeaderMap,
        body: String,
        limit: Option<Duration>,
    ) -> Result<Response, Fault> {
        let mut request = self.client(&url)?.post(url).headers(headers).body(body);
        if let Some(limit) = limit {
            request = request.timeout(limit);
        }
        Ok(request.send().await?)
    }
}

impl Clients {
    /// # Errors
    /// The system's TLS cannot be used, or a certificate cannot be read.
    fn build(&self, builder: ClientBuilder) -> Result<Client, String> {
        let mut builder = builder
            .user_agent(concat!("youyou-agent/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .pool_idle_timeout(IDLE)
            .tcp_nodelay(true)
            // A redirect would carry the key to another server, and a POST becomes a GET.
            .redirect(redirect::Policy::none());
        for pem in &self.certificates {
            let certificate = Certificate::from_pem(pem);
            let certificate =
                certificate.map_err(|error| format!("a certificate cannot be read: {error}"))?;
            builder = builder.add_root_certificate(certificate);
        }
        let built = builder.build();
        built.map_err(|error| format!("the HTTP client cannot be built: {error}"))
    }
}

/// The text of a body that is no stream, as far as it is worked on.
///
/// # Errors
/// The connection broke.
pub(crate) async fn text(response: &mut Response, mut bytes: Vec<u8>) -> reqwest::Result<String> {
    while let Some(chunk) = response.chunk().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > BODY {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn is_near(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host.ends_with(".localhost")
        || host
            .parse::<IpAddr>()
            .is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
}

/// Paths of calls that people copy with the address.
const CALLS: &[&str] = &[
    "/chat/completions",
    "/completions",
    "/responses",
    "/messages",
    "/models",
];

/// A base address out of what a person wrote; `None` where it is none.
pub(crate) fn base(written: &str, protocol: Protocol) -> Option<Url> {
    let written = bare(written);
    let with_scheme = if written.contains("://") {
        written.to_owned()
    } else {
        let plain = Url::parse(&format!("http://{written}")).ok()?;
        let scheme = if is_near(&plain) { "http" } else { "https" };
        format!("{scheme}://{written}")
    };
    let mut url = Url::parse(&with_scheme).ok()?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return None;
    }
    url.set_fragment(None);
    let mut path = url
        .path()
        .trim_end_matches('/')
        .trim_end_matches("%20")
        .to_owned();
    for call in CALLS {
        if let Some(base) = path.strip_suffix(call) {
            path = base.trim_end_matches('/').to_owned();
            break;
        }
    }
    let is_versioned = || {
        path.rsplit('/')
            .next()
            .is_some_and(|last| last.starts_with('v') && last.len() > 1)
    };
    if protocol == Protocol::Anthropic && !is_versioned() {
        path.push_str("/v1");
    }
    url.set_path(&path);
    Some(url)
}

/// The address of a call: `path` behind the base, with what the base has behind a `?`.
pub(crate) fn join(base: &Url, path: &str) -> Url {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    let query: Vec<&str> = [base.query().unwrap_or_default(), query]
        .into_iter()
        .filter(|query| !query.is_empty())
        .collect();
    url.set_query((!query.is_empty()).then(|| query.join("&")).as_deref());
    url
}

/// An address for people: without what may be secret in it.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    // Both fail for addresses without a host only.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.as_str().trim_end_matches('/').to_owned()
}

/// The headers of a request. `None` where a header of the app's own cannot be one.
pub(crate) fn headers(
    auth: Auth,
    key: Option<&Key>,
    own: &[(Arc<str>, Key)],
    wire: &[(&'static str, String)],
) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    for (name, value) in wire {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_str(value).ok()?,
        );
    }
    if let Some(key) = key {
        let (name, value) = match auth {
            Auth::Bearer => ("authorization", format!("Bearer {}", key.reveal())),
            Auth::Header(name) => (name, key.reveal().to_owned()),
        };
        headers.insert(HeaderName::from_static(name), secret(&value)?);
    }
    for (name, value) in own {
        headers.insert(HeaderName::try_from(&**name).ok()?, secret(value.reveal())?);
    }
    Some(headers)
}

fn secret(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_as_people_write_it() {
        for (written, meant) in [
            ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
            (" http://127.0.0.1:8000/v1 \n", "http://127.0.0.1:8000/v1"),
            ("\"http://h:1/v1\"", "http://h:1/v1"),
            ("http://127.0.0.1:8000/v1//", "http://127.0.0.1:8000/v1"),
            ("http://h/v1/chat/completions", "http://h/v1"),
            ("http://h/v1//chat/completions/", "http://h/v1"),
            ("http://h/v1/models", "http://h/v1"),
            ("localhost:8000/v1", "http://localhost:8000/v1"),
            ("api.example.com/v1", "https://api.example.com/v1"),
            ("http://[::1]:80/v1", "http://[::1]/v1"),
            ("http://u:p@h/v1?token=secret#x", "http://h/v1"),
            ("http://h", "http://h"),
        ] {
            let url = base(written, Protocol::Chat).unwrap();
            assert_eq!(shown(&url), meant, "{written:?}");
        }
        for none in ["", " ", "ftp://h/v1", "http://", "file:///etc/hosts"] {
            assert!(base(none, Protocol::Chat).is_none(), "{none:?}");
        }
    }

    #[test]
    fn anthropics_version_is_put_behind_an_address_without_one() {
        for written in ["https://h", "https://h/v1/messages", "https://h/v1/"] {
            let url = base(written, Protocol::Anthropic).unwrap();
            assert_eq!(url.as_str(), "https://h/v1", "{written}");
        }
        let url = base("https://h/anthropic", Protocol::Anthropic).unwrap();
        assert_eq!(url.as_str(), "https://h/anthropic/v1");
    }

    #[test]
    fn one_slash_joins_and_a_query_stays() {
        let url = base("http://h/v1/?api-version=1", Protocol::Chat).unwrap();
        assert_eq!(
            join(&url, "chat/completions").as_str(),
            "http://h/v1/chat/completions?api-version=1"
        );
        assert_eq!(
            join(&url, "m:go?alt=sse").as_str(),
            "http://h/v1/m:go?api-version=1&alt=sse"
        );
        let root = base("http://h", Protocol::Chat).unwrap();
        assert_eq!(join(&root, "models").as_str(), "http://h/models");
    }

    #[test]
    fn this_computer_is_reached_without_a_proxy() {
        for near in [
            "http://127.0.0.1:1",
            "http://localhost",
            "http://[::1]",
            "http://127.8.9.1",
            "http://a.localhost",
        ] {
            assert!(is_near(&Url::parse(near).unwrap()), "{near}");
        }
        for far in [
            "http://192.168.1.2",
            "https://localhost.example.com",
            "http://example.com",
        ] {
            assert!(!is_near(&Url::parse(far).unwrap()), "{far}");
        }
    }
}
