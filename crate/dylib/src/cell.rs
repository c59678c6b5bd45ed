//! What the code that the kernel generates around a cell calls.
//!
//! A cell is compiled to a function that takes its variables out of [`Variables`], runs the
//! student's code, and puts them back. Everything here is part of that contract between the kernel
//! and a cell, and of no use outside.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::panic::AssertUnwindSafe;

/// The values of a notebook's variables, by name.
#[derive(Default)]
pub struct Variables(HashMap<String, Box<dyn Any>>);

impl Variables {
    /// No variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a variable out; `None` if it is not there or is of another type.
    pub fn take<T: 'static>(&mut self, name: &str) -> Option<T> {
        let value = self.0.remove(name)?;
        match value.downcast() {
            Ok(value) => Some(*value),
            Err(value) => {
                self.0.insert(name.to_owned(), value);
                None
            }
        }
    }

    /// Puts a variable in.
    // The kernel reads the variable's type off the calls to this function in the cell's MIR, so it
    // must not be inlined away.
    #[inline(never)]
    pub fn keep<T: 'static>(&mut self, name: &'static str, value: T) {
        self.0.insert(name.to_owned(), Box::new(value));
    }

    /// Drops a variable.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// The names of all variables, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.0.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }
}

/// What `?` in a cell turns any error into: its message with all its causes.
pub struct CellError(String);

impl<E: fmt::Display> From<E> for CellError {
    fn from(error: E) -> Self {
        // The alternate form makes anyhow print the whole chain.
        Self(format!("{error:#}"))
    }
}

/// How a cell ended.
pub enum Outcome {
    /// The cell ran to its end.
    Done,
    /// A `?` returned early with this error.
    Failed(String),
    /// The code panicked; the panic hook has printed the message.
    Panicked,
    /// A variable that the cell uses is not there.
    Missing(&'static str),
}

/// Runs a cell's code. The variables it defined come back only when it ran to its end.
pub fn run(
    variables: &mut Variables,
    code: impl FnOnce() -> Result<Variables, CellError>,
) -> Outcome {
    match std::panic::catch_unwind(AssertUnwindSafe(code)) {
        Ok(Ok(defined)) => {
            variables.0.extend(defined.0);
            Outcome::Done
        }
        Ok(Err(CellError(message))) => Outcome::Failed(message),
        Err(_) => Outcome::Panicked,
    }
}

/// Shows the debug form of a cell's last expression.
pub fn show_debug<T: fmt::Debug + ?Sized>(value: &T) {
    // `()` is what a cell without a value ends with.
    if std::any::type_name::<T>() != "()" {
        println!("EVCXR_BEGIN_CONTENT text/plain\n{value:?}\nEVCXR_END_CONTENT");
    }
}
