//! The Jupyter side: answers requests until the front end asks to shut down.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc as blocking;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use jupyter_protocol::{
    CodeMirrorMode, CommInfoReply, CompleteReply, ConnectionInfo, ExecuteInput, ExecuteReply,
    ExecuteRequest, ExecutionCount, HelpLink, HistoryEntry, HistoryReply, HistoryRequest,
    InputRequest, InspectReply, InterruptReply, IsCompleteReply, IsCompleteReplyStatus,
    JupyterMessage, JupyterMessageContent, KernelInfoReply, LanguageInfo, Media, MediaType,
    ReplyError, ReplyStatus, ShutdownReply, Status,
};
use jupyter_zmq_client::{
    Connection, RuntimeError, create_kernel_control_connection, create_kernel_heartbeat_connection,
    create_kernel_iopub_connection, create_kernel_shell_connection, create_kernel_stdin_connection,
};
use tokio::sync::{mpsc, oneshot};

use crate::cell::{Completeness, completeness};
use crate::child::Stream;
use crate::complete::{Assistant, Documentation, Scope};
use crate::documentation;
use crate::explain::Failure;
use crate::index::Index;
use crate::interrupts::Interrupts;
use crate::library::Library;
use crate::notebook::{Notebook, Success};
use crate::publish::Publisher;

/// How long queued requests may take to arrive after a cell has failed, to be aborted with it.
const ABORT_WINDOW: Duration = Duration::from_millis(20);

/// How long the process that runs the cells may take to end.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(3);

/// Runs the kernel for the front end that wrote `connection_file`.
pub fn run(connection_file: &Path, manifest: &Path) -> Result<()> {
    let text = std::fs::read_to_string(connection_file)
        .with_context(|| format!("{} cannot be read", connection_file.display()))?;
    let connection: ConnectionInfo = serde_json::from_str(&text)
        .with_context(|| format!("{} is not a connection file", connection_file.display()))?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let result = runtime.block_on(serve(connection, manifest));
    runtime.shutdown_background();
    result
}

async fn serve(connection: ConnectionInfo, manifest: &Path) -> Result<()> {
    let session = uuid();
    let shell = create_kernel_shell_connection(&connection, &session).await?;
    let control = create_kernel_control_connection(&connection, &session).await?;
    let stdin = create_kernel_stdin_connection(&connection, &session).await?;
    let mut iopub = create_kernel_iopub_connection(&connection, &session).await?;
    let mut heartbeat = create_kernel_heartbeat_connection(&connection).await?;

    tokio::spawn(async move { while heartbeat.single_heartbeat().await.is_ok() {} });
    let (publish, mut published) = mpsc::unbounded_channel::<JupyterMessage>();
    let publishing = tokio::spawn(async move {
        while let Some(message) = published.recv().await {
            if let Err(error) = iopub.send(message).await {
                tracing::warn!("output was not sent: {error}");
            }
        }
    });

    let interrupts = Interrupts::default();
    let publisher = Arc::new(Publisher::new(publish.clone()));
    let (ask, questions) = mpsc::unbounded_channel();
    tokio::spawn(serve_stdin(stdin, questions, publisher.clone(), interrupts.clone()));
    let scope = Scope::default();
    let evaluator = Evaluator::start(manifest, &publisher, ask, &interrupts, &scope)?;
    let (end, ended) = oneshot::channel();
    // Without the index, completion still knows what the notebook defines.
    let index = Index::load(&documentation::index_path(manifest)).unwrap_or_default();
    let assistant = Assistant::new(index, scope);
    let answer = Answerer { iopub: publish, assistant, history: Vec::new(), count: 0 };
    tokio::spawn(serve_control(control, interrupts.clone(), end));
    tokio::select! {
        _ = ended => {}
        // Dropped when another branch is first: the evaluator ends once nobody can send it cells.
        _ = serve_shell(shell, answer, evaluator.jobs.clone(), publisher) => {}
        _ = parent_gone() => {}
        _ = terminated(&interrupts) => {}
    }
    evaluator.stop(&interrupts).await;
    // What was said last should still arrive.
    let _ = tokio::time::timeout(Duration::from_millis(200), publishing).await;
    Ok(())
}

fn uuid() -> String {
    JupyterMessage::new(Status::idle(), None).header.msg_id
}

/// Returns when the program that started the kernel has ended without shutting it down.
async fn parent_gone() {
    let parent = std::os::unix::process::parent_id();
    while std::os::unix::process::parent_id() == parent {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Returns at SIGTERM. SIGINT is an interrupt request, as for any Jupyter kernel.
async fn terminated(interrupts: &Interrupts) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    loop {
        tokio::select! {
            _ = terminate.recv() => return,
            _ = interrupt.recv() => interrupts.request(),
        }
    }
}

/// A cell to run, and where its outcome goes.
struct Job {
    number: usize,
    code: String,
    done: oneshot::Sender<Result<Success, Failure>>,
}

/// A cell asks the person at the notebook.
struct Question {
    prompt: String,
    hidden: bool,
    answer: oneshot::Sender<Result<String, String>>,
}

async fn serve_stdin(
    mut stdin: jupyter_zmq_client::KernelStdinConnection,
    mut questions: mpsc::UnboundedReceiver<Question>,
    publisher: Arc<Publisher>,
    interrupts: Interrupts,
) {
    while let Some(question) = questions.recv().await {
        let answer = match publisher.stdin_parent() {
            None => {
                Err("is not possible: the front end does not allow it for this cell".to_owned())
            }
            Some(parent) => {
                let request = InputRequest { prompt: question.prompt, password: question.hidden };
                match stdin.send(request.as_child_of(&parent)).await {
                    Err(error) => Err(format!("is not possible: {error}")),
                    Ok(()) => tokio::select! {
                        reply = read_answer(&mut stdin) => reply,
                        () = interrupts.requested() => Err("was interrupted".to_owned()),
                    },
                }
            }
        };
        // The cell has been stopped if nobody waits for the answer.
        let _ = question.answer.send(answer);
    }
}

async fn read_answer(
    stdin: &mut jupyter_zmq_client::KernelStdinConnection,
) -> Result<String, String> {
    loop {
        match stdin.read().await {
            Ok(message) => {
                if let JupyterMessageContent::InputReply(reply) = message.content {
                    return Ok(reply.value);
                }
            }
            Err(error) if is_closed(&error) => return Err(format!("has ended: {error}")),
            Err(error) => tracing::warn!("unreadable answer: {error}"),
        }
    }
}

/// The thread that owns the notebook.
struct Evaluator {
    jobs: blocking::Sender<Job>,
    ended: oneshot::Receiver<()>,
}

impl Evaluator {
    fn start(
        manifest: &Path,
        publisher: &Arc<Publisher>,
        questions: mpsc::UnboundedSender<Question>,
        interrupts: &Interrupts,
        scope: &Scope,
    ) -> Result<Self> {
        let (jobs, queue) = blocking::channel::<Job>();
        let (end, ended) = oneshot::channel();
        let (manifest, interrupts) = (manifest.to_path_buf(), interrupts.clone());
        let (publisher, scope) = (publisher.clone(), scope.clone());
        std::thread::Builder::new().name("cells".into()).spawn(move || {
            let sink = Arc::new(move |stream, output| publisher.output(stream, output));
            let ask = Arc::new(move |prompt: &str, hidden| {
                let (answer, answered) = oneshot::channel();
                let question = Question { prompt: prompt.to_owned(), hidden, answer };
                let closed = || "the front end is gone".to_owned();
                questions.send(question).map_err(|_| closed())?;
                answered.blocking_recv().map_err(|_| closed())?
            });
            let mut notebook = Library::load(&manifest)
                .and_then(|library| Notebook::new(library, sink, ask, interrupts, scope))
                .map_err(|error| Failure::new("KernelError", format!("{error:#}")));
            for job in queue {
                let outcome = match &mut notebook {
                    Ok(notebook) => notebook.execute(job.number, &job.code),
                    Err(failure) => Err(failure.clone()),
                };
                // Nobody waits any more when the kernel shuts down.
                let _ = job.done.send(outcome);
            }
            drop(notebook);
            let _ = end.send(());
        })?;
        Ok(Self { jobs, ended })
    }

    async fn stop(self, interrupts: &Interrupts) {
        drop(self.jobs);
        interrupts.kill();
        let _ = tokio::time::timeout(SHUTDOWN_PATIENCE, self.ended).await;
    }
}

async fn serve_control<S>(
    mut control: Connection<S>,
    interrupts: Interrupts,
    end: oneshot::Sender<()>,
) where
    S: zeromq_socket::Both,
{
    loop {
        let request = match control.read().await {
            Ok(request) => request,
            Err(error) if is_closed(&error) => return,
            Err(error) => {
                tracing::warn!("unreadable control request: {error}");
                continue;
            }
        };
        let reply = match &request.content {
            JupyterMessageContent::KernelInfoRequest(_) => kernel_info().as_child_of(&request),
            JupyterMessageContent::InterruptRequest(_) => {
                interrupts.request();
                InterruptReply::new().as_child_of(&request)
            }
            JupyterMessageContent::ShutdownRequest(shutdown) => {
                let reply = ShutdownReply { restart: shutdown.restart, ..ShutdownReply::default() };
                if let Err(error) = control.send(reply.as_child_of(&request)).await {
                    tracing::warn!("the answer to the shutdown request was not sent: {error}");
                }
                let _ = end.send(());
                return;
            }
            _ => continue,
        };
        if let Err(error) = control.send(reply).await {
            tracing::warn!("an answer was not sent: {error}");
        }
    }
}

/// What `serve_control` needs of its socket.
mod zeromq_socket {
    pub trait Both: zeromq::SocketSend + zeromq::SocketRecv + Send + 'static {}
    impl<T: zeromq::SocketSend + zeromq::SocketRecv + Send + 'static> Both for T {}
}

/// Whether no further message can arrive, as opposed to one that could not be read.
fn is_closed(error: &RuntimeError) -> bool {
    matches!(error, RuntimeError::ZmqError(_))
}

async fn serve_shell(
    shell: jupyter_zmq_client::KernelShellConnection,
    mut answer: Answerer,
    jobs: blocking::Sender<Job>,
    publisher: Arc<Publisher>,
) -> Result<()> {
    let (mut writer, mut reader) = shell.split();
    let (arrive, mut arrived) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            match reader.read().await {
                Ok(request) => {
                    if arrive.send(request).is_err() {
                        return;
                    }
                }
                Err(error) if is_closed(&error) => return,
                Err(error) => tracing::warn!("unreadable request: {error}"),
            }
        }
    });
    while let Some(request) = arrived.recv().await {
        answer.status(Status::busy(), &request);
        let mut queued = Vec::new();
        let reply = match &request.content {
            JupyterMessageContent::ExecuteRequest(execute) => {
                let reply = answer.execute(execute, &request, &jobs, &publisher).await?;
                if reply.status == ReplyStatus::Error && execute.stop_on_error {
                    // Run All has queued the cells that follow: they must not run. What is sent
                    // after the reply is meant to run, so the queue is taken before.
                    tokio::time::sleep(ABORT_WINDOW).await;
                    queued.extend(std::iter::from_fn(|| arrived.try_recv().ok()));
                }
                Some(reply.as_child_of(&request))
            }
            _ => answer.other(&request),
        };
        if let Some(reply) = reply {
            writer.send(reply).await?;
        }
        answer.status(Status::idle(), &request);
        for request in queued {
            answer.status(Status::busy(), &request);
            let reply = match &request.content {
                JupyterMessageContent::ExecuteRequest(_) => Some(answer.aborted(&request)),
                _ => answer.other(&request),
            };
            if let Some(reply) = reply {
                writer.send(reply).await?;
            }
            answer.status(Status::idle(), &request);
        }
    }
    Ok(())
}

/// Answers requests on the shell channel.
struct Answerer {
    iopub: mpsc::UnboundedSender<JupyterMessage>,
    assistant: Assistant,
    /// The sources of all cells that were run.
    history: Vec<(usize, String)>,
    count: usize,
}

impl Answerer {
    fn status(&self, status: Status, parent: &JupyterMessage) {
        // Nobody listens any more when the kernel shuts down.
        let _ = self.iopub.send(status.as_child_of(parent));
    }

    async fn execute(
        &mut self,
        execute: &ExecuteRequest,
        request: &JupyterMessage,
        jobs: &blocking::Sender<Job>,
        publisher: &Publisher,
    ) -> Result<ExecuteReply> {
        // Every cell gets a number of its own inside, also a silent one.
        self.count += 1;
        let number = self.count;
        if execute.store_history && !execute.silent {
            self.history.push((number, execute.code.clone()));
        }
        let execution_count = ExecutionCount::new(number);
        if !execute.silent {
            let input = ExecuteInput { code: execute.code.clone(), execution_count };
            let _ = self.iopub.send(input.as_child_of(request));
        }
        publisher.start(request, number, execute.allow_stdin);
        let (done, outcome) = oneshot::channel();
        jobs.send(Job { number, code: execute.code.clone(), done })
            .map_err(|_| anyhow!("the thread that runs the cells has ended"))?;
        let outcome =
            outcome.await.map_err(|_| anyhow!("the thread that runs the cells panicked"))?;
        match outcome {
            Ok(success) => {
                publisher.text(Stream::Out, success.text.as_deref().unwrap_or_default());
                publisher.text(Stream::Err, &success.warnings);
                Ok(ExecuteReply {
                    execution_count,
                    user_expressions: Some(Default::default()),
                    ..ExecuteReply::default()
                })
            }
            Err(failure) => {
                publisher.error(&failure);
                Ok(ExecuteReply {
                    status: ReplyStatus::Error,
                    execution_count,
                    error: Some(Box::new(ReplyError {
                        ename: failure.name,
                        evalue: failure.message,
                        traceback: failure.traceback,
                    })),
                    ..ExecuteReply::default()
                })
            }
        }
    }

    fn aborted(&self, request: &JupyterMessage) -> JupyterMessage {
        let execution_count = ExecutionCount::new(self.count);
        let status = ReplyStatus::Aborted;
        ExecuteReply { status, execution_count, ..ExecuteReply::default() }.as_child_of(request)
    }

    fn other(&mut self, request: &JupyterMessage) -> Option<JupyterMessage> {
        Some(match &request.content {
            JupyterMessageContent::KernelInfoRequest(_) => kernel_info().as_child_of(request),
            JupyterMessageContent::IsCompleteRequest(is_complete) => {
                let (status, indent) = match completeness(&is_complete.code) {
                    Completeness::Complete => (IsCompleteReplyStatus::Complete, ""),
                    Completeness::Incomplete => (IsCompleteReplyStatus::Incomplete, "    "),
                    Completeness::Invalid => (IsCompleteReplyStatus::Invalid, ""),
                };
                IsCompleteReply { status, indent: indent.to_owned() }.as_child_of(request)
            }
            JupyterMessageContent::HistoryRequest(history) => {
                HistoryReply { history: self.history(history), ..HistoryReply::default() }
                    .as_child_of(request)
            }
            JupyterMessageContent::CompleteRequest(complete) => {
                let cursor = byte_offset(&complete.code, complete.cursor_pos);
                let found = self.assistant.complete(&complete.code, cursor);
                CompleteReply {
                    matches: found.matches,
                    cursor_start: complete.code[..found.start].chars().count(),
                    cursor_end: complete.cursor_pos,
                    ..CompleteReply::default()
                }
                .as_child_of(request)
            }
            JupyterMessageContent::InspectRequest(inspect) => {
                let cursor = byte_offset(&inspect.code, inspect.cursor_pos);
                let found = self.assistant.inspect(&inspect.code, cursor);
                InspectReply {
                    found: found.is_some(),
                    data: found.map(|found| found.media()).unwrap_or_default(),
                    ..InspectReply::default()
                }
                .as_child_of(request)
            }
            JupyterMessageContent::CommInfoRequest(_) => {
                CommInfoReply { status: ReplyStatus::Ok, comms: Default::default(), error: None }
                    .as_child_of(request)
            }
            _ => return None,
        })
    }

    fn history(&self, request: &HistoryRequest) -> Vec<HistoryEntry> {
        let entry = |(number, code): &(usize, String), output| match output {
            true => HistoryEntry::InputOutput(0, *number, (code.clone(), String::new())),
            false => HistoryEntry::Input(0, *number, code.clone()),
        };
        let last = |n: &i32| self.history.len().saturating_sub(usize::try_from(*n).unwrap_or(0));
        match request {
            HistoryRequest::Tail { n, output, .. } => {
                self.history[last(n)..].iter().map(|cell| entry(cell, *output)).collect()
            }
            HistoryRequest::Range { start, stop, output, .. } => self
                .history
                .iter()
                .filter(|(number, _)| {
                    i32::try_from(*number).is_ok_and(|n| n >= *start && (*stop <= 0 || n < *stop))
                })
                .map(|cell| entry(cell, *output))
                .collect(),
            HistoryRequest::Search { pattern, output, n, unique, .. } => {
                let mut found: Vec<_> =
                    self.history.iter().filter(|(_, code)| glob(pattern, code)).collect();
                if *unique {
                    let mut seen = std::collections::HashSet::new();
                    found.retain(|(_, code)| seen.insert(code));
                }
                let skipped = found.len().saturating_sub(usize::try_from(*n).unwrap_or(0));
                let skipped = if *n > 0 { skipped } else { 0 };
                found[skipped..].iter().map(|cell| entry(cell, *output)).collect()
            }
        }
    }
}

/// Jupyter counts characters.
fn byte_offset(text: &str, characters: usize) -> usize {
    text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at)
}

impl Documentation {
    fn media(&self) -> Media {
        let docs = self.visible_docs();
        Media::new(vec![
            MediaType::Plain(format!("{}\n\n{docs}", self.signature)),
            MediaType::Markdown(format!("```rust\n{}\n```\n\n{docs}", self.signature)),
        ])
    }
}

/// Matches `*` and `?`, as the history request asks.
fn glob(pattern: &str, text: &str) -> bool {
    let pattern = regex::escape(pattern).replace(r"\*", "(?s:.*)").replace(r"\?", "(?s:.)");
    regex::Regex::new(&format!("^{pattern}$")).is_ok_and(|pattern| pattern.is_match(text))
}

fn kernel_info() -> KernelInfoReply {
    KernelInfoReply {
        status: ReplyStatus::Ok,
        protocol_version: "5.3".to_owned(),
        implementation: "candle-accelerate-kernel".to_owned(),
        implementation_version: env!("CARGO_PKG_VERSION").to_owned(),
        language_info: LanguageInfo {
            name: "rust".to_owned(),
            version: "2024".to_owned(),
            mimetype: Some("text/rust".to_owned()),
            file_extension: Some(".rs".to_owned()),
            pygments_lexer: Some("rust".to_owned()),
            codemirror_mode: Some(CodeMirrorMode::Simple("rust".to_owned())),
            nbconvert_exporter: None,
        },
        banner: "candle-accelerate: train in Rust. ':help' lists the kernel's commands.".to_owned(),
        help_links: vec![
            HelpLink { text: "candle".to_owned(), url: "https://docs.rs/candle-core".to_owned() },
            HelpLink {
                text: "The Rust book".to_owned(),
                url: "https://doc.rust-lang.org/book/".to_owned(),
            },
        ],
        debugger: false,
        error: None,
    }
}
