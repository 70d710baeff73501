//! What windows may load: the app's own pages and nothing else.
//!
//! A window that showed a foreign page would be a browser without an address bar, and that
//! page would sit where the app's commands are. Links open in the user's browser instead.

use tauri::plugin::{Builder, TauriPlugin};
use tauri::{Manager, Runtime, Url};

/// Holds for every window, also for those that are opened while the app runs.
pub(crate) fn guard<R: Runtime>() -> TauriPlugin<R> {
    Builder::new("navigation")
        .on_navigation(|webview, url| {
            let config = webview.config();
            let own = is_own(
                url,
                config.build.dev_url.as_ref().filter(|_| tauri::is_dev()),
            );
            if !own {
                // The address may hold what the user wrote.
                tracing::warn!(scheme = url.scheme(), "a foreign page was not loaded");
            }
            own
        })
        .build()
}

/// Whether an address is a page of the app: as Linux and macOS name it, as Windows and Android
/// do, or that of the development server where one is used.
fn is_own(url: &Url, development: Option<&Url>) -> bool {
    let served = match url.scheme() {
        "tauri" => url.host_str() == Some("localhost"),
        "http" | "https" => url.host_str() == Some("tauri.localhost") && url.port().is_none(),
        _ => false,
    };
    served || development.is_some_and(|server| server.origin() == url.origin())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    #[test]
    fn windows_load_the_apps_own_pages_only() {
        let own = |url: &str, server: Option<&str>| {
            let server = server.map(|server| Url::parse(server).unwrap());
            is_own(&Url::parse(url).unwrap(), server.as_ref())
        };
        let pages = [
            "tauri://localhost",
            "tauri://localhost/ai-sdk.html",
            "http://tauri.localhost/index.html#session",
            "https://tauri.localhost/",
        ];
        let foreign = [
            "https://example.com/",
            "http://localhost:1420/",
            "http://tauri.localhost.example.com/",
            "http://tauri.localhost:8080/",
            "http://user@example.com/?tauri.localhost",
            "tauri://example.com/",
            "file:///etc/passwd",
            "data:text/html,hello",
            "about:blank",
            "javascript:alert(1)",
        ];
        for page in pages {
            assert!(own(page, None), "{page}");
        }
        for page in foreign {
            assert!(!own(page, None), "{page}");
        }
        let server = Some("http://localhost:1420");
        assert!(own("http://localhost:1420/ai-sdk.html", server));
        assert!(!own("http://localhost:1421/", server));
        assert!(!own("https://localhost:1420/", server));
        assert!(!own("data:text/html,hello", server));
    }
}
