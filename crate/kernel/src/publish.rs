//! Turns what cells print into Jupyter's output messages.

use std::sync::{Mutex, PoisonError};

use jupyter_protocol::{
    ClearOutput, DisplayData, ErrorOutput, ExecuteResult, ExecutionCount, JupyterMessage, Media,
    StreamContent, Transient, UpdateDisplayData,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc::UnboundedSender;

use crate::child::Stream;
use crate::explain::Failure;
use crate::output::Output;

/// The mime type of the library's requests to show, update or clear output.
const DISPLAY: &str = "application/vnd.candle-accelerate.display+json";

/// Sends output messages on behalf of the cell that runs.
pub struct Publisher {
    iopub: UnboundedSender<JupyterMessage>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The request that output belongs to. It stays after the cell has ended, for output of
    /// threads that the cell has left behind.
    parent: Option<JupyterMessage>,
    number: usize,
    allow_stdin: bool,
    /// Rich content that more mime types may follow: they are one output.
    pending: Map<String, Value>,
}

/// A request of the library.
#[derive(Deserialize)]
struct DisplayRequest {
    action: Action,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    wait: bool,
    #[serde(default)]
    data: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Display,
    Update,
    Clear,
}

impl Publisher {
    /// A publisher that sends to `iopub`.
    pub fn new(iopub: UnboundedSender<JupyterMessage>) -> Self {
        Self { iopub, state: Mutex::default() }
    }

    /// From now on output belongs to this request.
    pub fn start(&self, parent: &JupyterMessage, number: usize, allow_stdin: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.parent = Some(parent.clone());
        state.number = number;
        state.allow_stdin = allow_stdin;
    }

    /// The request that may be asked for input, if it allows that.
    pub fn stdin_parent(&self) -> Option<JupyterMessage> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.parent.clone().filter(|_| state.allow_stdin)
    }

    /// Sends a piece of output.
    pub fn output(&self, stream: Stream, output: Output) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match output {
            Output::Text(text) => {
                self.flush(&mut state, false);
                let content = match stream {
                    Stream::Out => StreamContent::stdout(&text),
                    Stream::Err => StreamContent::stderr(&text),
                };
                self.send(&state, content);
            }
            Output::Content { mime, body } if mime == DISPLAY => {
                self.flush(&mut state, false);
                match serde_json::from_str(&body) {
                    Ok(request) => self.display(&state, request),
                    Err(error) => self.send(
                        &state,
                        StreamContent::stderr(&format!("unreadable display request: {error}\n")),
                    ),
                }
            }
            Output::Content { mime, body } => {
                if state.pending.contains_key(&mime) {
                    self.flush(&mut state, false);
                }
                let value = match mime.ends_with("json") {
                    true => serde_json::from_str(&body).unwrap_or(Value::String(body)),
                    false => Value::String(body),
                };
                state.pending.insert(mime, value);
            }
            Output::End if stream == Stream::Out => self.flush(&mut state, true),
            Output::End => {}
        }
    }

    /// Sends text that the kernel itself has to say.
    pub fn text(&self, stream: Stream, text: &str) {
        if !text.is_empty() {
            self.output(stream, Output::Text(text.to_owned()));
        }
    }

    /// Sends an error.
    pub fn error(&self, failure: &Failure) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.flush(&mut state, false);
        self.send(
            &state,
            ErrorOutput {
                ename: failure.name.clone(),
                evalue: failure.message.clone(),
                traceback: failure.traceback.clone(),
            },
        );
    }

    /// Sends the collected rich content, as the cell's result if it is the last thing.
    fn flush(&self, state: &mut State, is_result: bool) {
        if state.pending.is_empty() {
            return;
        }
        let data = media(std::mem::take(&mut state.pending));
        if is_result {
            let execution_count = ExecutionCount::new(state.number);
            // Left out, it would be sent as null, which Jupyter's message format forbids.
            let transient = Some(Transient::default());
            let metadata = Map::new();
            self.send(state, ExecuteResult { execution_count, data, metadata, transient });
        } else {
            self.send(state, DisplayData::new(data));
        }
    }

    fn display(&self, state: &State, request: DisplayRequest) {
        match request.action {
            Action::Clear => self.send(state, ClearOutput { wait: request.wait }),
            Action::Display => {
                let transient = request.id.map(|id| Transient { display_id: Some(id) });
                let data = media(request.data);
                self.send(state, DisplayData { transient, ..DisplayData::new(data) });
            }
            Action::Update => {
                let id = request.id.unwrap_or_default();
                self.send(state, UpdateDisplayData::new(media(request.data), &id));
            }
        }
    }

    fn send(&self, state: &State, content: impl Into<jupyter_protocol::JupyterMessageContent>) {
        // Nobody listens any more when the kernel shuts down.
        let _ = self.iopub.send(JupyterMessage::new(content, state.parent.as_ref()));
    }
}

fn media(data: Map<String, Value>) -> Media {
    serde_json::from_value(Value::Object(data)).unwrap_or_default()
}
