//! Complex arithmetic by real arithmetic, for devices whose shaders have no complex numbers: an operator runs
//! by the formula that its row declares. This is slower than a complex kernel, but the data stay on the
//! device.

use crate::base::Result;
use crate::operator::bodies::{carry, parts};
use crate::operator::pointwise::complex_formula::{Complex, Formula, FormulaResult};
use crate::operator::pointwise::execute::Input;
use crate::operator::row::grad_value::V;
use crate::tensor::{Body, Tensor, mode};

fn read(input: &Input) -> Result<Complex> {
    let real = |body: &Body| V::from(Tensor::new(body.clone()));
    Ok(match input {
        Input::Scalar(s) => Complex::new(V::from(s.as_f64()), V::from(s.imaginary())),
        // A 0-d operand on the CPU.
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

/// Computes an operator into `out`. Returns false if the formula does not fit the number of operands.
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
            FormulaResult::Real(value) => put(out, value)?,
            FormulaResult::Complex(value) => {
                let [re, im] = parts(out)?;
                put(&re, value.re)?;
                put(&im, value.im)?;
            }
        }
        Ok(true)
    })
}
