//! Calls of custom Functions: `forward` runs unrecorded, then one node is recorded that calls `backward`.

use crate::python::function::batched;
use crate::python::function::context::{Ctx, unrecorded};
use crate::python::function::listed::TensorList;
use crate::python::function::options;
use crate::python::function::options::Options;
use crate::python::function::outputs::{Call, Outputs, finish};
use crate::python::function::tangents;
use crate::python::modes::profile;
use crate::python::objects::tuple;
use crate::python::wrapper::class::PyTensor;
use crate::tensor::levels::func;
use crate::tensor::levels::func::HideTransforms;
use crate::tensor::{Edge, Marks, Tensor, mode};
use gradiron_macros::pyfunction;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyTuple};
use smallvec::SmallVec;

/// `Function.apply(*args)`. `context` is the class of contexts; `style` has the class's options as bits.
#[pyfunction]
pub fn apply_function<'py>(
    py: Python<'py>,
    class: &Bound<'py, PyAny>,
    context: &Bound<'py, PyAny>,
    style: u8,
    args: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    let _span = profile::function(class, args);
    let inputs: SmallVec<[Option<Tensor>; 4]> =
        args.iter().map(|a| a.cast::<PyTensor>().ok().map(|t| t.get().tensor.clone())).collect();
    batched::check_function(class)?;
    let mut flags = Marks::default();
    inputs.iter().flatten().for_each(|t| flags |= t.marks());
    if let Some(made) = batched::apply_function(class, args, flags)? {
        return Ok(made);
    }
    let ctx = context.call0()?;
    let recording = mode::grad_enabled() && inputs.iter().flatten().any(Tensor::requires_grad);
    if recording {
        inputs.iter().flatten().try_for_each(Tensor::check_view)?;
    }
    let mut edges: SmallVec<[Option<Edge>; 3]> = SmallVec::new();
    for input in &inputs {
        edges.push(match input {
            Some(t) if recording => t.edge_of_many()?,
            _ => None,
        });
    }
    let needs = tuple(
        py,
        inputs.iter().map(|t| PyBool::new(py, t.as_ref().is_some_and(Tensor::requires_grad)).to_owned()),
    )?;
    let state = ctx.cast::<Ctx>()?;
    let setup = style & options::SETUP != 0;
    {
        let mut state = state.get().state();
        state.needs_input_grad = Some(needs.into_any().unbind());
        if style > options::SETUP {
            state.options = Options::of(class, style)?;
        }
    }
    let dual = flags.may_be_dual() && inputs.iter().flatten().any(Tensor::is_dual);
    let hidden = HideTransforms::start();
    let returned = mode::with_grad(false, || -> PyResult<Bound<'py, PyAny>> {
        let forward = class.getattr(intern!(py, "forward"))?;
        if !setup {
            let mut arguments: SmallVec<[Bound<'_, PyAny>; 8]> = smallvec::smallvec![ctx.clone()];
            arguments.extend(args.iter());
            return forward.call1(tuple(py, arguments)?);
        }
        let output = forward.call1(args.clone())?;
        hidden.show_transforms();
        let setup = class.getattr(intern!(py, "setup_context"))?;
        if func::any() {
            set_up_around(&setup, context, args, &output)?;
        }
        setup.call1((&ctx, args, &output))?;
        Ok(output)
    })?;
    let single = returned.cast::<PyTuple>().is_err();
    let outputs: Outputs<'py> = match returned.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().collect(),
        Err(_) => smallvec::smallvec![returned.clone()],
    };
    if single && outputs[0].cast::<PyTensor>().is_err() {
        return Ok(returned);
    }
    drop(hidden);
    let call = Call { class, ctx: state, inputs: TensorList::new(&inputs[..]), edges, recording };
    let (mut finished, marks) = finish(call, outputs)?;
    if dual {
        tangents::function_tangents(class, &ctx, &inputs, &mut finished, &marks)?;
    }
    // Dropped after the lock is released: destructors may call us again.
    let for_forward = state.get().state().for_forward.take();
    drop(for_forward);
    if single { Ok(finished[0].clone()) } else { Ok(tuple(py, finished)?.into_any()) }
}

/// Calls `setup_context` once without transforms, and once for each transform around the innermost: users
/// can observe the number of calls.
#[cold]
fn set_up_around(
    setup: &Bound<'_, PyAny>,
    context: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    output: &Bound<'_, PyAny>,
) -> PyResult<()> {
    for _ in 0..func::depth() {
        setup.call1((unrecorded(context, args.len())?, args, output))?;
    }
    Ok(())
}
