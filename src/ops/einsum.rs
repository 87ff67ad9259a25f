//! Einstein's summation: letters name dimensions, repeated ones meet, and those missing from the result are summed.

use super::arithmetic::mul;
use super::linalg::bmm;
use super::macros::compose;
use super::row::{Ints, Several};
use super::view::{diagonal, permute, reshape, unsqueeze};
use crate::base::{Dims, Error, Result};
use crate::tensor::Tensor;

/// A dimension's name: a letter, or a place in the ellipsis, counted from its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Name {
    Letter(char),
    Rest(usize),
}

struct Plan {
    inputs: Vec<Vec<Name>>,
    output: Vec<Name>,
}

fn bad(message: impl Into<String>) -> Error {
    Error::runtime(format!("einsum(): {}", message.into()))
}

/// The names of one operand; the ellipsis stands for the dimensions that are left.
fn names(text: &str, ndim: Option<usize>, at: usize) -> Result<Vec<Name>> {
    let (mut out, mut dots) = (Vec::new(), None);
    let letters: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    let mut i = 0;
    while i < letters.len() {
        match letters[i] {
            '.' if letters[i..].starts_with(&['.', '.', '.']) && dots.is_none() => {
                dots = Some(out.len());
                i += 3;
            }
            '.' => return Err(bad(format!("found '.' for operand {at} that is not part of any ellipsis"))),
            c if c.is_ascii_alphabetic() => {
                out.push(Name::Letter(c));
                i += 1;
            }
            _ => {
                return Err(bad(format!(
                    "invalid subscript given at index {i} in the equation string, subscripts must be in [a-zA-Z]"
                )));
            }
        }
    }
    let Some(ndim) = ndim else {
        // The result's ellipsis is filled in later: its place is marked.
        if let Some(place) = dots {
            out.insert(place, Name::Rest(usize::MAX));
        }
        return Ok(out);
    };
    let fits = if dots.is_some() { out.len() <= ndim } else { out.len() == ndim };
    if !fits {
        let rule = if dots.is_some() { "is more than" } else { "does not match" };
        let end = if dots.is_some() { "" } else { " and no ellipsis was given" };
        return Err(bad(format!(
            "the number of subscripts in the equation ({}) {rule} the number of dimensions ({ndim}) for operand {at}{end}",
            out.len()
        )));
    }
    if let Some(place) = dots {
        let count = ndim - out.len();
        out.splice(place..place, (0..count).rev().map(Name::Rest));
    }
    Ok(out)
}

fn parse(equation: &str, operands: &[Tensor]) -> Result<Plan> {
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (equation, None),
    };
    let parts: Vec<&str> = left.split(',').collect();
    if parts.len() != operands.len() {
        let which = if parts.len() > operands.len() { "fewer" } else { "more" };
        return Err(bad(format!("{which} operands were provided than specified in the equation")));
    }
    let inputs = parts
        .iter()
        .zip(operands)
        .enumerate()
        .map(|(i, (part, t))| names(part, Some(t.ndim()), i))
        .collect::<Result<Vec<_>>>()?;
    let depth = inputs
        .iter()
        .flatten()
        .filter_map(|n| if let Name::Rest(i) = n { Some(i + 1) } else { None })
        .max()
        .unwrap_or(0);
    let output = match right {
        Some(text) => {
            let mut out = names(text, None, 0)?;
            if let Some(place) = out.iter().position(|n| matches!(n, Name::Rest(_))) {
                out.splice(place..=place, (0..depth).rev().map(Name::Rest));
            }
            for (i, name) in out.iter().enumerate() {
                let Name::Letter(c) = name else { continue };
                if out[..i].contains(name) {
                    return Err(bad(format!("output subscript {c} appears more than once in the output")));
                }
                if !inputs.iter().flatten().any(|n| n == name) {
                    return Err(bad(format!(
                        "output subscript {c} does not appear in the equation for any input operand"
                    )));
                }
            }
            out
        }
        // The ellipsis, then the letters that occur once, in order of the alphabet.
        None => {
            let all: Vec<Name> = inputs.iter().flatten().copied().collect();
            let mut once: Vec<char> = all
                .iter()
                .filter_map(|n| if let Name::Letter(c) = n { Some(*c) } else { None })
                .filter(|c| all.iter().filter(|n| **n == Name::Letter(*c)).count() == 1)
                .collect();
            once.sort_unstable();
            (0..depth).rev().map(Name::Rest).chain(once.into_iter().map(Name::Letter)).collect()
        }
    };
    Ok(Plan { inputs, output })
}

/// An operand with named dimensions, each name once.
struct Named {
    t: Tensor,
    names: Vec<Name>,
}

impl Named {
    /// Repeated names become their diagonal.
    fn new(t: &Tensor, names: &[Name]) -> Result<Named> {
        let (mut t, mut names) = (t.clone(), names.to_vec());
        while let Some((i, j)) = twice(&names) {
            let shape = t.shape();
            if shape[i] != shape[j] {
                return Err(bad(format!(
                    "a subscript is repeated for an operand, but the sizes don't match, {} != {}",
                    shape[j], shape[i]
                )));
            }
            t = diagonal(&t, 0, i as i64, j as i64)?;
            let name = names.remove(j);
            names.remove(i);
            names.push(name);
        }
        Ok(Named { t, names })
    }

    fn size(&self, name: Name) -> Option<usize> {
        self.names.iter().position(|&n| n == name).map(|d| self.t.shape()[d])
    }

    /// Summed over the names that nobody needs any more.
    fn without(self, needed: impl Fn(Name) -> bool) -> Result<Named> {
        let gone: Ints =
            (0..self.names.len()).filter(|&d| !needed(self.names[d])).map(|d| d as i64).collect();
        if gone.is_empty() {
            return Ok(self);
        }
        let t = super::reduce::sum(&self.t, Some(gone), false, None)?;
        Ok(Named { t, names: self.names.into_iter().filter(|&n| needed(n)).collect() })
    }

    /// With its dimensions in this order, size 1 where it lacks one.
    fn arranged(&self, order: &[Name]) -> Result<Tensor> {
        let present: Ints =
            order.iter().filter_map(|n| self.names.iter().position(|m| m == n)).map(|d| d as i64).collect();
        let in_order = present.iter().enumerate().all(|(i, &d)| i as i64 == d);
        let mut t = if in_order { self.t.clone() } else { permute(&self.t, present)? };
        for (d, name) in order.iter().enumerate() {
            if !self.names.contains(name) {
                t = unsqueeze(&t, d as i64)?;
            }
        }
        Ok(t)
    }
}

fn twice(names: &[Name]) -> Option<(usize, usize)> {
    (0..names.len()).find_map(|j| names[..j].iter().position(|n| *n == names[j]).map(|i| (i, j)))
}

/// Two operands made one: shared names that are no longer needed are contracted by a batched matrix product.
fn contract(a: Named, b: Named, needed: impl Fn(Name) -> bool) -> Result<Named> {
    let only =
        |x: &Named, y: &Named| x.names.iter().copied().filter(|n| !y.names.contains(n)).collect::<Vec<_>>();
    let (rows, columns) = (only(&a, &b), only(&b, &a));
    let shared: Vec<Name> = a.names.iter().copied().filter(|n| b.names.contains(n)).collect();
    let whole = |n: &Name| a.size(*n) == b.size(*n);
    // A stretched name cannot be contracted by a product of matrices: it is kept, and summed afterwards.
    let (summed, kept): (Vec<Name>, Vec<Name>) = shared.into_iter().partition(|n| !needed(*n) && whole(n));
    let names: Vec<Name> = kept.iter().chain(&rows).chain(&columns).copied().collect();
    if summed.is_empty() {
        let t = mul(&a.arranged(&names)?, &b.arranged(&names)?)?;
        return Named { t, names }.without(needed);
    }
    let order = |free: &[Name]| kept.iter().chain(free).chain(&summed).copied().collect::<Vec<_>>();
    let (left, right) = (a.arranged(&order(&rows))?, b.arranged(&order(&columns))?);
    let (sl, sr) = (left.shape(), right.shape());
    let k = kept.len();
    let batch = crate::base::broadcast(&sl[..k], &sr[..k])?;
    let flat = |t: &Tensor, s: &Dims, free: usize| -> Result<Tensor> {
        let mut wide = batch.clone();
        wide.extend_from_slice(&s[k..]);
        let t = super::view::expand(t, super::view::ints(&wide))?;
        let inner = s[k + free..].iter().product();
        reshape(&t, &[batch.iter().product(), s[k..k + free].iter().product(), inner])
    };
    let x = flat(&left, &sl, rows.len())?;
    let y = flat(&right, &sr, columns.len())?;
    let out = bmm(&x, &super::view::transpose(&y, 1, 2)?)?;
    let mut shape = batch.clone();
    shape.extend_from_slice(&sl[k..k + rows.len()]);
    shape.extend_from_slice(&sr[k..k + columns.len()]);
    Named { t: super::view::reshape_to(&out, &super::view::ints(&shape))?, names }.without(needed)
}

/// Sizes of equal names agree, or are 1.
fn check_sizes(operands: &[Named]) -> Result<()> {
    for (i, operand) in operands.iter().enumerate() {
        for (d, &name) in operand.names.iter().enumerate() {
            let own = operand.t.shape()[d];
            for other in &operands[..i] {
                if let Some(size) = other.size(name).filter(|&s| s != own && s != 1 && own != 1) {
                    let letter = if let Name::Letter(c) = name { c } else { '.' };
                    return Err(bad(format!(
                        "subscript {letter} has size {own} for operand {i} which does not broadcast with previously seen \
                         size {size}"
                    )));
                }
            }
        }
    }
    Ok(())
}

compose! { "linalg";
    /// Sums of products as an equation says: `einsum('ij,jk->ik', a, b)`.
    [no_method] fn einsum(equation: String, operands: Several) -> Tensor {
        if operands.0.is_empty() {
            return Err(bad("must provide at least one operand"));
        }
        let plan = parse(&equation, &operands.0)?;
        let mut queue = operands.0.iter().zip(&plan.inputs).map(|(t, n)| Named::new(t, n)).collect::<Result<Vec<_>>>()?;
        check_sizes(&queue)?;
        queue.reverse();
        let mut result = queue.pop().ok_or_else(|| bad("must provide at least one operand"))?;
        loop {
            let later: Vec<Name> = queue.iter().flat_map(|o| o.names.iter().copied()).collect();
            let Some(next) = queue.pop() else { break };
            let coming: Vec<Name> = queue.iter().flat_map(|o| o.names.iter().copied()).collect();
            result = result.without(|n| later.contains(&n) || plan.output.contains(&n))?;
            let next = next.without(|n| result.names.contains(&n) || coming.contains(&n) || plan.output.contains(&n))?;
            result = contract(result, next, |n| coming.contains(&n) || plan.output.contains(&n))?;
        }
        let result = result.without(|n| plan.output.contains(&n))?;
        result.arranged(&plan.output)
    }
}
