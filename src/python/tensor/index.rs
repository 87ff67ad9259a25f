//! Indexing, `x[...]`: basic indices become views; tensors and lists become an advanced index.

use crate::base::{DType, Dims, Error, Scalar, try_alloc};
use crate::operator::Operand;
use crate::operator::call::results::PlainView;
use crate::operator::primitives::{constant, copies, views};
use crate::ops;
use crate::ops::indexing::{advanced, index_put, masked};
use crate::ops::shape::{slices, squeeze, view};
use crate::python::call::run::attached;
use crate::python::call::signature_errors::too_long;
use crate::python::data::arrays;
use crate::python::data::nested_lists;
use crate::python::modes::profile;
use crate::python::numbers::scalar_from;
use crate::python::objects::ClassName;
use crate::python::transforms::func::{check_write, write_name};
use crate::python::types::type_name;
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::tensor::{Tensor, any_requires_grad, node_hooks};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PyList, PyRange, PySequence, PySlice, PyString, PyTuple};
use smallvec::SmallVec;

/// One item of an index.
enum Item {
    At(i64),
    Slice(i64, i64, i64),
    New,
    Rest,
    Tensor(Tensor),
    Flag(bool),
}

/// Reads a slice's bounds and step; missing ones are Python's smallest or largest.
fn slice(object: &Bound<'_, PySlice>) -> PyResult<Item> {
    let (mut start, mut stop, mut step) = (0, 0, 0);
    // SAFETY: the object is a slice and lives during the call, which writes three numbers.
    let outcome = unsafe { ffi::PySlice_Unpack(object.as_ptr(), &mut start, &mut stop, &mut step) };
    if outcome < 0 {
        return Err(PyErr::fetch(object.py()));
    }
    if step < 0 {
        return Err(PyValueError::new_err("step must be greater than zero"));
    }
    Ok(Item::Slice(start as i64, stop as i64, step as i64))
}

fn item(object: &Bound<'_, PyAny>) -> PyResult<Item> {
    if object.is_exact_instance_of::<PyInt>() {
        return Ok(Item::At(object.extract().map_err(|_| too_long())?));
    }
    if object.is_none() {
        return Ok(Item::New);
    }
    if object.is_instance_of::<PyEllipsis>() {
        return Ok(Item::Rest);
    }
    if object.is_instance_of::<PyBool>() {
        return Ok(Item::Flag(object.extract()?));
    }
    if let Ok(cut) = object.cast::<PySlice>() {
        return slice(cut);
    }
    if let Ok(t) = object.cast::<PyTensor>() {
        let t = t.get().tensor.clone();
        return Ok(match t.dtype() {
            // A batched index has a value per example, so it cannot be read as one number.
            _ if t.is_batched() => Item::Tensor(t),
            DType::Bool | DType::U8 if t.ndim() == 0 => Item::Flag(t.item()?.as_bool()),
            dtype if t.ndim() == 0 && dtype.is_int() => Item::At(t.item()?.as_index()),
            _ => Item::Tensor(t),
        });
    }
    if object.cast::<PyRange>().is_ok() {
        return Ok(Item::Tensor(nested_lists::from_nested(object, Some(DType::I64))?));
    }
    let listed = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
    // This includes NumPy's integers, which also have an array interface.
    if !listed && let Ok(i) = object.extract::<i64>() {
        return Ok(Item::At(i));
    }
    if listed || arrays::is_array(object)? {
        let t = nested_lists::from_nested(object, None)?;
        let t = if t.numel() == 0 { copies::to_dtype(&t, DType::I64)? } else { t };
        return Ok(Item::Tensor(t));
    }
    if object.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("new(): invalid data type 'str'"));
    }
    Err(PyIndexError::new_err(format!(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {})",
        object.class_name()?
    )))
}

type Items = SmallVec<[Item; 4]>;

fn items(index: &Bound<'_, PyAny>) -> PyResult<Items> {
    if let Ok(tuple) = index.cast::<PyTuple>() {
        try_alloc::check_list(tuple.len())?;
        return tuple.iter().map(|o| item(&o)).collect();
    }
    match index.cast::<PyList>() {
        Ok(list) if list.len() < 32 && list.iter().any(|o| stands_alone(&o)) => {
            let text = c"Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch \
                2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, \
                x[torch.tensor(seq)], which will result either in an error or a different result";
            let py = index.py();
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), text, 1)?;
            list.iter().map(|o| item(&o)).collect()
        }
        _ => Ok(smallvec::smallvec![item(index)?]),
    }
}

/// Returns true if this item makes a list a tuple of indices. (A list of numbers is an index tensor.)
fn stands_alone(object: &Bound<'_, PyAny>) -> bool {
    object.is_none()
        || object.is_instance_of::<PyEllipsis>()
        || object.is_instance_of::<PySlice>()
        || object.is_instance_of::<PyTensor>()
        || object.cast::<PySequence>().is_ok()
        || arrays::is_array(object).is_ok_and(|is| is && object.extract::<i64>().is_err())
}

/// Applies the views of an index; returns the index tensors with their dimensions. A slice that is the
/// `only` index is recorded even if it selects everything; any other index that selects everything returns
/// the tensor itself.
fn basic(t: &Tensor, items: Items, only: bool) -> PyResult<(Tensor, Vec<Option<Tensor>>)> {
    let consumes = |i: &Item| match i {
        Item::At(_) | Item::Slice(..) => 1,
        Item::Tensor(t) if matches!(t.dtype(), DType::Bool | DType::U8) => t.ndim(),
        Item::Tensor(_) => 1,
        _ => 0,
    };
    let used: usize = items.iter().map(consumes).sum();
    let ndim = t.ndim();
    if used > ndim {
        return Err(PyIndexError::new_err(if ndim == 0 && matches!(items[..], [Item::At(_)]) {
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a \
             0-dim tensor to a number"
                .to_string()
        } else {
            format!("too many indices for tensor of dimension {ndim}")
        }));
    }
    if items.iter().filter(|i| matches!(i, Item::Rest)).count() > 1 {
        return Err(PyIndexError::new_err("an index can only have a single ellipsis ('...')"));
    }
    let outside = |i: i64, size: i64| i < -size || i >= size;
    let refuse = |i: i64, dim: usize, size: i64| {
        PyIndexError::new_err(format!("index {i} is out of bounds for dimension {dim} with size {size}"))
    };
    let whole = |start: i64, end: i64, step: i64, size: usize| start == 0 && end >= size as i64 && step == 1;
    let (mut dim, mut real) = (0usize, 0usize);
    let recorded = t.is_special() || any_requires_grad([t]);
    if !recorded && !items.iter().any(|i| matches!(i, Item::Tensor(_) | Item::Flag(_))) {
        // The intermediate views are not needed: compute only the final layout.
        let mut layout = t.body().layout.clone();
        let mut cut = false;
        for item in items {
            match item {
                Item::At(i) => {
                    cut = true;
                    let size = layout.shape[dim] as i64;
                    if outside(i, size) {
                        return Err(refuse(i, real, size));
                    }
                    layout = layout.select(dim as i64, i)?;
                    real += 1;
                }
                Item::Slice(start, end, step) => {
                    if !whole(start, end, step, layout.shape[dim]) {
                        cut = true;
                        layout = layout.slice(dim as i64, Some(start), Some(end), step)?;
                    }
                    dim += 1;
                    real += 1;
                }
                Item::New => {
                    cut = true;
                    layout = layout.unsqueeze(dim as i64)?;
                    dim += 1;
                }
                _ => {
                    dim += ndim - used;
                    real += ndim - used;
                }
            }
        }
        return Ok((if cut { layout.plain_view(t) } else { t.clone() }, Vec::new()));
    }
    let mut out = t.clone();
    let mut advanced: Vec<Option<Tensor>> = Vec::new();
    for item in items {
        match item {
            Item::At(i) => {
                let size = out.body().shape()[dim] as i64;
                if outside(i, size) {
                    return Err(refuse(i, real, size));
                }
                out = slices::select(&out, dim as i64, i)?;
                real += 1;
            }
            Item::Slice(start, end, step) => {
                if only || !whole(start, end, step, out.body().shape()[dim]) {
                    out = slices::slice(&out, dim as i64, Some(start), Some(end), step)?;
                }
                dim += 1;
                real += 1;
            }
            Item::New => {
                out = squeeze::unsqueeze(&out, dim as i64)?;
                dim += 1;
            }
            Item::Rest => {
                dim += ndim - used;
                real += ndim - used;
            }
            Item::Flag(flag) => {
                out = squeeze::unsqueeze(&out, dim as i64)?;
                let index = if flag { vec![0i64] } else { vec![] };
                advanced.resize(dim, None);
                advanced.push(Some(ops::indexing::index::from_i64(&index, &[index.len()], out.device())?));
                dim += 1;
            }
            Item::Tensor(index) => {
                let n = if matches!(index.dtype(), DType::Bool | DType::U8) { index.ndim() } else { 1 };
                advanced.resize(dim, None);
                advanced.extend(ops::indexing::index::expand_masks(&out, dim, index)?.into_iter().map(Some));
                dim += n;
                real += n;
            }
        }
    }
    Ok((out, advanced))
}

/// Returns the first operator that an index runs, for the profiler.
fn operator_of(index: &Bound<'_, PyAny>) -> &'static str {
    let advanced = |o: &Bound<'_, PyAny>| o.is_instance_of::<PyTensor>() || o.is_instance_of::<PyList>();
    match index.cast::<PyTuple>() {
        _ if advanced(index) => "index",
        Ok(tuple) if tuple.iter().any(|o| advanced(&o)) => "index",
        _ if index.is_instance_of::<PyInt>() => ops::shape::slices::SELECT.name,
        _ => "slice",
    }
}

/// `x[index]`.
pub fn get<'py>(slf: &Bound<'py, PyTensor>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    attached(|| part_at(slf, index))
}

fn part_at<'py>(slf: &Bound<'py, PyTensor>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let t = &slf.get().tensor;
    let _span = profile::named(|| operator_of(index), [slf.as_any(), index]);
    // The fast path for one integer.
    if index.is_exact_instance_of::<PyInt>() && t.ndim() > 0 {
        let i: i64 = index.extract().map_err(|_| too_long())?;
        let size = t.body().shape()[0] as i64;
        if i < -size || i >= size {
            return Err(PyIndexError::new_err(format!(
                "index {i} is out of bounds for dimension 0 with size {size}"
            )));
        }
        return wrap(slf.py(), slices::select(t, 0, i)?);
    }
    let (part, advanced) = basic(t, items(index)?, index.is_instance_of::<PySlice>())?;
    if advanced.is_empty() {
        return wrap(slf.py(), if part.same(t) { views::alias(&part)? } else { part });
    }
    wrap(slf.py(), advanced::index(&part, &advanced)?)
}

/// Records the assignment of a number at a single index or mask as a fill; returns true if it was one.
fn try_fill(
    part: &Tensor,
    indices: &[Option<Tensor>],
    mask: Option<Tensor>,
    masked: bool,
    number: Scalar,
) -> Result<bool, Error> {
    let Some(dim) = indices.iter().position(Option::is_some) else { return Ok(false) };
    if part.is_special() {
        return Ok(false);
    }
    if let Some(mut mask) = mask.filter(|mask| mask.ndim() > 0) {
        while dim + mask.ndim() < part.ndim() {
            mask = squeeze::unsqueeze(&mask, -1)?;
        }
        masked::masked_fill_(part, &mask, Operand::Scalar(number))?;
        return Ok(true);
    }
    if masked || indices[dim + 1..].iter().any(Option::is_some) {
        return Ok(false);
    }
    let Some(index) = &indices[dim] else { return Ok(false) };
    let index = views::reshape(index, &[index.numel()])?;
    ops::indexing::scatter::index_fill_(part, dim as i64, &index, Operand::Scalar(number))?;
    Ok(true)
}

/// Removes the leading dimensions of size 1 of an assigned value, which do not matter.
fn without_leading_ones(value: &Tensor) -> Result<Tensor, Error> {
    let shape = value.shape();
    let ones = shape.iter().take_while(|&&n| n == 1).count();
    views::View::call(value, Dims::from_slice(&shape[ones..]))
}

/// Returns the value of an assignment as a tensor.
pub fn value_for(t: &Tensor, value: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let number = scalar_from(value);
    match (value.cast::<PyTensor>(), number) {
        (Ok(v), _) => Ok(v.get().tensor.clone()),
        (_, Some(n)) => Ok(constant::full(&[], n, t.dtype(), t.device())?),
        _ if value.is_instance_of::<PyInt>() => Err(too_long()),
        _ => {
            let place = crate::tensor::type_string(t.dtype(), t.device());
            Err(PyTypeError::new_err(format!("can't assign a {} to a {place}", type_name(value))))
        }
    }
}

/// `x[index] = value`.
pub fn set(slf: &Bound<'_, PyTensor>, index: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    attached(|| node_hooks::writing(|| assign(slf, index, value)))
}

fn assign(slf: &Bound<'_, PyTensor>, index: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let t = &slf.get().tensor;
    let written = || if operator_of(index) == "index" { index_put::WRITTEN } else { "copy_" };
    let _span = profile::named(written, [slf.as_any(), index, value]);
    let number = scalar_from(value);
    let value = value_for(t, value)?;
    let items = items(index)?;
    if let [Item::Tensor(mask)] = items.as_slice()
        && mask.is_batched()
        && mask.dtype() == DType::Bool
        && value.numel() == 1
    {
        check_write(t, &[mask, &value], || write_name(&masked::MASKED_FILL_, false))?;
        return Ok(masked::fill_where(t, mask, &value)?);
    }
    let masked = items.iter().any(|i| matches!(i, Item::Tensor(t) if t.dtype() == DType::Bool));
    let mut masks = items.iter().filter_map(|i| if let Item::Tensor(t) = i { Some(t.clone()) } else { None });
    let mask =
        if let (true, Some(mask), None) = (masked, masks.next(), masks.next()) { Some(mask) } else { None };
    let (part, advanced) = basic(t, items, false)?;
    check_write(&part, &[&value], || match (advanced.is_empty(), masked && value.numel() == 1) {
        (true, _) if number.is_some() => write_name(&ops::creation::fill::FILL_, false),
        (true, _) => "aten::copy_".into(),
        (false, true) => write_name(&masked::MASKED_FILL_, number.is_none()),
        (false, false) => format!("aten::{}", index_put::WRITTEN),
    })?;
    if !advanced.is_empty() {
        if let Some(number) = number
            && (any_requires_grad([&part]) || part.numel() == 0 || part.body().layout.is_expanded())
            && try_fill(&part, &advanced, mask, masked, number)?
        {
            return Ok(());
        }
        // A value with one element under a mask fills, and a fill casts.
        let fills = masked && value.numel() == 1;
        let value = if fills { copies::to_dtype(&value, part.dtype())? } else { value };
        // A fill reads its value first, which may be an element of the target.
        let own = fills && value.body().storage.same(&part.body().storage);
        let value = if own { copies::clone_dense(&value)? } else { value };
        let value = if value.shape().first() == Some(&1) { without_leading_ones(&value)? } else { value };
        if !fills || number.is_none() {
            index_put::warn_put(&part)?;
        }
        if fills {
            masked::warn_fill(&part)?;
        }
        return Ok(index_put::index_put_into(t, &part, &advanced, &value, false)?);
    }
    if let Some(number) = number {
        return Ok(ops::creation::fill::fill(&part, number)?);
    }
    let (sizes, single) = (part.shape(), value.ndim() == 0);
    let value = if value.shape() == sizes { value } else { without_leading_ones(&value)? };
    let fits = crate::base::broadcast(&value.shape(), &sizes).is_ok_and(|s| s == sizes);
    if !fits {
        return Err(mismatch(&sizes, &value.shape()).into());
    }
    if single && !sizes.is_empty() {
        return Ok(crate::operator::inplace::put_value(&part, &value)?);
    }
    // A value with fewer elements is expanded first.
    let whole = value.shape() == sizes || part.is_batched() || value.is_batched();
    let value = if whole { value } else { view::expand(&value, views::ints(&sizes))? };
    Ok(crate::operator::inplace::copy_into(&part, &value)?)
}

fn mismatch(part: &[usize], value: &[usize]) -> Error {
    let lead = part.len().max(value.len());
    let at = |s: &[usize], i: usize| if i + s.len() >= lead { s[i + s.len() - lead] } else { 1 };
    for dim in (0..lead).rev() {
        let (p, v) = (at(part, dim), at(value, dim));
        if v != p && v != 1 {
            return Error::runtime(format!(
                "The expanded size of the tensor ({p}) must match the existing size ({v}) at non-singleton dimension {dim}.  \
                 Target sizes: {part:?}.  Tensor sizes: {value:?}"
            ));
        }
    }
    Error::runtime(format!(
        "shape mismatch: value tensor of shape {value:?} cannot be broadcast to shape {part:?}"
    ))
}
