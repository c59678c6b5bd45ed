//! The process that runs a notebook's cells.
//!
//! The kernel starts itself again as this child, which loads this shared object and calls
//! [`candle_accelerate_child_main`]. It lives here and not in the kernel's binary so that it
//! shares the standard library, and with it stdout's buffer, with the cells.
//!
//! Requests arrive as lines on the socket that is the child's stdin at the start:
//! `run SYMBOL PATH` loads a cell's shared object and runs it, `drop NAME` forgets a variable.
//! Each is answered by one line: the outcome, the message (escaped), the names of the variables.
//! A cell that asks for input sends `input`, the prompt (escaped) and whether to hide what is typed,
//! and reads one line: `ok` or `error`, and the text.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use candle_accelerate::{interrupt, notebook};

use crate::cell::{Outcome, Variables};

/// Printed on stdout and stderr after each cell, so that the kernel knows where its output ends.
const END_OF_OUTPUT: &str = "\x1eCANDLE_ACCELERATE_END_OF_OUTPUT\n";

/// How long text without a newline may wait in stdout's buffer.
const FLUSH_INTERVAL: Duration = Duration::from_millis(50);

/// The child's main function: answers requests until the kernel closes the socket.
#[unsafe(no_mangle)]
pub extern "C" fn candle_accelerate_child_main() -> c_int {
    match serve() {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("the process that runs the cells lost its connection to the kernel: {error}");
            1
        }
    }
}

thread_local! {
    /// The last panic of the thread that runs cells: message, file, line and column.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps a cell's panic for the kernel, which shows it at its place in the cell. Panics of other
/// threads are printed as usual.
fn install_panic_hook() {
    let cells = std::thread::current().id();
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().id() != cells {
            return print(info);
        }
        let message = info.payload_as_str().unwrap_or("panic without a message");
        let (file, line, column) =
            info.location().map_or(("", 0, 0), |at| (at.file(), at.line(), at.column()));
        PANIC.set(format!("{message}\u{1f}{file}\u{1f}{line}\u{1f}{column}"));
    }));
}

fn serve() -> io::Result<()> {
    let socket = take_control_socket()?;
    install_panic_hook();
    interrupt::install_handler()?;
    std::thread::Builder::new().name("flush-stdout".into()).spawn(|| {
        loop {
            std::thread::sleep(FLUSH_INTERVAL);
            // A closed stdout means that the kernel is gone; the main thread notices that too.
            let _ = io::stdout().flush();
        }
    })?;

    let mut variables = Variables::new();
    let mut replies = socket.try_clone()?;
    CONTROL.set(Some(BufReader::new(socket)));
    notebook::set_input_reader(read_input);
    while let Some(line) = read_line()? {
        let mut words = line.splitn(3, ' ');
        let outcome = match (words.next(), words.next(), words.next()) {
            (Some("run"), Some(symbol), Some(path)) => {
                interrupt::clear();
                run_cell(symbol, Path::new(path), &mut variables)
                    .unwrap_or_else(|message| Reply::new("unloadable", message))
            }
            (Some("drop"), Some(name), None) => {
                variables.remove(name);
                Reply::new("done", String::new())
            }
            _ => Reply::new("unloadable", format!("unknown request '{line}'")),
        };
        end_output()?;
        writeln!(
            replies,
            "{}\t{}\t{}",
            outcome.kind,
            outcome.message.escape_default(),
            variables.names().join(" ")
        )?;
    }
    Ok(())
}

thread_local! {
    /// The socket, on the thread that runs the cells.
    static CONTROL: RefCell<Option<BufReader<UnixStream>>> = const { RefCell::new(None) };
}

/// The next line from the kernel; `None` when it has closed the socket.
fn read_line() -> io::Result<Option<String>> {
    CONTROL.with_borrow_mut(|control| {
        let mut line = String::new();
        let Some(control) = control else { return Ok(None) };
        let length = control.read_line(&mut line)?;
        Ok((length > 0).then(|| line.trim_end_matches('\n').to_owned()))
    })
}

/// Asks the kernel, which asks the person at the notebook.
fn read_input(prompt: &str, hidden: bool) -> Result<String, String> {
    let asked = CONTROL.with_borrow_mut(|control| match control {
        Some(control) => {
            writeln!(control.get_mut(), "input\t{}\t{hidden}", prompt.escape_default())
        }
        None => Err(io::Error::other("only the thread that runs the cell can ask for input")),
    });
    let answer = asked.and_then(|()| read_line()).map_err(|error| error.to_string())?;
    match answer.as_deref().and_then(|line| line.split_once(' ')) {
        Some(("ok", text)) => Ok(text.to_owned()),
        Some((_, reason)) => Err(reason.to_owned()),
        None => Err("the kernel has closed the connection".to_owned()),
    }
}

struct Reply {
    kind: &'static str,
    message: String,
}

impl Reply {
    fn new(kind: &'static str, message: String) -> Self {
        Self { kind, message }
    }
}

/// Keeps the control socket for this module alone: cells get an empty stdin.
fn take_control_socket() -> io::Result<UnixStream> {
    let null = File::open("/dev/null")?;
    // SAFETY: plain system calls on descriptors that are open here: 0 is the socket the kernel
    // gave as stdin. The duplicate is fresh, so the stream becomes its only owner.
    unsafe {
        let socket: RawFd = libc::fcntl(0, libc::F_DUPFD_CLOEXEC, 3);
        if socket < 0 || libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&null), 0) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(UnixStream::from_raw_fd(socket))
    }
}

fn run_cell(symbol: &str, path: &Path, variables: &mut Variables) -> Result<Reply, String> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    let symbol = CString::new(symbol).map_err(|error| error.to_string())?;
    // SAFETY: the kernel compiled this object against this very library, with the symbol having
    // exactly this type. The object is never closed, because variables may hold its functions.
    let outcome = unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if library.is_null() {
            return Err(last_loader_error(libc::dlerror()));
        }
        let function = libc::dlsym(library, symbol.as_ptr());
        if function.is_null() {
            return Err(last_loader_error(libc::dlerror()));
        }
        let function: fn(&mut Variables) -> Outcome =
            std::mem::transmute::<*mut c_void, _>(function);
        function(variables)
    };
    Ok(match outcome {
        Outcome::Done => Reply::new("done", String::new()),
        Outcome::Failed(message) => Reply::new("failed", message),
        Outcome::Panicked => Reply::new("panicked", PANIC.take()),
        Outcome::Missing(name) => Reply::new("missing", name.to_owned()),
    })
}

/// # Safety
/// `message` must come from `dlerror`, with no other loader call in between.
unsafe fn last_loader_error(message: *mut c_char) -> String {
    if message.is_null() {
        return "the loader gave no reason".to_owned();
    }
    // SAFETY: not null, and dlerror returns a C string that is valid until the next loader call.
    unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
}

fn end_output() -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(END_OF_OUTPUT.as_bytes())?;
    stdout.flush()?;
    io::stderr().lock().write_all(END_OF_OUTPUT.as_bytes())
}
