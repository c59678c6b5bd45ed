//! The library's one error type.

use std::path::PathBuf;

/// What went wrong, where, and what to do about it.
///
/// ```
/// let error = candle_accelerate::Error::invalid("batch_size", "is 0; use at least 1");
/// assert_eq!(error.to_string(), "batch_size is 0; use at least 1");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of candle: a shape that does not fit, a dtype, a device.
    #[error(transparent)]
    Candle(#[from] candle_core::Error),

    /// An error that several places hold, such as that of a failed batch.
    #[error(transparent)]
    Shared(std::sync::Arc<Error>),

    /// A trainable parameter that `backward` did not reach.
    #[error(
        "backward gave no gradient to {} trainable parameter(s): {}. The loss does not depend on \
         them, or an operation without a backward cuts the graph; freeze them if that is meant",
        .names.len(), summary(.names)
    )]
    MissingGradient {
        /// The full names, in the model's order.
        names: Vec<String>,
    },

    /// Training was interrupted (Jupyter's stop button, SIGINT).
    #[error(
        "interrupted at step {step}; the model and every variable are kept, run the loop again to go on"
    )]
    Interrupted {
        /// How many batches had been started when the interrupt was noticed.
        step: usize,
    },

    /// A file that could not be read or written.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },

    /// A file that was read, but whose content is wrong.
    #[error("{}: {message}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it and what to do.
        message: String,
    },

    /// A value the caller gave that cannot be used.
    #[error("{what} {message}")]
    Invalid {
        /// The parameter, field or input.
        what: String,
        /// What is wrong with it and what to do.
        message: String,
    },
}

impl Error {
    /// A value the caller gave (`what`) that cannot be used, and why.
    pub fn invalid(what: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid { what: what.into(), message: message.into() }
    }

    /// A file that could not be read or written.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io { path: path.into(), source }
    }

    /// A file whose content is wrong.
    pub fn file(path: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self::File { path: path.into(), message: message.into() }
    }
}

/// The library's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The first names and how many more: an error line a person can read.
fn summary(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut text = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(", … and {} more", names.len() - SHOWN));
    }
    text
}
