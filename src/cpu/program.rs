//! Runs a program over the elements of several tensors: all of its instructions for one tile after another, while the
//! tile stays in the cache. Memory is read once, and no intermediate tensor is made.

use super::cast::convert::{narrow, widen};
use super::cast::tile::Tile;
use super::par::{GRAIN, ranges};
use super::simd::simd_fn;
use super::strided_run::{RunBuffers, StridedRun, TILE};
use super::walk::Walk;
use crate::base::program::{Code, Instruction, Op, Source};
use crate::base::{DType, Strided};
use smallvec::SmallVec;
use std::array::from_fn;
use std::mem::MaybeUninit;
use std::ops::Range;

/// The largest number of operands of a program.
pub const MAX_OPERANDS: usize = 8;
/// The largest number of registers of a program.
pub const MAX_REGISTERS: usize = 24;

/// One run of a program: its operands, which share a shape and a dtype, and its numbers.
pub struct Job<'a> {
    pub operands: &'a [Strided<'a>],
    pub numbers: &'a [f64],
    /// True if each instruction rounds to the operands' dtype, as operators do; false if only the last one does.
    pub rounds: bool,
}

/// Runs the jobs. If they are `apart`, all run at once, on several threads if there is enough work; otherwise they run
/// one after another.
///
/// # Safety
/// All operands are valid and of their job's shape. An operand that a job writes overlaps neither itself nor another
/// operand, unless both have the same layout; if the jobs are `apart`, it overlaps no operand of another job either.
pub unsafe fn run(code: &Code, jobs: &[Job], apart: bool) {
    debug_assert!(code.operands <= MAX_OPERANDS && code.registers <= MAX_REGISTERS);
    if !apart {
        // SAFETY: the caller's contract, for each job.
        jobs.iter().for_each(|job| unsafe { run(code, std::slice::from_ref(job), true) });
        return;
    }
    let mut starts: SmallVec<[usize; 64]> = SmallVec::new();
    let mut total = 0;
    for job in jobs {
        starts.push(total);
        total += job.operands[0].numel();
    }
    // A program costs about as much as ten operators, with some margin.
    ranges(total, GRAIN / 4, |range| {
        let first = starts.partition_point(|&start| start <= range.start).saturating_sub(1);
        for (job, &start) in jobs[first..].iter().zip(&starts[first..]) {
            if start >= range.end {
                break;
            }
            let n = job.operands[0].numel();
            let part = range.start.saturating_sub(start)..(range.end - start).min(n);
            // SAFETY: the caller's contract; ranges do not overlap.
            unsafe { run_part(code, job, part) };
        }
    });
}

/// Runs the elements `part` of a job.
unsafe fn run_part(code: &Code, job: &Job, part: Range<usize>) {
    if part.is_empty() {
        return;
    }
    let first = &job.operands[0];
    let compute = if first.dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let alike = first.is_contiguous() && job.operands.iter().all(|x| x.strides == first.strides);
    let mut tiles = [const { Tile::empty() }; MAX_REGISTERS];
    let mut rooms = [const { RunBuffers::empty() }; MAX_OPERANDS];
    let mut run = |offsets: [usize; MAX_OPERANDS], steps: [usize; MAX_OPERANDS], n: usize| {
        let lines: SmallVec<[StridedRun; MAX_OPERANDS]> =
            job.operands.iter().zip(steps).map(|(x, step)| StridedRun::reader(x, step, compute)).collect();
        // A single instruction without registers of its own needs no tiles.
        let no_tiles = code.instructions.len() == 1 && code.registers == code.operands;
        let most = if no_tiles && lines.iter().all(StridedRun::is_direct) { n } else { TILE };
        let mut done = 0;
        while done < n {
            let len = (n - done).min(most);
            let mut registers = [std::ptr::null_mut(); MAX_REGISTERS];
            let at = |k: usize| offsets[k].wrapping_add(done.wrapping_mul(steps[k]));
            // SAFETY: the walk stays inside the operands, and a tile has room for `len` elements.
            unsafe {
                for (k, line) in lines.iter().enumerate() {
                    registers[k] = line.read(at(k), len, &mut rooms[k]).cast_mut();
                }
                for (register, tile) in registers[lines.len()..].iter_mut().zip(&mut tiles) {
                    *register = tile.at();
                }
                let rounds = if job.rounds { first.dtype } else { compute };
                match compute {
                    DType::F64 => run_f64(&code.instructions, len, &registers, job.numbers),
                    _ if rounds == compute => run_f32(&code.instructions, len, &registers, job.numbers),
                    _ => run_rounded(&code.instructions, len, &registers, job.numbers, rounds),
                }
                for &(k, from) in &code.results {
                    let k = usize::from(k);
                    let line = StridedRun::writer(&job.operands[k], steps[k], compute);
                    line.write(registers[usize::from(from)], at(k), len, &mut rooms[k]);
                }
            }
            done += len;
        }
    };
    if alike {
        return run([part.start; MAX_OPERANDS], [1; MAX_OPERANDS], part.len());
    }
    // Walk in the memory order of the first operand, which is the parameter; its state usually has the same.
    let mut dims: SmallVec<[usize; 6]> = (0..first.shape.len()).collect();
    dims.sort_by_key(|&d| std::cmp::Reverse(first.strides[d]));
    let strides = from_fn(|k| job.operands.get(k).map_or(first.strides, |x| x.strides));
    Walk::<MAX_OPERANDS>::over(&dims, first.shape, strides).runs(part, run);
}

/// The types that a program computes in.
trait Real: Copy + 'static {
    const ONE: Self;
    const ZERO: Self;
    fn of(x: f64) -> Self;
    fn negate(self) -> Self;
    fn absolute(self) -> Self;
    fn root(self) -> Self;
    fn power(self, other: Self) -> Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn over(self, other: Self) -> Self;
    /// `self * by + to`, rounded once, as PyTorch's compiler does it.
    fn times_plus(self, by: Self, to: Self) -> Self;
    fn less(self, other: Self) -> bool;
    fn equal(self, other: Self) -> bool;
    fn is_nan(self) -> bool;
    #[inline(always)]
    fn truth(yes: bool) -> Self {
        if yes { Self::ONE } else { Self::ZERO }
    }
}

macro_rules! real {
    ($($t:ty),*) => { $(impl Real for $t {
        const ONE: $t = 1.0;
        const ZERO: $t = 0.0;
        #[inline(always)]
        fn of(x: f64) -> $t { x as $t }
        #[inline(always)]
        fn negate(self) -> $t { -self }
        #[inline(always)]
        fn absolute(self) -> $t { self.abs() }
        #[inline(always)]
        fn root(self) -> $t { self.sqrt() }
        #[inline(always)]
        fn power(self, other: $t) -> $t { self.powf(other) }
        #[inline(always)]
        fn plus(self, other: $t) -> $t { self + other }
        #[inline(always)]
        fn minus(self, other: $t) -> $t { self - other }
        #[inline(always)]
        fn times(self, other: $t) -> $t { self * other }
        #[inline(always)]
        fn over(self, other: $t) -> $t { self / other }
        #[inline(always)]
        fn times_plus(self, by: $t, to: $t) -> $t { self.mul_add(by, to) }
        #[inline(always)]
        fn less(self, other: $t) -> bool { self < other }
        #[inline(always)]
        fn equal(self, other: $t) -> bool { self == other }
        #[inline(always)]
        fn is_nan(self) -> bool { <$t>::is_nan(self) }
    })* };
}
real!(f32, f64);

/// An argument of a loop: one element per iteration, or the same number for all.
trait Argument<T>: Copy {
    /// # Safety
    /// The argument has an element `i`.
    unsafe fn at(self, i: usize) -> T;
}

#[derive(Clone, Copy)]
struct Same<T>(T);

impl<T: Copy> Argument<T> for *const T {
    #[inline(always)]
    unsafe fn at(self, i: usize) -> T {
        // SAFETY: the caller's contract.
        unsafe { *self.add(i) }
    }
}

impl<T: Copy> Argument<T> for Same<T> {
    #[inline(always)]
    unsafe fn at(self, _: usize) -> T {
        self.0
    }
}

/// Writes `f` of the arguments' elements.
///
/// # Safety
/// The arguments have at least as many elements as `to`, and do not overlap it.
#[inline(always)]
unsafe fn each<T: Copy>(
    to: &mut [MaybeUninit<T>],
    a: impl Argument<T>,
    b: impl Argument<T>,
    c: impl Argument<T>,
    f: impl Fn(T, T, T) -> T,
) {
    for (i, to) in to.iter_mut().enumerate() {
        // SAFETY: the caller's contract.
        unsafe { to.write(f(a.at(i), b.at(i), c.at(i))) };
    }
}

/// Like [`each`], for an instruction that writes over its first argument. Compilers only vectorize the loop if they can
/// see that.
///
/// # Safety
/// See [`each`]; the elements of `to` are initialized.
#[inline(always)]
unsafe fn each_over<T: Copy>(
    to: &mut [MaybeUninit<T>],
    b: impl Argument<T>,
    c: impl Argument<T>,
    f: impl Fn(T, T, T) -> T,
) {
    for (i, to) in to.iter_mut().enumerate() {
        // SAFETY: the caller's contract.
        unsafe { to.write(f(to.assume_init_read(), b.at(i), c.at(i))) };
    }
}

/// Runs the instructions over `n` elements.
///
/// # Safety
/// The registers that the code names have `n` elements. An instruction writes no register that it reads, except that of
/// its first argument.
#[inline(always)]
unsafe fn interpret<T: Real>(
    code: &[Instruction],
    n: usize,
    registers: &[*mut u8; MAX_REGISTERS],
    numbers: &[f64],
) {
    let none = Same(T::ZERO);
    for Instruction { op, to, args, .. } in code {
        let own = args[0] == Source::Register(*to);
        // SAFETY: the caller's contract.
        let to: &mut [MaybeUninit<T>] =
            unsafe { std::slice::from_raw_parts_mut(registers[usize::from(*to)].cast(), n) };
        let elements = |k: usize| match args[k] {
            Source::Register(r) => registers[usize::from(r)].cast_const().cast::<T>(),
            Source::Number(_) => std::ptr::null(),
        };
        let number = |k: usize| match args[k] {
            Source::Number(r) => T::of(numbers[usize::from(r)]),
            Source::Register(_) => T::ZERO,
        };
        let is_number = |k: usize| matches!(args[k], Source::Number(_));
        // SAFETY: the caller's contract.
        unsafe {
            macro_rules! loops {
                ($b:expr, $c:expr, $f:expr) => {
                    if own { each_over(to, $b, $c, $f) } else { each(to, elements(0), $b, $c, $f) }
                };
            }
            macro_rules! one {
                (|$a:ident| $value:expr) => {
                    loops!(none, none, |$a: T, _, _| $value)
                };
            }
            macro_rules! two {
                (|$a:ident, $b:ident| $value:expr) => {
                    match (is_number(0), is_number(1)) {
                        (true, _) => each(to, Same(number(0)), elements(1), none, |$a: T, $b: T, _| $value),
                        (_, true) => loops!(Same(number(1)), none, |$a: T, $b: T, _| $value),
                        _ => loops!(elements(1), none, |$a: T, $b: T, _| $value),
                    }
                };
            }
            match op {
                Op::Copy => one!(|a| a),
                Op::Neg => one!(|a| a.negate()),
                Op::Abs => one!(|a| a.absolute()),
                Op::Sign => one!(|a| T::truth(T::ZERO.less(a)).minus(T::truth(a.less(T::ZERO)))),
                Op::Sqrt => one!(|a| a.root()),
                Op::Add => two!(|a, b| a.plus(b)),
                Op::Sub => two!(|a, b| a.minus(b)),
                Op::Mul => two!(|a, b| a.times(b)),
                Op::Div => two!(|a, b| a.over(b)),
                Op::Pow => two!(|a, b| a.power(b)),
                Op::Maximum => two!(|a, b| if a.is_nan() || b.less(a) { a } else { b }),
                Op::Minimum => two!(|a, b| if a.is_nan() || a.less(b) { a } else { b }),
                Op::Gt => two!(|a, b| T::truth(b.less(a))),
                Op::Lt => two!(|a, b| T::truth(a.less(b))),
                Op::Eq => two!(|a, b| T::truth(a.equal(b))),
                Op::Where => {
                    let pick = |condition: T, a: T, b: T| if condition.equal(T::ZERO) { b } else { a };
                    match (is_number(0), is_number(1), is_number(2)) {
                        (true, first, second) => {
                            let (chosen, by_number) =
                                if number(0).equal(T::ZERO) { (2, second) } else { (1, first) };
                            match by_number {
                                true => each(to, Same(number(chosen)), none, none, |a, _, _| a),
                                false => each(to, elements(chosen), none, none, |a, _, _| a),
                            }
                        }
                        (_, true, true) => loops!(Same(number(1)), Same(number(2)), pick),
                        (_, true, _) => loops!(Same(number(1)), elements(2), pick),
                        (_, _, true) => loops!(elements(1), Same(number(2)), pick),
                        _ => loops!(elements(1), elements(2), pick),
                    }
                }
                Op::AddScaled => {
                    let scale = number(2);
                    loops!(elements(1), none, |a, b, _| scale.times_plus(b, a));
                }
                Op::Lerp => {
                    let weight = number(2);
                    if weight.absolute().less(T::of(0.5)) {
                        loops!(elements(1), none, |a, b: T, _| weight.times_plus(b.minus(a), a));
                    } else {
                        let weight = weight.minus(T::ONE);
                        loops!(elements(1), none, |a, b: T, _| weight.times_plus(b.minus(a), b));
                    }
                }
                Op::AddCMul => {
                    let scale = number(3);
                    loops!(elements(1), elements(2), |a: T, b: T, c: T| scale.times(b).times_plus(c, a));
                }
                Op::AddCDiv => {
                    let scale = number(3);
                    loops!(elements(1), elements(2), |a: T, b: T, c: T| a.plus(scale.times(b).over(c)));
                }
            }
        }
    }
}

simd_fn! {
    unsafe fn run_f32(code: &[Instruction], n: usize, registers: &[*mut u8; MAX_REGISTERS], numbers: &[f64]) {
        interpret::<f32>(code, n, registers, numbers)
    }
}

simd_fn! {
    unsafe fn run_f64(code: &[Instruction], n: usize, registers: &[*mut u8; MAX_REGISTERS], numbers: &[f64]) {
        interpret::<f64>(code, n, registers, numbers)
    }
}

/// Runs the instructions with every value rounded to a half dtype, and the numbers as well where they are added, as
/// operators do.
///
/// # Safety
/// See [`run_f32`].
unsafe fn run_rounded(
    code: &[Instruction],
    n: usize,
    registers: &[*mut u8; MAX_REGISTERS],
    numbers: &[f64],
    dtype: DType,
) {
    let (shorten, lengthen) = (narrow(DType::F32, dtype), widen(dtype, DType::F32));
    let added: SmallVec<[f64; 16]> = numbers.iter().map(|&x| dtype.round(x)).collect();
    let mut halves = Tile::empty();
    for instruction in code {
        let to = registers[usize::from(instruction.to)];
        let adds = matches!(instruction.op, Op::Add | Op::Sub | Op::AddScaled);
        // SAFETY: the caller's contract; a tile has room for any register.
        unsafe {
            run_f32(std::slice::from_ref(instruction), n, registers, if adds { &added } else { numbers });
            shorten(n, to, halves.at());
            lengthen(n, halves.at(), to);
        }
    }
}
