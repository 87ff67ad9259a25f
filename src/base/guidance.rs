//! Errors with notes: PyTorch's message, then one line each about the operator, where it was called, and what
//! to do.

use std::fmt::{self, Display, Formatter, Write};

/// A line in the user's program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceLine {
    pub file: Box<str>,
    pub number: u32,
}

/// The hint in errors if lines were not recorded.
pub const LINES_HINT: &str =
    "autograd.set_source_lines(True) before the forward pass, or GRADIRON_SOURCE_LINES=1, shows the lines";

#[derive(Debug)]
pub struct Guidance {
    message: String,
    notes: Vec<Note>,
}

#[derive(Debug)]
struct Note {
    label: &'static str,
    text: String,
    line: Option<SourceLine>,
}

impl Guidance {
    pub fn new(message: impl Into<String>) -> Guidance {
        Guidance { message: message.into(), notes: Vec::new() }
    }

    #[must_use]
    pub fn note(
        mut self,
        label: &'static str,
        text: impl Into<String>,
        line: Option<SourceLine>,
    ) -> Guidance {
        self.notes.push(Note { label, text: text.into(), line });
        self
    }

    #[must_use]
    pub fn advice(self, text: impl Into<String>) -> Guidance {
        self.note("what to do", text, None)
    }

    /// The whole text; `source` reads lines of the user's program.
    pub fn render(&self, source: impl Fn(&SourceLine) -> Option<String>) -> String {
        let mut text = self.message.clone();
        for Note { label, text: note, line } in &self.notes {
            let _ = write!(text, "\n  {label}: {note}");
            if let Some(line) = line {
                let _ = write!(text, " at {}:{}", line.file, line.number);
                if let Some(code) = source(line) {
                    let _ = write!(text, ": {code}");
                }
            }
        }
        text
    }
}

impl Display for Guidance {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(|_| None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_first_then_notes() {
        let line = SourceLine { file: "train.py".into(), number: 12 };
        let guidance =
            Guidance::new("It failed.").note("operator", "Mul, made", Some(line)).advice("try again");
        let text = guidance.render(|line| (line.number == 12).then(|| "y = x * 2".into()));
        let rest = "\n  what to do: try again";
        assert_eq!(text, format!("It failed.\n  operator: Mul, made at train.py:12: y = x * 2{rest}"));
        assert_eq!(guidance.to_string(), format!("It failed.\n  operator: Mul, made at train.py:12{rest}"));
    }
}
