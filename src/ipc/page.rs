//! Who calls: the page behind a command.

use tauri::Runtime;
use tauri::ipc::{CommandArg, CommandItem, InvokeError};

/// The page a command came from, by the labels of its webview and of the window around it.
///
/// An extractor of our own, so that no command is generic over Tauri's runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    pub(super) webview: String,
    pub(super) window: String,
}

impl<'de, R: Runtime> CommandArg<'de, R> for Page {
    fn from_command(command: CommandItem<'de, R>) -> Result<Self, InvokeError> {
        let webview = command.message.webview_ref();
        Ok(Self {
            webview: webview.label().to_owned(),
            window: webview.window().label().to_owned(),
        })
    }
}

/// A page is no argument that a caller gives.
#[cfg(feature = "bindings")]
impl specta::function::FunctionArg for Page {
    fn to_datatype(_types: &mut specta::Types) -> Option<specta::datatype::DataType> {
        None
    }
}
