//! Complex arithmetic out of real arithmetic, for devices whose shaders know real numbers only: each operator by the
//! formula of its parts, which its row names. Slower than a kernel of its own would be, but all of it runs where the operands
//! are.

use crate::base::Result;
use crate::operator::grad_value::V;
use crate::operator::kernel::{carry, parts};
use crate::operator::pointwise::complex_formula::{Complex, Formula, Made};
use crate::operator::pointwise::execute::Input;
use crate::tensor::{Body, Tensor, mode};

fn read(input: &Input) -> Result<Complex> {
    let real = |body: &Body| V::from(Tensor::new(body.clone()));
    Ok(match input {
        Input::Scalar(s) => Complex::new(V::from(s.as_f64()), V::from(s.imaginary())),
        // A number from another device.
        Input::Body(body) if body.device().is_cpu() => {
            let s = Tensor::new((*body).clone()).item()?;
            Complex::new(V::from(s.as_f64()), V::from(s.imaginary()))
        }
        Input::Body(body) if body.dtype.is_complex() => {
            let [re, im] = parts(body)?;
            Complex::new(real(&re), real(&im))
        }
        Input::Body(body) => Complex::new(real(body), V::from(0.0)),
    })
}

/// Fills `out` with what the operator makes of the inputs; false where the formula is of other operands.
pub fn execute(formula: Formula, out: &Body, inputs: &[Input]) -> Result<bool> {
    mode::with_grad(false, || {
        let operands = inputs.iter().map(read).collect::<Result<Vec<_>>>()?;
        let Some(made) = formula(&operands) else { return Ok(false) };
        let put = |to: &Body, value: V| -> Result<()> {
            let value = value.tensor()?;
            let layout = value.body().layout.broadcast_to(out.shape());
            carry(to, &value.body().with_layout(layout))
        };
        match made {
            Made::Real(value) => put(out, value)?,
            Made::Complex(value) => {
                let [re, im] = parts(out)?;
                put(&re, value.re)?;
                put(&im, value.im)?;
            }
        }
        Ok(true)
    })
}
