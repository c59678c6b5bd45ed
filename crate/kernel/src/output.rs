//! Finds rich content in what a cell prints, without holding back ordinary text.

/// Starts a line that announces rich content; the mime type follows. This is evcxr's protocol, so
/// that what works in a stock evcxr kernel works here.
const BEGIN_CONTENT: &[u8] = b"EVCXR_BEGIN_CONTENT ";

/// Ends rich content.
const END_CONTENT: &[u8] = b"EVCXR_END_CONTENT\n";

/// What the child prints after each cell.
const END_OF_OUTPUT: &[u8] = b"\x1eCANDLE_ACCELERATE_END_OF_OUTPUT\n";

/// A piece of output.
#[derive(Debug, PartialEq)]
pub enum Output {
    /// Ordinary text.
    Text(String),
    /// Rich content.
    Content {
        /// Its mime type.
        mime: String,
        /// The content.
        body: String,
    },
    /// The cell has ended.
    End,
}

/// Splits a stream of bytes, in whatever pieces they arrive.
#[derive(Default)]
pub struct Scanner {
    buffer: Vec<u8>,
    content: Option<String>,
}

impl Scanner {
    /// Adds bytes and returns what is complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Output> {
        self.buffer.extend_from_slice(bytes);
        let mut found = Vec::new();
        while self.step(&mut found) {}
        found
    }

    /// The stream has ended: returns what was held back.
    pub fn finish(&mut self) -> Vec<Output> {
        let mut found = Vec::new();
        let rest = std::mem::take(&mut self.buffer);
        match self.content.take() {
            Some(mime) => found.push(Output::Content { mime, body: text(&rest) }),
            None => push_text(&mut found, &rest),
        }
        found
    }

    /// Takes one thing off the buffer; `false` when more bytes are needed.
    fn step(&mut self, found: &mut Vec<Output>) -> bool {
        let end = find(&self.buffer, END_OF_OUTPUT);
        if let Some(mime) = self.content.take() {
            match (find(&self.buffer, END_CONTENT), end) {
                (Some(at), end) if end.is_none_or(|end| at < end) => {
                    let body = text(&self.buffer[..at]);
                    let body = body.strip_suffix('\n').unwrap_or(&body).to_owned();
                    found.push(Output::Content { mime, body });
                    self.buffer.drain(..at + END_CONTENT.len());
                }
                // A panic while showing: the content is cut short.
                (_, Some(at)) => {
                    found.push(Output::Content { mime, body: text(&self.buffer[..at]) });
                    self.buffer.drain(..at);
                }
                _ => {
                    self.content = Some(mime);
                    return false;
                }
            }
            return true;
        }
        let begin = find(&self.buffer, BEGIN_CONTENT);
        match (begin, end) {
            (Some(at), end) if end.is_none_or(|end| at < end) => {
                let start = at + BEGIN_CONTENT.len();
                let Some(length) = self.buffer[start..].iter().position(|byte| *byte == b'\n')
                else {
                    return false;
                };
                push_text(found, &self.buffer[..at]);
                self.content = Some(text(&self.buffer[start..start + length]).trim().to_owned());
                self.buffer.drain(..start + length + 1);
                true
            }
            (_, Some(at)) => {
                push_text(found, &self.buffer[..at]);
                found.push(Output::End);
                self.buffer.drain(..at + END_OF_OUTPUT.len());
                true
            }
            _ => {
                let held = held_back(&self.buffer);
                let ready = self.buffer.len() - held;
                push_text(found, &self.buffer[..ready]);
                self.buffer.drain(..ready);
                false
            }
        }
    }
}

/// How many bytes at the end may be the start of a marker or of a character.
fn held_back(buffer: &[u8]) -> usize {
    let marker = |marker: &[u8]| {
        (1..marker.len().min(buffer.len() + 1))
            .rev()
            .find(|&length| buffer.ends_with(&marker[..length]))
            .unwrap_or(0)
    };
    let unfinished = match std::str::from_utf8(buffer) {
        Err(error) if error.error_len().is_none() => buffer.len() - error.valid_up_to(),
        _ => 0,
    };
    marker(BEGIN_CONTENT).max(marker(END_OF_OUTPUT)).max(unfinished)
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn push_text(found: &mut Vec<Output>, bytes: &[u8]) {
    if !bytes.is_empty() {
        found.push(Output::Text(text(bytes)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "loss\r 50 %EVCXR_BEGIN_CONTENT text/html\n<b>ä</b>\n<i/>\n\
        EVCXR_END_CONTENT\nüber\n\x1eCANDLE_ACCELERATE_END_OF_OUTPUT\nnext";

    fn expected() -> Vec<Output> {
        vec![
            Output::Text("loss\r 50 %".into()),
            Output::Content { mime: "text/html".into(), body: "<b>ä</b>\n<i/>".into() },
            Output::Text("über\n".into()),
            Output::End,
            Output::Text("next".into()),
        ]
    }

    #[test]
    fn output_is_the_same_however_its_bytes_arrive() {
        for size in [1, 2, 3, 7, 1000] {
            let mut scanner = Scanner::default();
            let mut found: Vec<Output> = Vec::new();
            let mut pieces: Vec<_> =
                PRINTED.as_bytes().chunks(size).flat_map(|chunk| scanner.feed(chunk)).collect();
            pieces.extend(scanner.finish());
            for piece in pieces {
                match (found.last_mut(), piece) {
                    (Some(Output::Text(before)), Output::Text(more)) => before.push_str(&more),
                    (_, piece) => found.push(piece),
                }
            }
            assert_eq!(found, expected(), "in pieces of {size} bytes");
        }
    }

    #[test]
    fn text_without_a_newline_is_not_held_back() {
        let mut scanner = Scanner::default();
        assert_eq!(scanner.feed(b"\r50 %"), [Output::Text("\r50 %".into())]);
    }
}
