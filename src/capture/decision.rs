//! Decisions: elements by which the host language decided what to do next. A replay that finds another element there has
//! changed nothing so far but the states of generators, puts these back, and gives up.

use crate::base::{Error, Result, Scalar};
use crate::capture::recorder::with_recorder;
use crate::storage::access::{self, Permit};
use crate::tensor::leaf::grad_changes;
use crate::tensor::{Body, Tensor, anomaly};

/// What is asked of an element.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    Truth,
    Value,
}

/// An element, and what it was.
pub(super) struct Decision {
    of: Body,
    asked: Asked,
    was: Scalar,
}

impl Decision {
    /// True if the answer is what it was.
    pub fn holds(&self) -> Result<bool> {
        let now = self.of.item()?;
        Ok(match self.asked {
            Asked::Truth => now.as_bool() == self.was.as_bool(),
            Asked::Value => now == self.was,
        })
    }
}

/// Reads the only element of a tensor, and notes that the captured call decides by it.
pub fn decide(tensor: &Tensor, asked: Asked) -> Result<Scalar> {
    let was = read(tensor)?;
    if !access::is_noted() {
        return Ok(was);
    }
    let line = anomaly::current_line();
    if grad_changes::has_sums() {
        access::note(|| CHANGED.into());
    }
    with_recorder(|recorder| {
        let noted = match recorder.why_no_decision() {
            Some(why) => Err(Error::runtime(why)),
            None => recorder.add_decision(&tensor.body(), line, |of| Decision { of, asked, was }),
        };
        if let Err(error) = noted {
            access::note(|| error.to_string());
        }
    });
    Ok(was)
}

/// Reads the only element of a tensor although the thread captures: each replay reads it anew, or compares it.
pub fn read(tensor: &Tensor) -> Result<Scalar> {
    let _permit = Permit::new();
    tensor.item()
}

pub(super) const CHANGED: &str =
    "it decides by the elements of a tensor after it changed a tensor that is older than the call";
