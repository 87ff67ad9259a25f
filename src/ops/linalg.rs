//! Products of matrices and vectors.

use super::kernel::matmul as multiply;
use super::macros::ops;
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
fn batched(a: &Body, b: &Body) -> Result<Body> {
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
    let out = Body::new(&shaped(m, n), a.dtype, a.device())?;
    multiply(&out, &a, &b, 1.0, 0.0)?;
    Ok(out)
}

ops! { "linalg";
    /// Product of two matrices.
    [out, multilinear] fn mm(input, mat2) -> y {
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
        batched(&a, &b)
    }
    input: |g, mat2| g.matmul(mat2.mh());
    mat2: |g, input| input.mh().matmul(g);
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
        same_dtype(input, mat2)?;
        batched(&a, &b)
    }
    input: |g, mat2| g.matmul(mat2.mh());
    mat2: |g, input| input.mh().matmul(g);
    /// Inner product of two vectors.
    [hidden, multilinear] fn inner_product(input, tensor) -> y {
        let (a, b) = (input.body(), tensor.body());
        let row = a.with_layout(a.layout.unsqueeze(0)?);
        let column = b.with_layout(b.layout.unsqueeze(1)?);
        let out = batched(&row, &column)?;
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
    use crate::ops::view::{reshape, unsafe_view, unsqueeze};
    compose! { "linalg";
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
            if (x, y) == (2, 2) {
                return mm(&input, &other);
            }
            if (x, y) == (1, 1) {
                return dot(input, other);
            }
            if (x, y) == (2, 1) {
                return crate::ops::product::mv(&input, &other);
            }
            let a = if x == 1 { unsqueeze(&input, 0)? } else { input.clone() };
            let b = if y == 1 { unsqueeze(&other, 1)? } else { other.clone() };
            let (sa, sb) = (a.shape(), b.shape());
            if sa[sa.len() - 1] != sb[sb.len() - 2] {
                return Err(Error::runtime(if y == 1 && x == 2 {
                    format!("size mismatch, got input ({}), mat ({}x{}), vec ({})", sa[0], sa[0], sa[1], sb[0])
                } else {
                    format!(
                        "mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})",
                        sa[..sa.len() - 1].iter().product::<usize>(), sa[sa.len() - 1], sb[sb.len() - 2], sb[sb.len() - 1]
                    )
                }));
            }
            if (x, y) == (1, 2) && !input.is_batched() && !other.is_batched() {
                return crate::ops::relayout::first_row(mm(&a, &b)?);
            }
            // A batch times one matrix or vector is one tall product.
            let out = if sb.len() == 2 && sa.len() > 2 {
                let rows = sa[..sa.len() - 1].iter().product();
                let tall = reshape(&a, &[rows, sa[sa.len() - 1]])?;
                let mut shape = Dims::from_slice(&sa[..sa.len() - 1]);
                if y == 1 {
                    return unsafe_view(&crate::ops::product::mv(&tall, &other)?, shape);
                }
                shape.push(sb[1]);
                unsafe_view(&mm(&tall, &b)?, shape)?
            } else {
                let out = product(&a, &b)?;
                // PyTorch multiplies views of its own here: these stay what they are when the operands get other data.
                if let Some(made) = out.history() {
                    made.node.keep_saved();
                }
                if (x, y) == (3, 3) && sa[0] == sb[0] { unsafe_view(&out, out.shape())? } else { out }
            };
            if x > 1 && y > 1 {
                return Ok(out);
            }
            let mut shape = out.shape();
            if y == 1 {
                shape.pop();
            }
            if x == 1 {
                shape.remove(shape.len() - if y == 1 { 1 } else { 2 });
            }
            unsafe_view(&out, shape)
        }
    }
}
pub use more::{COMPOSED, dot, matmul};
