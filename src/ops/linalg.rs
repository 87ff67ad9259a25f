//! Products of matrices and vectors.

use super::kernel::matmul as multiply;
use super::macros::ops;
use super::value::V;
use super::view::t;
use crate::base::{DType, Dims, Error, Fault, Result, broadcast};
use crate::tensor::{Body, Tensor};

pub(super) fn same_dtype(a: &Tensor, b: &Tensor) -> Result<()> {
    if a.dtype() == b.dtype() {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "expected m1 and m2 to have the same dtype, but got: {} != {}",
        a.dtype().c_name(),
        b.dtype().c_name()
    )))
}

/// A batched product of operands with at least two dimensions; batches broadcast.
fn batched(a: &Body, b: &Body, dtype: DType) -> Result<Body> {
    let (na, nb) = (a.layout.ndim(), b.layout.ndim());
    let (m, k) = (a.shape()[na - 2], a.shape()[na - 1]);
    let n = b.shape()[nb - 1];
    let batch = broadcast(&a.shape()[..na - 2], &b.shape()[..nb - 2])?;
    let shaped = |rows: usize, columns: usize| {
        let mut shape = batch.clone();
        shape.extend([rows, columns]);
        shape
    };
    let a = a.with_layout(a.layout.broadcast_to(&shaped(m, k)));
    let b = b.with_layout(b.layout.broadcast_to(&shaped(k, n)));
    let out = Body::new(&shaped(m, n), dtype, a.device().joined(b.device()))?;
    multiply(&out, &a, &b, 1.0, 0.0)?;
    Ok(out)
}

/// Which of two matrices lie column by column: so do their gradients, then.
#[derive(Clone, Copy)]
pub struct Columns {
    left: bool,
    right: bool,
}

impl Columns {
    pub fn of(left: &Tensor, right: &Tensor) -> Columns {
        let by_columns = |t: &Tensor| {
            let body = t.body();
            let layout = &body.layout;
            layout.ndim() == 2 && layout.strides[0] == 1 && layout.strides[1] == layout.shape[0]
        };
        Columns { left: by_columns(left), right: by_columns(right) }
    }

    /// The gradient of the left operand of `left @ right`.
    pub fn left_gradient(self, g: &V, right: &V) -> V {
        if self.left {
            turned(&right.clone().conj().matmul(turned(g)))
        } else {
            g.matmul(turned(right).conj())
        }
    }

    /// That of the right one.
    pub fn right_gradient(self, g: &V, left: &V) -> V {
        if self.right {
            turned(&turned(g).matmul(left.clone().conj()))
        } else {
            turned(left).conj().matmul(g)
        }
    }
}

fn turned(matrix: &V) -> V {
    matrix.clone().then(|m| t(&m))
}

/// Product of two matrices.
pub fn mm(input: &Tensor, mat2: &Tensor) -> Result<Tensor> {
    product_of_matrices(input, mat2, Columns::of(input, mat2))
}

/// Refuses what a product of batches has no loop for; where there is nothing to multiply none is needed.
pub(super) fn check_batch_dtypes(name: &'static str, a: &Body, b: &Body) -> Result<()> {
    match a.dtype {
        _ if is_nothing(a, b) => Ok(()),
        DType::Bool => Err(Fault::NoKernel { op: name, dtype: a.dtype }.into()),
        _ if a.dtype == b.dtype => Ok(()),
        _ => Err(Error::runtime(format!(
            "expected scalar type {} but found {}",
            a.dtype.scalar_name(),
            b.dtype.scalar_name()
        ))),
    }
}

/// Whether a product has no element, or none of its factors.
pub(super) fn is_nothing(a: &Body, b: &Body) -> bool {
    a.numel() == 0 || b.numel() == 0
}

ops! { "linalg";
    /// Product of two matrices.
    [hidden, multilinear] fn product_of_matrices(input, mat2; columns: Columns) -> y {
        let (a, b) = (input.body(), mat2.body());
        if a.layout.ndim() != 2 {
            return Err(Error::runtime(format!("mm: self must be a matrix, got {}-D tensor", a.layout.ndim())));
        }
        if b.layout.ndim() != 2 {
            return Err(Error::runtime(format!("mm: mat2 must be a matrix, got {}-D tensor", b.layout.ndim())));
        }
        if a.shape()[1] != b.shape()[0] {
            return Err(Error::runtime(format!(
                "mm: mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})",
                a.shape()[0], a.shape()[1], b.shape()[0], b.shape()[1]
            )));
        }
        same_dtype(input, mat2)?;
        batched(&a, &b, a.dtype)
    }
    input: |g, mat2, columns| columns.left_gradient(&g, &mat2);
    mat2: |g, input, columns| columns.right_gradient(&g, &input);
    /// Products of two batches of matrices.
    [out, multilinear] fn bmm(input, mat2) -> y {
        let (a, b) = (input.body(), mat2.body());
        if a.layout.ndim() != 3 || b.layout.ndim() != 3 {
            let which = if a.layout.ndim() != 3 { "batch1" } else { "batch2" };
            return Err(Error::runtime(format!("{which} must be a 3D tensor")));
        }
        if a.shape()[0] != b.shape()[0] || a.shape()[2] != b.shape()[1] {
            return Err(Error::runtime(format!(
                "Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
                a.shape()[0], a.shape()[2], b.shape()[0], b.shape()[1]
            )));
        }
        check_batch_dtypes("bmm", &a, &b)?;
        // The second's dtype counts where they may differ.
        batched(&a, &b, b.dtype)
    }
    input: |g, mat2| g.matmul(mat2.mh());
    mat2: |g, input| input.mh().matmul(g);
    /// Inner product of two vectors.
    [hidden, multilinear] fn inner_product(input, tensor) -> y {
        let (a, b) = (input.body(), tensor.body());
        let row = a.with_layout(a.layout.unsqueeze(0)?);
        let column = b.with_layout(b.layout.unsqueeze(1)?);
        let out = batched(&row, &column, a.dtype)?;
        Ok(super::kernel::drop_dims(out, &[0, 1]))
    }
    input: |g, tensor| g * tensor.conj();
    tensor: |g, input| g * input.conj();
}

/// A product of operands with two dimensions each, or a batch of such.
pub fn product(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    match (a.ndim(), b.ndim()) {
        (2, 2) => mm(a, b),
        (3, 3) if a.shape()[0] == b.shape()[0] => bmm(a, b),
        (x, y) if x >= 2 && y >= 2 => {
            let (sa, sb) = (a.shape(), b.shape());
            let batch = broadcast(&sa[..x - 2], &sb[..y - 2])?;
            let flat = |t: &Tensor, s: &Dims| -> Result<Tensor> {
                let mut full = super::view::ints(&batch);
                full.extend(super::view::ints(&s[s.len() - 2..]));
                let wide = super::view::expand(t, full)?;
                super::view::reshape(&wide, &[batch.iter().product(), s[s.len() - 2], s[s.len() - 1]])
            };
            let out = bmm(&flat(a, &sa)?, &flat(b, &sb)?)?;
            let mut shape = batch.clone();
            shape.extend([sa[x - 2], sb[y - 1]]);
            super::view::unsafe_view(&out, shape)
        }
        _ => Err(Fault::Runtime("both arguments to matmul need to be at least 1D".into()).into()),
    }
}

mod more {
    use super::super::macros::compose;
    use super::*;
    use crate::ops::relayout::first_row;
    use crate::ops::shape::contiguous;
    use crate::ops::view::{expand, ints, reshaped, squeeze_one, transpose, unsafe_view, unsqueeze};
    use crate::tensor::any_requires_grad;

    /// Whether a batch is one tall matrix to its product with a matrix or vector.
    fn folds(a: &Tensor, b: &Tensor) -> bool {
        let (large, small) = if a.ndim() >= b.ndim() { (a, b) } else { (b, a) };
        let n = large.ndim();
        if n < 3 || small.ndim() > 2 {
            return false;
        }
        if small.requires_grad() || small.is_batched() {
            return true;
        }
        if a.ndim() == 2 {
            return false;
        }
        let body = large.body();
        let (mut shape, mut strides) = (body.layout.shape.clone(), body.layout.strides.clone());
        if a.ndim() < b.ndim() {
            shape.swap(n - 2, n - 1);
            strides.swap(n - 2, n - 1);
        }
        shape.contains(&0) || (0..n - 2).all(|i| strides[i] == strides[i + 1] * shape[i + 1])
    }

    /// The product as one of a tall matrix.
    fn folded(a: &Tensor, b: &Tensor) -> Result<Tensor> {
        let turned = a.ndim() < b.ndim();
        let large = if turned { transpose(b, -2, -1)? } else { a.clone() };
        let small = if !turned {
            b.clone()
        } else if a.ndim() == 2 {
            t(a)?
        } else {
            a.clone()
        };
        let mut shape = large.shape();
        let columns = shape.pop().unwrap_or(1);
        let tall = reshaped(&large, &[shape.iter().product(), columns])?;
        if small.ndim() == 1 {
            return unsafe_view(&crate::ops::product::mv(&tall, &small)?, shape);
        }
        shape.push(small.shape()[1]);
        let out = unsafe_view(&super::mm(&tall, &small)?, shape)?;
        if turned { contiguous(transpose(&out, -2, -1)?, None) } else { Ok(out) }
    }

    /// The product as one of two batches of equally many matrices.
    fn of_batches(a: &Tensor, b: &Tensor) -> Result<Tensor> {
        let (sa, sb) = (a.shape(), b.shape());
        let (x, y) = (sa.len(), sb.len());
        if (x, y) == (3, 3) && sa[0] != sb[0] {
            let wants = |t: &Tensor| t.requires_grad() || t.is_batched();
            if sa[0] == 1 && wants(a) {
                return matmul(squeeze_one(a, 0)?, b.clone());
            }
            if sb[0] == 1 && wants(b) {
                return matmul(a.clone(), squeeze_one(b, 0)?);
            }
        }
        let (rows, inner) = if x > 1 { (sa[x - 2], sa[x - 1]) } else { (1, sa[0]) };
        let (inner2, columns) = if y > 1 { (sb[y - 2], sb[y - 1]) } else { (sb[0], 1) };
        let mut shape = broadcast(&sa[..x.max(2) - 2], &sb[..y.max(2) - 2])?;
        let count = shape.iter().product();
        let recorded = any_requires_grad([a, b]);
        let flat = |t: &Tensor, m: usize, n: usize| {
            let mut full = ints(&shape);
            full.extend([m as i64, n as i64]);
            if !recorded && t.ndim() == 3 && full == ints(&t.shape()) {
                return Ok(t.clone());
            }
            reshaped(&expand(t, full)?, &[count, m, n])
        };
        let left = flat(a, rows, inner)?;
        let right = flat(&if y == 1 { unsqueeze(b, 1)? } else { b.clone() }, inner2, columns)?;
        let out = bmm(&left, &right)?;
        if x > 1 {
            shape.push(rows);
        }
        if y > 1 {
            shape.push(columns);
        }
        unsafe_view(&out, shape)
    }

    compose! { "linalg";
        /// Product of two matrices.
        [out] fn mm(input: Tensor, mat2: Tensor) -> Tensor { super::mm(&input, &mat2) }
        /// Inner product of two vectors.
        [out] fn dot(input: Tensor, tensor: Tensor) -> Tensor {
            if input.ndim() != 1 || tensor.ndim() != 1 {
                return Err(Error::runtime(format!(
                    "1D tensors expected, but got {}D and {}D tensors", input.ndim(), tensor.ndim()
                )));
            }
            if input.dtype() != tensor.dtype() {
                return Err(Error::runtime(format!(
                    "dot : expected both vectors to have same dtype, but found {} and {}",
                    input.dtype().scalar_name(), tensor.dtype().scalar_name()
                )));
            }
            if input.numel() != tensor.numel() {
                return Err(Error::runtime(format!(
                    "inconsistent tensor size, expected tensor [{}] and src [{}] to have the same number of elements, but \
                     got {} and {} elements respectively", input.numel(), tensor.numel(), input.numel(), tensor.numel()
                )));
            }
            if input.dtype() == DType::Bool {
                return Err(Fault::NoKernel { op: "dot", dtype: DType::Bool }.into());
            }
            inner_product(&input, &tensor)
        }
        /// Matrix product; vectors are rows on the left and columns on the right, batches broadcast.
        [out] fn matmul(input: Tensor, other: Tensor) -> Tensor {
            let (x, y) = (input.ndim(), other.ndim());
            if x == 0 || y == 0 {
                return Err(Error::runtime(format!(
                    "both arguments to matmul need to be at least 1D, but they are {x}D and {y}D"
                )));
            }
            match (x, y) {
                (2, 2) => mm(input, other),
                (1, 1) => dot(input, other),
                (2, 1) => crate::ops::product::mv(&input, &other),
                (1, 2) => first_row(mm(unsqueeze(&input, 0)?, other)?),
                _ if folds(&input, &other) => folded(&input, &other),
                _ => of_batches(&input, &other),
            }
        }
    }
}
pub use more::{COMPOSED, dot, matmul};
