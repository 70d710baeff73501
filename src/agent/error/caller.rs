//! The one shape of the errors that a caller's own code gives: tools, hooks, plugins, storages.

/// Defines an error with a message for people and the error it came from.
///
/// `?` turns an I/O error and a JSON error into one, with their words as the message.
macro_rules! caller_error {
    (
        $(#[$doc:meta])*
        $name:ident {
            $(#[$message_doc:meta])*
            message
            $(, $(#[$field_doc:meta])* $field:ident: $type:ty)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        #[non_exhaustive]
        pub struct $name {
            $(#[$message_doc])*
            pub message: String,
            $($(#[$field_doc])* pub $field: $type,)*
            source: Option<std::sync::Arc<dyn std::error::Error + Send + Sync>>,
        }

        impl $name {
            /// A failure with a message.
            pub fn new(message: impl std::fmt::Display) -> Self {
                Self {
                    message: message.to_string(),
                    $($field: Default::default(),)*
                    source: None,
                }
            }

            /// Adds the error behind it, for [`source`](std::error::Error::source).
            #[must_use]
            pub fn with_source(
                mut self,
                source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
            ) -> Self {
                self.source = Some(source.into().into());
                self
            }
        }

        /// The error behind it does not count.
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.message == other.message $(&& self.$field == other.$field)*
            }
        }

        impl Eq for $name {}

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.message)
            }
        }

        impl std::error::Error for $name {
            fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
                let source = self.source.as_deref()?;
                Some(source)
            }
        }

        impl From<std::io::Error> for $name {
            fn from(error: std::io::Error) -> Self {
                Self::new(&error).with_source(error)
            }
        }

        impl From<serde_json::Error> for $name {
            fn from(error: serde_json::Error) -> Self {
                Self::new(&error).with_source(error)
            }
        }
    };
}

pub(crate) use caller_error;
