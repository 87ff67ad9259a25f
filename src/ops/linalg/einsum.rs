//! `einsum`: letters name dimensions. Dimensions with the same letter are multiplied elementwise; those missing from the result
//! are summed.

use crate::base::try_alloc;
use crate::operator::primitives::views::reshaped;
use crate::ops::linalg::tensordot::pair;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::sum;
use crate::ops::shape::rearrange::movedim;
use crate::ops::shape::slices::diagonal;
use crate::ops::shape::squeeze::unsqueeze;
use crate::ops::shape::view::permute;
use smallvec::smallvec;
use std::collections::{BTreeMap, BTreeSet};

/// The name of a dimension: a letter, or a position in the ellipsis, counted from its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Name {
    Letter(char),
    Rest(usize),
}

struct Equation {
    inputs: Vec<Vec<Name>>,
    output: Vec<Name>,
}

fn bad(message: impl Into<String>) -> Error {
    Error::runtime(format!("einsum(): {}", message.into()))
}

/// Parses the names of one operand. The ellipsis stands for the remaining dimensions.
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
        // The number of the result's dimensions is not known yet, so mark the place of its ellipsis.
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

fn parse(equation: &str, operands: &[Tensor]) -> Result<Equation> {
    try_alloc::check_list(equation.len())?;
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
        // The result has the ellipsis first, then the letters that occur once, in alphabetical order.
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
    Ok(Equation { inputs, output })
}

/// Permutes an operand to the dimensions in `order`. Missing ones get size 1.
fn arrange(t: &Tensor, names: &[Name], order: &[Name]) -> Result<Tensor> {
    let (mut t, mut own): (Tensor, Vec<Name>) = (t.clone(), Vec::new());
    for &name in names {
        let at = own.len() as i64;
        match own.iter().position(|&n| n == name) {
            // A repeated name takes the diagonal.
            Some(first) => {
                let first = first as i64;
                t = movedim(&diagonal(&t, 0, first, at)?, smallvec![-1], smallvec![first])?;
            }
            None => own.push(name),
        }
    }
    for &name in order.iter().filter(|name| !names.contains(name)) {
        t = unsqueeze(&t, -1)?;
        own.push(name);
    }
    let place = |name: &Name| own.iter().position(|n| n == name).unwrap_or(0) as i64;
    permute(&t, order.iter().map(place).collect())
}

/// The names of the result, then those that are summed: the ellipsis first, then letters in alphabetical order.
fn order(plan: &Equation) -> Vec<Name> {
    let rank = |name: &Name| match *name {
        Name::Rest(place) => (0, usize::MAX - place),
        Name::Letter(c) => (1, c as usize),
    };
    let mut summed: Vec<Name> = plan.inputs.concat();
    summed.retain(|name| !plan.output.contains(name));
    summed.sort_by_key(rank);
    summed.dedup();
    [&plan.output[..], &summed].concat()
}

/// Multiplies operands with corresponding dimensions from left to right. Dimensions from `kept` on are summed as soon as no
/// further operand has them.
fn contract(operands: Vec<Tensor>, kept: usize) -> Result<Tensor> {
    let wide = |t: &Tensor, d: usize| t.shape()[d] != 1;
    let ndim = operands.first().map_or(0, Tensor::ndim);
    let mut uses: Vec<usize> = (0..ndim).map(|d| operands.iter().filter(|t| wide(t, d)).count()).collect();
    let alone = operands.len() == 1;
    let mut rest = operands.into_iter();
    let mut result = rest.next().ok_or_else(|| bad("must provide at least one operand"))?;
    if alone {
        let summed: Ints = (kept..ndim).map(|d| d as i64).collect();
        return if summed.is_empty() { Ok(result) } else { sum(&result, Some(summed), false, None) };
    }
    for mut next in rest {
        let (mut both, mut left, mut right) = (Vec::new(), Ints::new(), Ints::new());
        for (d, uses) in uses.iter_mut().enumerate().skip(kept) {
            match (wide(&result, d), wide(&next, d)) {
                (true, true) => {
                    *uses -= 1;
                    if *uses == 1 {
                        both.push(d);
                        *uses = 0;
                    }
                }
                (true, false) if *uses == 1 => left.push(d as i64),
                (false, true) if *uses == 1 => right.push(d as i64),
                _ => {}
            }
        }
        for (t, dims) in [(&mut result, left), (&mut next, right)] {
            if !dims.is_empty() {
                dims.iter().for_each(|&d| uses[d as usize] = 0);
                *t = sum(t, Some(dims), true, None)?;
            }
        }
        result = pair(result, next, &both)?;
    }
    if kept == ndim { Ok(result) } else { reshaped(&result, &result.shape()[..kept]) }
}

/// Dimensions with the same name must have the same size, or size 1; within one operand, the same size.
fn check_sizes(operands: &[Tensor], inputs: &[Vec<Name>]) -> Result<()> {
    let mut seen: Vec<(Name, usize, usize)> = Vec::new();
    for (i, (t, names)) in operands.iter().zip(inputs).enumerate() {
        for (&name, &own) in names.iter().zip(&t.shape()) {
            if let Some(&(.., size)) = seen.iter().find(|s| (s.0, s.1) == (name, i) && s.2 != own) {
                return Err(bad(format!(
                    "a subscript is repeated for an operand, but the sizes don't match, {own} != {size}"
                )));
            }
            if let Some(&(.., size)) = seen.iter().find(|s| s.0 == name && s.2 != own && s.2 != 1 && own != 1)
            {
                let letter = if let Name::Letter(c) = name { c } else { '.' };
                return Err(bad(format!(
                    "subscript {letter} has size {own} for operand {i} which does not broadcast with previously seen size \
                     {size}"
                )));
            }
            seen.push((name, i, own));
        }
    }
    Ok(())
}

/// The floating point operations of multiplying the operands from left to right and summing as early as possible.
fn flops(operands: &[Vec<usize>], equation: Option<&str>) -> u64 {
    let Some(equation) = equation.filter(|text| !text.contains('.')) else { return 0 };
    let equation = equation.replace(' ', "");
    let (inputs, result) =
        equation.split_once("->").map_or((&*equation, None), |(i, r)| (i, Some(r.to_owned())));
    let terms: Vec<&str> = inputs.split(',').collect();
    let operands: Vec<_> = operands.iter().filter(|shape| !shape.is_empty()).take(terms.len()).collect();
    let fits = |(term, shape): (&&str, &&Vec<usize>)| term.chars().count() == shape.len();
    if operands.len() != terms.len() || !terms.iter().zip(&operands).all(fits) {
        return 0;
    }
    let mut sizes = BTreeMap::new();
    for (letter, &size) in
        terms.iter().zip(&operands).flat_map(|(term, shape)| term.chars().zip(shape.iter()))
    {
        let known = sizes.entry(letter).or_insert(1);
        *known = size.max(*known);
    }
    let once = || sizes.keys().filter(|letter| inputs.matches(**letter).count() == 1).collect();
    let result = result.unwrap_or_else(once);
    let mut held: BTreeSet<char> = terms[0].chars().collect();
    let mut count = 0;
    for (at, term) in terms.iter().enumerate().skip(1) {
        held.extend(term.chars());
        count += 2 * held.iter().map(|letter| sizes.get(letter).copied().unwrap_or(1)).product::<usize>();
        let later = |letter: &char| terms[at + 1..].iter().any(|term| term.contains(*letter));
        held.retain(|letter| result.contains(*letter) || later(letter));
    }
    count as u64
}

/// Sum products of tensors as an equation in Einstein's notation says.
///
/// Each dimension has a letter; those that are missing after `->` are summed over. `...` stands for any dimensions,
/// which are broadcast.
///
/// Args:
///     equation: letters of the dimensions of each operand, and after `->` those of the result.
///     operands: the tensors.
///
/// Examples:
///     >>> a, b = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0], [4.0]])
///     >>> torch.einsum("ij,jk->ik", a, b)
///     tensor([[11.]])
///     >>> torch.einsum("ij->j", a)
///     tensor([1., 2.])
#[operator(function, composite, autocast = lower, flops = flops, sample = "fixed([(2, 3), (3, 2)], lambda a, b: T.einsum('ij,jk->ki', a, b))")]
pub fn einsum(equation: String, operands: Several) -> Result<Tensor> {
    if operands.0.is_empty() {
        return Err(bad("must provide at least one operand"));
    }
    let plan = parse(&equation, &operands.0)?;
    check_sizes(&operands.0, &plan.inputs)?;
    let order = order(&plan);
    let arranged = operands.0.iter().zip(&plan.inputs).map(|(t, names)| arrange(t, names, &order));
    contract(arranged.collect::<Result<Vec<_>>>()?, plan.output.len())
}
