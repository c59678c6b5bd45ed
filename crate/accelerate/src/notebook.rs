//! Live output in a notebook: show something, change it later, clear it, ask for input.
//!
//! The project's kernel shows each change at once. A stock evcxr kernel shows rich output when the
//! cell has ended, so there only the first version of something appears; in a terminal its plain
//! text does.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::{Error, Result};

/// Set by the project's kernel for the process that runs the cells.
const KERNEL_VARIABLE: &str = "CANDLE_ACCELERATE_KERNEL";

/// Set by evcxr for the process that runs the cells.
const EVCXR_VARIABLE: &str = "EVCXR_IS_RUNTIME";

/// The mime type of requests to the project's kernel.
const DISPLAY_MIME: &str = "application/vnd.candle-accelerate.display+json";

/// Where this program's output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frontend {
    /// The project's kernel: rich output, live.
    Live,
    /// A stock evcxr kernel: rich output at the end of the cell.
    Evcxr,
    /// A terminal.
    Terminal,
    /// A file or pipe.
    Plain,
}

impl Frontend {
    /// The one that this process writes to.
    pub fn current() -> Self {
        static CURRENT: OnceLock<Frontend> = OnceLock::new();
        *CURRENT.get_or_init(|| {
            let is_set = |name| std::env::var_os(name).is_some();
            if is_set(KERNEL_VARIABLE) {
                Self::Live
            } else if is_set(EVCXR_VARIABLE) {
                Self::Evcxr
            } else if io::stdout().is_terminal() {
                Self::Terminal
            } else {
                Self::Plain
            }
        })
    }
}

/// One thing to show, in one or several forms; the front end takes the richest that it knows.
///
/// ```
/// use candle_accelerate::notebook::{Content, display};
///
/// let bold = Content::plain("done").with("text/html", "<b>done</b>");
/// display(&bold)?;
/// # Ok::<(), candle_accelerate::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content(BTreeMap<String, String>);

impl Content {
    /// Plain text, which every front end can show.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::default().with("text/plain", text)
    }

    /// The same thing in another form, such as `text/html` or `image/svg+xml`.
    pub fn with(mut self, mime: impl Into<String>, body: impl Into<String>) -> Self {
        self.0.insert(mime.into(), body.into());
        self
    }

    /// The form of this mime type.
    pub fn get(&self, mime: &str) -> Option<&str> {
        self.0.get(mime).map(String::as_str)
    }

    /// Shows the content as the value of a cell's last expression: evcxr calls this.
    pub fn evcxr_display(&self) {
        // A closed stdout has no reader who could miss anything.
        let _ = self.write_evcxr(&mut io::stdout().lock());
    }

    fn write_evcxr(&self, out: &mut impl Write) -> io::Result<()> {
        for (mime, body) in &self.0 {
            writeln!(out, "EVCXR_BEGIN_CONTENT {mime}\n{body}\nEVCXR_END_CONTENT")?;
        }
        out.flush()
    }
}

/// Something that was shown and can be changed.
#[derive(Clone, Debug)]
pub struct Display {
    id: String,
}

impl Display {
    /// Shows `content` in place of what was there. Only the project's kernel can do that; others
    /// keep what they show.
    pub fn update(&self, content: &Content) -> Result<()> {
        match Frontend::current() {
            Frontend::Live => send(&Request::update(&self.id, content)),
            _ => Ok(()),
        }
    }
}

/// Shows `content` now. The handle changes it later.
pub fn display(content: &Content) -> Result<Display> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // Unique over kernel restarts too, since front ends keep what they have shown.
    let id = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    match Frontend::current() {
        Frontend::Live => send(&Request::display(&id, content))?,
        Frontend::Evcxr => content.write_evcxr(&mut io::stdout().lock()).map_err(output_error)?,
        Frontend::Terminal | Frontend::Plain => {
            if let Some(text) = content.get("text/plain") {
                writeln!(io::stdout().lock(), "{text}").map_err(output_error)?;
            }
        }
    }
    Ok(Display { id })
}

/// Removes the cell's output so far; with `wait`, when the next output arrives, which avoids
/// flicker. Other front ends than the project's kernel keep their output.
pub fn clear_output(wait: bool) -> Result<()> {
    match Frontend::current() {
        Frontend::Live => send(&Request { action: "clear", id: None, wait, data: None }),
        _ => Ok(()),
    }
}

/// Asks the person at the notebook, or at the terminal, for a line of text.
///
/// # Errors
/// The front end cannot ask (as when notebooks are executed in a batch), or the input has ended.
pub fn input(prompt: &str) -> Result<String> {
    ask(prompt, false)
}

/// Like [`input`], but a notebook hides what is typed.
pub fn password(prompt: &str) -> Result<String> {
    ask(prompt, true)
}

/// Asks the kernel: prompt, and whether to hide what is typed.
pub type InputReader = fn(&str, bool) -> Result<String, String>;

static INPUT_READER: OnceLock<InputReader> = OnceLock::new();

/// Tells the library how to ask the kernel. The process that runs the cells calls this once.
#[doc(hidden)]
pub fn set_input_reader(reader: InputReader) {
    // A second call would set the same function again.
    let _ = INPUT_READER.set(reader);
}

fn ask(prompt: &str, hidden: bool) -> Result<String> {
    if let Some(reader) = INPUT_READER.get() {
        return reader(prompt, hidden).map_err(|reason| Error::invalid("input", reason));
    }
    print!("{prompt}");
    io::stdout().flush().map_err(output_error)?;
    let mut line = String::new();
    match io::stdin().read_line(&mut line) {
        Ok(0) => Err(Error::invalid("input", "has ended: there is no line to read")),
        Ok(_) => Ok(line.trim_end_matches(['\r', '\n']).to_owned()),
        Err(source) => Err(Error::io("stdin", source)),
    }
}

#[derive(Serialize)]
struct Request<'a> {
    action: &'static str,
    id: Option<&'a str>,
    wait: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a BTreeMap<String, String>>,
}

impl<'a> Request<'a> {
    fn display(id: &'a str, content: &'a Content) -> Self {
        Self { action: "display", id: Some(id), wait: false, data: Some(&content.0) }
    }

    fn update(id: &'a str, content: &'a Content) -> Self {
        Self { action: "update", id: Some(id), wait: false, data: Some(&content.0) }
    }
}

fn send(request: &Request) -> Result<()> {
    let request = serde_json::to_string(request)
        .map_err(|error| Error::invalid("content", format!("cannot be sent: {error}")))?;
    let mut out = io::stdout().lock();
    writeln!(out, "EVCXR_BEGIN_CONTENT {DISPLAY_MIME}\n{request}\nEVCXR_END_CONTENT")
        .and_then(|()| out.flush())
        .map_err(output_error)
}

fn output_error(source: io::Error) -> Error {
    Error::io("stdout", source)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn rich_content_is_written_as_evcxr_reads_it() {
        let mut out = Vec::new();
        Content::plain("a\nb").with("text/html", "<p>").write_evcxr(&mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "EVCXR_BEGIN_CONTENT text/html\n<p>\nEVCXR_END_CONTENT\n\
             EVCXR_BEGIN_CONTENT text/plain\na\nb\nEVCXR_END_CONTENT\n"
        );
    }
}
