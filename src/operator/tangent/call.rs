//! The parameters and results of a custom jvp.

use crate::base::{Error, Result};
use crate::operator::V;
use crate::operator::call::Group;
use crate::operator::call::derivative::IntoGrads;
use crate::tensor::{Grads, Tensor};

/// A call in forward mode at one level: the primals of the operands with edges, their tangents, and the
/// results.
pub struct TangentCall<'a> {
    pub(crate) groups: &'a [Group<'a>],
    pub(crate) lower: &'a [Tensor],
    pub(crate) tangents: &'a [Option<Tensor>],
    pub outputs: &'a [Tensor],
}

impl TangentCall<'_> {
    /// The range of operand `at` among the operands with edges; missing operands are not counted.
    fn range(&self, edges: &[bool], at: usize) -> std::ops::Range<usize> {
        let count = |i: usize| self.groups[i].iter().count();
        let start: usize = (0..at).filter(|&i| edges[i]).map(count).sum();
        start..start + count(at)
    }

    fn value(&self, edges: &[bool], at: usize) -> Option<Tensor> {
        if edges[at] {
            self.lower.get(self.range(edges, at).start).cloned()
        } else {
            self.groups[at].get(0).cloned()
        }
        .filter(|_| self.groups[at].get(0).is_some())
    }
}

/// Reads a parameter of a custom jvp from the call.
pub trait FromTangentCall: Sized {
    fn tangent(call: &TangentCall, edges: &[bool], at: usize) -> Result<Self>;
    fn value(call: &TangentCall, edges: &[bool], at: usize) -> Result<Self>;
    fn output(call: &TangentCall, at: usize) -> Result<Self>;
}
fn missing_operand() -> Error {
    Error::runtime("a custom jvp reads an operand or a result that this call does not have")
}
impl FromTangentCall for Option<Tensor> {
    fn tangent(call: &TangentCall, edges: &[bool], at: usize) -> Result<Self> {
        let range = call.range(edges, at);
        Ok(if range.is_empty() { None } else { call.tangents[range.start].clone() })
    }
    fn value(call: &TangentCall, edges: &[bool], at: usize) -> Result<Self> {
        Ok(call.value(edges, at))
    }
    fn output(call: &TangentCall, at: usize) -> Result<Self> {
        Ok(call.outputs.get(at).cloned())
    }
}
impl FromTangentCall for Tensor {
    /// Zeros if there is no tangent.
    fn tangent(call: &TangentCall, edges: &[bool], at: usize) -> Result<Self> {
        match Option::<Tensor>::tangent(call, edges, at)? {
            Some(t) => Ok(t),
            None => {
                let x = call.value(edges, at).ok_or_else(missing_operand)?;
                crate::operator::primitives::constant::zeros(&x.shape(), x.dtype(), x.device())
            }
        }
    }
    fn value(call: &TangentCall, edges: &[bool], at: usize) -> Result<Self> {
        call.value(edges, at).ok_or_else(missing_operand)
    }
    fn output(call: &TangentCall, at: usize) -> Result<Self> {
        call.outputs.get(at).cloned().ok_or_else(missing_operand)
    }
}
impl FromTangentCall for V {
    fn tangent(call: &TangentCall, edges: &[bool], at: usize) -> Result<Self> {
        <Tensor as FromTangentCall>::tangent(call, edges, at).map(V::from)
    }
    fn value(call: &TangentCall, edges: &[bool], at: usize) -> Result<Self> {
        <Tensor as FromTangentCall>::value(call, edges, at).map(V::from)
    }
    fn output(call: &TangentCall, at: usize) -> Result<Self> {
        <Tensor as FromTangentCall>::output(call, at).map(V::from)
    }
}
impl FromTangentCall for Option<V> {
    fn tangent(call: &TangentCall, edges: &[bool], at: usize) -> Result<Self> {
        Ok(Option::<Tensor>::tangent(call, edges, at)?.map(V::from))
    }
    fn value(call: &TangentCall, edges: &[bool], at: usize) -> Result<Self> {
        Ok(call.value(edges, at).map(V::from))
    }
    fn output(call: &TangentCall, at: usize) -> Result<Self> {
        Ok(call.outputs.get(at).cloned().map(V::from))
    }
}
/// The tangents of a list; `None` for tensors without one.
impl FromTangentCall for Vec<Option<Tensor>> {
    fn tangent(call: &TangentCall, edges: &[bool], at: usize) -> Result<Self> {
        Ok(call.tangents[call.range(edges, at)].to_vec())
    }
    fn value(call: &TangentCall, edges: &[bool], at: usize) -> Result<Self> {
        Ok(call.lower[call.range(edges, at)].iter().cloned().map(Some).collect())
    }
    fn output(call: &TangentCall, _: usize) -> Result<Self> {
        Ok(call.outputs.iter().cloned().map(Some).collect())
    }
}
impl FromTangentCall for Vec<Tensor> {
    fn tangent(call: &TangentCall, edges: &[bool], at: usize) -> Result<Self> {
        let zero = |(t, x): (&Option<Tensor>, &Tensor)| match t {
            Some(t) => Ok(t.clone()),
            None => crate::operator::primitives::constant::zeros(&x.shape(), x.dtype(), x.device()),
        };
        let range = call.range(edges, at);
        call.tangents[range.clone()].iter().zip(&call.lower[range]).map(zero).collect()
    }
    fn value(call: &TangentCall, edges: &[bool], at: usize) -> Result<Self> {
        Ok(call.lower[call.range(edges, at)].to_vec())
    }
    fn output(call: &TangentCall, _: usize) -> Result<Self> {
        Ok(call.outputs.to_vec())
    }
}

/// The result of a custom jvp: the tangent of the first result, or one for each.
pub trait IntoTangents {
    fn put(self, tangents: &mut Grads) -> Result<()>;
}
impl IntoTangents for V {
    fn put(self, tangents: &mut Grads) -> Result<()> {
        IntoGrads::put(self, tangents, 0)
    }
}
impl IntoTangents for Tensor {
    fn put(self, tangents: &mut Grads) -> Result<()> {
        IntoGrads::put(self, tangents, 0)
    }
}
impl<T: IntoTangents> IntoTangents for Result<T> {
    fn put(self, tangents: &mut Grads) -> Result<()> {
        self?.put(tangents)
    }
}
impl<T: IntoGrads, const N: usize> IntoTangents for [T; N] {
    fn put(self, tangents: &mut Grads) -> Result<()> {
        self.into_iter().enumerate().try_for_each(|(i, t)| t.put(tangents, i))
    }
}
impl<T: IntoGrads> IntoTangents for Vec<T> {
    fn put(self, tangents: &mut Grads) -> Result<()> {
        self.into_iter().enumerate().try_for_each(|(i, t)| t.put(tangents, i))
    }
}
