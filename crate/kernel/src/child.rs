//! The kernel's side of the process that runs the cells.

use std::ffi::CString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child as Process, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::library::Library;
use crate::output::{Output, Scanner};

/// The hidden subcommand with which the kernel starts itself as the child.
pub const SUBCOMMAND: &str = "run-cells";

/// Set for the child, so that the library knows what can show its live output.
pub const KERNEL_VARIABLE: &str = "CANDLE_ACCELERATE_KERNEL";

/// How long output may arrive after the cell that printed it has ended.
const OUTPUT_DELAY: Duration = Duration::from_secs(2);

/// Text that arrives within this time is sent as one message.
const COALESCE: Duration = Duration::from_millis(10);

/// Which of the two output streams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stream {
    /// stdout
    Out,
    /// stderr
    Err,
}

/// Takes what cells print.
pub type Sink = Arc<dyn Fn(Stream, Output) + Send + Sync>;

/// Asks the person at the notebook for a line: prompt, and whether to hide what is typed.
pub type Ask = Arc<dyn Fn(&str, bool) -> Result<String, String> + Send + Sync>;

/// The running process.
pub struct Child {
    process: Process,
    control: BufReader<UnixStream>,
    ask: Ask,
    ends: Receiver<()>,
}

/// What the child answered.
#[derive(Debug)]
pub struct Reply {
    /// `done`, `failed`, `panicked`, `missing` or `unloadable`.
    pub outcome: String,
    /// More about it.
    pub message: String,
    /// The variables that exist now.
    pub variables: Vec<String>,
}

impl Child {
    /// Starts the process.
    pub fn start(library: &Library, sink: &Sink, ask: &Ask) -> Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg(SUBCOMMAND)
            .arg(&library.dylib)
            .env(loader_path_variable(), std::env::join_paths(&library.loader_path)?)
            .env(KERNEL_VARIABLE, env!("CARGO_PKG_VERSION"))
            // candle would put a page of the kernel's own functions into each error.
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // SAFETY: only async-signal-safe system calls between fork and exec.
        unsafe {
            command.pre_exec(|| {
                // Not in the terminal's group: Ctrl-C there is for Jupyter to handle.
                libc::setpgid(0, 0);
                #[cfg(target_os = "linux")]
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let mut process =
            command.spawn().context("the process that runs the cells cannot be started")?;
        let (end, ends) = channel();
        let pipes = (process.stdout.take(), process.stderr.take());
        let (Some(stdout), Some(stderr)) = pipes else { bail!("no pipes to the child") };
        forward(stdout, Stream::Out, sink.clone(), end.clone())?;
        forward(stderr, Stream::Err, sink.clone(), end)?;
        Ok(Self { process, control: BufReader::new(ours), ask: ask.clone(), ends })
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Loads and runs a cell. `None`: the process has ended, and [`stop`](Self::stop) says how.
    pub fn run(&mut self, symbol: &str, object: &Path) -> Option<Reply> {
        self.request(&format!("run {symbol} {}", object.display()))
    }

    /// Forgets a variable. `None` as for [`run`](Self::run).
    pub fn forget(&mut self, name: &str) -> Option<Reply> {
        self.request(&format!("drop {name}"))
    }

    fn request(&mut self, request: &str) -> Option<Reply> {
        let reply = self.exchange(request);
        let deadline = Instant::now() + OUTPUT_DELAY;
        for _ in [Stream::Out, Stream::Err] {
            // An error means that the stream is closed or was redirected: nothing more will come.
            let _ = self.ends.recv_timeout(deadline.saturating_duration_since(Instant::now()));
        }
        reply
    }

    /// Sends a request and answers the child's questions until it replies.
    fn exchange(&mut self, request: &str) -> Option<Reply> {
        writeln!(self.control.get_mut(), "{request}").ok()?;
        loop {
            let mut line = String::new();
            if self.control.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let Some(question) = line.trim_end_matches('\n').strip_prefix("input\t") else {
                return parse_reply(&line);
            };
            let (prompt, hidden) = question.split_once('\t').unwrap_or((question, "false"));
            let answer = match (self.ask)(&unescape(prompt), hidden == "true") {
                Ok(text) => format!("ok {}", text.replace('\n', " ")),
                Err(reason) => format!("error {reason}"),
            };
            writeln!(self.control.get_mut(), "{answer}").ok()?;
        }
    }

    /// Ends the process, if it has not ended by itself.
    pub fn stop(&mut self) -> ExitStatus {
        let patience = Instant::now() + Duration::from_millis(200);
        loop {
            match self.process.try_wait() {
                Ok(Some(status)) => return status,
                Ok(None) if Instant::now() < patience => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                _ => break,
            }
        }
        // It has just ended by itself if it cannot be killed.
        let _ = self.process.kill();
        self.process.wait().unwrap_or_else(|_| ExitStatus::from_raw(libc::SIGKILL))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn loader_path_variable() -> &'static str {
    if cfg!(target_os = "macos") { "DYLD_LIBRARY_PATH" } else { "LD_LIBRARY_PATH" }
}

fn parse_reply(line: &str) -> Option<Reply> {
    let mut fields = line.trim_end_matches('\n').split('\t');
    Some(Reply {
        outcome: fields.next()?.to_owned(),
        message: unescape(fields.next()?),
        variables: fields.next()?.split_whitespace().map(str::to_owned).collect(),
    })
}

/// Undoes `str::escape_default`.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match rest.next() {
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some('r') => plain.push('\r'),
            Some('u') => {
                let digits: String =
                    rest.by_ref().take_while(|c| *c != '}').filter(|c| *c != '{').collect();
                let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                plain.push(code.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    plain
}

/// Sends what arrives on a pipe to the sink, from a thread of its own.
fn forward(
    mut pipe: impl Read + Send + 'static,
    stream: Stream,
    sink: Sink,
    end: Sender<()>,
) -> Result<()> {
    std::thread::Builder::new().name(format!("read-{stream:?}")).spawn(move || {
        let mut scanner = Scanner::default();
        let mut bytes = vec![0; 64 * 1024];
        let mut last = Instant::now() - COALESCE;
        loop {
            let outputs = match pipe.read(&mut bytes) {
                Ok(0) => break,
                Ok(length) => scanner.feed(&bytes[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let at_end = outputs.contains(&Output::End);
            for output in outputs {
                let is_end = output == Output::End;
                sink(stream, output);
                if is_end {
                    // The kernel has stopped waiting if this fails.
                    let _ = end.send(());
                }
            }
            // Many short lines become few messages: let the pipe fill up a little.
            if !at_end && last.elapsed() < COALESCE {
                std::thread::sleep(COALESCE);
            }
            last = Instant::now();
        }
        for output in scanner.finish() {
            sink(stream, output);
        }
    })?;
    Ok(())
}

/// The child's main function: hands over to the notebook library.
pub fn main(dylib: &Path) -> Result<i32> {
    let path = CString::new(dylib.as_os_str().as_bytes())?;
    // SAFETY: loading the library runs only its own initialisers, and the symbol has this type in
    // every version of the library, which is built from the same workspace as this kernel.
    let main = unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL);
        if library.is_null() {
            bail!("{} cannot be loaded; run 'candle-accelerate-kernel doctor'", dylib.display());
        }
        let symbol = libc::dlsym(library, c"candle_accelerate_child_main".as_ptr());
        if symbol.is_null() {
            bail!("{} is of another version; run 'cargo xtask setup'", dylib.display());
        }
        std::mem::transmute::<*mut libc::c_void, extern "C" fn() -> libc::c_int>(symbol)
    };
    Ok(main())
}

/// Says in words how the process ended.
pub fn describe(status: ExitStatus) -> String {
    if let Some(code) = status.code() {
        return format!("the cell ended its process with exit code {code}");
    }
    match status.signal() {
        Some(libc::SIGKILL) => "the cell's process was killed; if nobody did that, the system was \
            out of memory: use a smaller batch or model"
            .to_owned(),
        Some(libc::SIGABRT) => {
            "the cell aborted its process (abort, stack overflow or a panic in a destructor)"
                .to_owned()
        }
        Some(libc::SIGSEGV) => "the cell's process crashed (invalid memory access)".to_owned(),
        Some(signal) => format!("the cell's process was ended by signal {signal}"),
        None => "the cell's process ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_escape() {
        let message = "line\n\t'quote' \"ä\" \\ \u{1f525}";
        assert_eq!(unescape(&message.escape_default().to_string()), message);
    }
}
