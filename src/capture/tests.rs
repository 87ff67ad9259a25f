//! Captures of kernels that run while they are captured, and their replays, without operators.

use crate::base::{DType, Device, Error, Result};
use crate::capture::{Capture, Program, Recorder, Replayed, constant, run};
use crate::storage::access;
use crate::tensor::{Body, Tensor};

fn vector(values: &[f32]) -> Result<Tensor> {
    let body = Body::new(&[values.len()], DType::F32, Device::Cpu)?;
    write(&body, values)?;
    Ok(Tensor::new(body))
}

fn write(body: &Body, values: &[f32]) -> Result<()> {
    // SAFETY: the body has as many elements.
    unsafe { body.host()?.ptr.cast::<f32>().copy_from_nonoverlapping(values.as_ptr(), values.len()) };
    Ok(())
}

fn read(tensor: &Tensor) -> Result<Vec<f32>> {
    let body = tensor.body();
    // SAFETY: the body is dense.
    Ok(unsafe { std::slice::from_raw_parts(body.host()?.ptr.cast::<f32>(), body.numel()) }.to_vec())
}

/// A kernel: `out[i] = a[i] + b[i]`.
fn add_into(out: &Body, a: &Body, b: &Body) -> Result<()> {
    let kernel = |out: &Body, a: &Body, b: &Body| {
        let (to, a, b) =
            (out.host()?.ptr.cast::<f32>(), a.host()?.ptr.cast::<f32>(), b.host()?.ptr.cast::<f32>());
        for i in 0..out.numel() {
            // SAFETY: all bodies are dense and have as many elements.
            unsafe { to.add(i).write(a.add(i).read() + b.add(i).read()) };
        }
        Ok(())
    };
    let keep = |recorder: &mut Recorder| {
        let (out, a, b) = (recorder.stand_in(out)?, recorder.stand_in(a)?, recorder.stand_in(b)?);
        Ok(move || kernel(&out, &a, &b))
    };
    run(keep, || kernel(out, a, b))
}

fn add(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let out = Body::new(&a.shape(), DType::F32, Device::Cpu)?;
    add_into(&out, &a.body(), &b.body())?;
    Ok(Tensor::new(out))
}

fn program(known: &[Tensor], call: impl FnOnce() -> Result<Vec<Tensor>>) -> Result<(Program, Vec<Tensor>)> {
    program_of(known, known.len(), call)
}

/// A program that is given the first `given` known tensors, while the others are fixed.
fn program_of(
    known: &[Tensor],
    given: usize,
    call: impl FnOnce() -> Result<Vec<Tensor>>,
) -> Result<(Program, Vec<Tensor>)> {
    let capture = Capture::begin(true)?;
    let results = call()?;
    Ok((capture.end_call()?.program(known, given, &results, || (), true)?, results))
}

fn replay(program: &Program, known: &[&Tensor]) -> Result<Vec<Tensor>> {
    match program.replay(known, &[]).map_err(|failed| failed.error)? {
        Replayed::Results(results) => Ok(results),
        Replayed::Refused(why) => Err(Error::runtime(why)),
    }
}

#[test]
fn kernels_run_in_the_captured_call_and_in_each_replay() -> Result<()> {
    let (x, y) = (vector(&[1.0, 2.0])?, vector(&[10.0, 20.0])?);
    let (program, first) = program(&[x.clone(), y.clone()], || {
        let sum = add(&x, &y)?;
        let twice = add(&sum, &sum)?;
        Ok(vec![add(&twice, &x)?])
    })?;
    assert_eq!(read(&first[0])?, [23.0, 46.0]);
    assert_eq!((program.kernels(), program.used()), (3, &[0, 1][..]));
    let z = vector(&[5.0, 5.0])?;
    let results = replay(&program, &[&z, &y])?;
    assert_eq!(read(&results[0])?, [35.0, 55.0]);
    assert_eq!(read(&first[0])?, [23.0, 46.0], "a replay has results of its own");
    let longer = vector(&[0.0; 3])?;
    assert!(replay(&program, &[&longer, &y]).is_err());
    Ok(())
}

#[test]
fn bodies_are_not_held_while_they_are_captured() -> Result<()> {
    let x = vector(&[1.0])?;
    let capture = Capture::begin(true)?;
    let sum = add(&x, &x)?;
    assert!(sum.body().storage.is_unique() && x.body().storage.is_unique());
    drop(add(&sum, &x)?);
    assert!(capture.end_call()?.program(std::slice::from_ref(&x), 1, &[sum], || (), true).is_ok());
    assert!(x.body().storage.is_unique());
    Ok(())
}

#[test]
fn writes_to_older_tensors_are_repeated_and_counted() -> Result<()> {
    let (x, y) = (vector(&[1.0])?, vector(&[2.0])?);
    let (program, _) = program(&[x.clone(), y.clone()], || {
        add_into(&x.body(), &x.body(), &y.body())?;
        x.body().storage.bump_by(1);
        Ok(vec![x.clone()])
    })?;
    let z = vector(&[7.0])?;
    let results = replay(&program, &[&z, &y])?;
    assert!(results[0].same(&z) && z.version() == 1 && x.version() == 1);
    assert_eq!((read(&x)?, read(&z)?), (vec![3.0], vec![9.0]));
    assert!(replay(&program, &[&y, &y]).is_err(), "the tensors did not share memory in the captured call");
    Ok(())
}

#[test]
fn gradients_are_set_and_their_memory_is_used_again() -> Result<()> {
    let (w, x) = (vector(&[1.0])?, vector(&[2.0])?);
    w.set_requires_grad(true)?;
    w.set_grad(Some(vector(&[0.0])?));
    let (program, _) = program(&[w.clone(), x.clone()], || {
        w.set_grad(None);
        let grad = add(&x, &x)?;
        w.update_grad(|_| Ok(grad))?;
        Ok(Vec::new())
    })?;
    let id = |grad: Option<Tensor>| grad.map(|grad| grad.body().storage.id());
    replay(&program, &[&w, &x])?;
    let first = id(w.grad());
    write(&x.body(), &[5.0])?;
    replay(&program, &[&w, &x])?;
    assert_eq!(id(w.grad()), first);
    let held = w.grad();
    replay(&program, &[&w, &x])?;
    assert_ne!(id(w.grad()), id(held.clone()));
    let grads = [held, w.grad()].into_iter().flatten();
    assert!(grads.map(|grad| read(&grad)).all(|values| values.is_ok_and(|values| values == [10.0])));
    Ok(())
}

#[test]
fn gradients_of_fixed_tensors_are_kept_until_somebody_has_seen_one() -> Result<()> {
    let (w, x) = (vector(&[1.0])?, vector(&[2.0])?);
    w.set_requires_grad(true)?;
    w.set_grad(Some(vector(&[0.0])?));
    let (program, _) = program_of(&[x.clone(), w.clone()], 1, || {
        w.set_grad(None);
        let grad = add(&x, &x)?;
        w.update_grad(|_| Ok(grad))?;
        Ok(vec![add(&x, &w)?])
    })?;
    let id = |grad: Option<Tensor>| grad.map(|grad| grad.body().storage.id());
    for value in [3.0, 4.0, 5.0] {
        write(&x.body(), &[value])?;
        assert_eq!(read(&replay(&program, &[&x])?[0])?, [value + 1.0]);
        let value_of = |grad: Option<&Tensor>| grad.map(read);
        let grad = w.try_see_grad(value_of).flatten().transpose()?;
        assert_eq!(grad, Some(vec![2.0 * value]));
    }
    let held = w.grad();
    write(&x.body(), &[6.0])?;
    replay(&program, &[&x])?;
    assert_ne!(id(w.grad()), id(held.clone()));
    assert_eq!(held.as_ref().map(read).transpose()?, Some(vec![10.0]));
    w.set_grad(None);
    replay(&program, &[&x])?;
    assert_eq!(w.grad().as_ref().map(read).transpose()?, Some(vec![12.0]));
    Ok(())
}

#[test]
fn constants_are_written_again() -> Result<()> {
    let x = vector(&[1.0, 2.0])?;
    let (program, _) = program(std::slice::from_ref(&x), || {
        let ours = Body::new(&[2], DType::F32, Device::Cpu)?;
        constant(&ours, |start| {
            // SAFETY: the body has two elements.
            unsafe { start.cast::<[f32; 2]>().write([3.0, 4.0]) };
            Ok::<(), Error>(())
        })?;
        Ok(vec![add(&x, &Tensor::new(ours))?])
    })?;
    for _ in 0..2 {
        assert_eq!(read(&replay(&program, &[&x])?[0])?, [4.0, 6.0]);
    }
    Ok(())
}

#[test]
fn what_cannot_be_replayed_has_a_reason_and_runs() -> Result<()> {
    let (x, y) = (vector(&[1.0])?, vector(&[2.0])?);
    let reason = |known: &[Tensor], call: &dyn Fn() -> Result<Vec<Tensor>>| match program(known, call) {
        Ok(_) => "none".to_owned(),
        Err(error) => error.to_string(),
    };
    assert!(
        reason(std::slice::from_ref(&x), &|| Ok(vec![add(&x, &y)?])).contains("neither was given nor read")
    );
    let read_one = || {
        let sum = add(&x, &y)?;
        assert_eq!(read(&sum)?, [3.0]);
        assert!(access::reason().is_some());
        Ok(vec![add(&sum, &sum)?])
    };
    assert!(reason(&[x.clone(), y.clone()], &read_one).contains("reads or writes elements"));
    let kept = std::cell::RefCell::new(None);
    let keep = || {
        kept.replace(Some(add(&x, &y)?));
        Ok(Vec::new())
    };
    assert!(reason(&[x.clone(), y.clone()], &keep).contains("outlives it"));
    assert!(reason(&[x.clone(), y.clone()], &|| Ok(vec![add(&x, &y)?])) == "none");
    assert!(!access::captures() && access::reason().is_none());
    Ok(())
}
