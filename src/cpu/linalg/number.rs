//! The numbers, real or complex, that factorizations compute with, and how they are stored.

use crate::base::Result;
use crate::cpu::element::scratch;
use crate::cpu::math::complex::Complex;
use crate::cpu::matmul::{Product, product};
use std::mem::MaybeUninit;
use std::ops::{Add, Div, Mul, Neg, Sub};

pub trait Number:
    Copy
    + Send
    + Sync
    + PartialEq
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + 'static
{
    const COMPLEX: bool;
    /// The real type of its real and imaginary parts.
    type Part: Copy;
    fn new(re: f64, im: f64) -> Self;
    fn re(self) -> f64;
    fn im(self) -> f64;
    fn conj(self) -> Self;
    fn scaled(self, by: f64) -> Self;
    /// `out += alpha * a * b` for matrices of parts.
    ///
    /// # Safety
    /// See [`product`].
    unsafe fn add_product(
        p: Product,
        out: *mut Self::Part,
        a: *const Self::Part,
        b: *const Self::Part,
        alpha: f64,
    ) -> Result<()>;

    fn zero() -> Self {
        Self::new(0.0, 0.0)
    }
    fn one() -> Self {
        Self::new(1.0, 0.0)
    }
    fn real(re: f64) -> Self {
        Self::new(re, 0.0)
    }
    /// The magnitude.
    fn size(self) -> f64 {
        if Self::COMPLEX { self.re().hypot(self.im()) } else { self.re().abs() }
    }
    /// The magnitude by which pivots are chosen.
    fn weight(self) -> f64 {
        if Self::COMPLEX { self.re().abs() + self.im().abs() } else { self.re().abs() }
    }
    /// The square of the magnitude.
    fn square(self) -> f64 {
        if Self::COMPLEX { self.re() * self.re() + self.im() * self.im() } else { self.re() * self.re() }
    }
}

/// A number of double precision.
pub trait Double: Number {
    /// The real and imaginary parts of the numbers.
    fn parts(items: &mut [Self]) -> &mut [f64];
}

impl Number for f32 {
    const COMPLEX: bool = false;
    type Part = f32;
    #[inline(always)]
    fn new(re: f64, _: f64) -> f32 {
        re as f32
    }
    #[inline(always)]
    fn re(self) -> f64 {
        self.into()
    }
    #[inline(always)]
    fn im(self) -> f64 {
        0.0
    }
    #[inline(always)]
    fn conj(self) -> f32 {
        self
    }
    #[inline(always)]
    fn scaled(self, by: f64) -> f32 {
        self * by as f32
    }
    unsafe fn add_product(p: Product, out: *mut f32, a: *const f32, b: *const f32, alpha: f64) -> Result<()> {
        // SAFETY: the caller's contract.
        unsafe { product(p, out, a, b, alpha as f32, 1.0) }
    }
}

impl Number for f64 {
    const COMPLEX: bool = false;
    type Part = f64;
    #[inline(always)]
    fn new(re: f64, _: f64) -> f64 {
        re
    }
    #[inline(always)]
    fn re(self) -> f64 {
        self
    }
    #[inline(always)]
    fn im(self) -> f64 {
        0.0
    }
    #[inline(always)]
    fn conj(self) -> f64 {
        self
    }
    #[inline(always)]
    fn scaled(self, by: f64) -> f64 {
        self * by
    }
    unsafe fn add_product(p: Product, out: *mut f64, a: *const f64, b: *const f64, alpha: f64) -> Result<()> {
        // SAFETY: the caller's contract.
        unsafe { product(p, out, a, b, alpha, 1.0) }
    }
}

impl Double for f64 {
    fn parts(items: &mut [f64]) -> &mut [f64] {
        items
    }
}

impl Number for Complex<f64> {
    const COMPLEX: bool = true;
    type Part = f64;
    #[inline(always)]
    fn new(re: f64, im: f64) -> Self {
        Complex { re, im }
    }
    #[inline(always)]
    fn re(self) -> f64 {
        self.re
    }
    #[inline(always)]
    fn im(self) -> f64 {
        self.im
    }
    #[inline(always)]
    fn conj(self) -> Self {
        Complex { re: self.re, im: -self.im }
    }
    #[inline(always)]
    fn scaled(self, by: f64) -> Self {
        Complex { re: self.re * by, im: self.im * by }
    }
    unsafe fn add_product(p: Product, out: *mut f64, a: *const f64, b: *const f64, alpha: f64) -> Result<()> {
        // SAFETY: the caller's contract.
        unsafe { product(p, out, a, b, alpha, 1.0) }
    }
}

impl Double for Complex<f64> {
    fn parts(items: &mut [Self]) -> &mut [f64] {
        // SAFETY: a complex number is two consecutive f64.
        unsafe { std::slice::from_raw_parts_mut(items.as_mut_ptr().cast(), 2 * items.len()) }
    }
}

/// Up to this many numbers are copied to the stack: allocating memory would cost more than to factor them.
const FEW: usize = 64;

/// Matrices of at least this order that are stored in single precision are factored in it, as LAPACK does: that takes
/// half the time.
const LARGE: usize = 128;

/// A number as stored in memory. Factorizations compute in double precision, and round once if the numbers are stored in
/// single precision; only those that consist mostly of matrix products compute large matrices in [`Stored::Large`].
pub trait Stored: Copy + Send + Sync + 'static {
    type Wide: Double;
    /// The type in which large matrices are factored.
    type Large: Number;
    type Real: Stored<Wide = f64>;
    fn wide(self) -> Self::Wide;
    fn rounded(x: Self::Wide) -> Self;
    /// The numbers themselves, if they already have double precision.
    fn same(item: &mut [Self]) -> Option<&mut [Self::Wide]>;

    /// The numbers themselves, if they have single precision, and a matrix of this order is large.
    fn large(item: &mut [Self], order: usize) -> Option<&mut [Self::Large]> {
        let _ = (item, order);
        None
    }

    /// Calls `body` with an item, which it may change.
    fn edit<R>(item: &mut [Self], body: impl FnOnce(&mut [Self::Wide]) -> Result<R>) -> Result<R> {
        if let Some(item) = Self::same(item) {
            return body(item);
        }
        let (mut few, mut many) = ([const { MaybeUninit::uninit() }; FEW], Vec::new());
        let copy = Self::copy(item, &mut few, &mut many)?;
        let made = body(&mut *copy)?;
        item.iter_mut().zip(copy).for_each(|(to, x)| *to = Self::rounded(*x));
        Ok(made)
    }

    /// Calls `body` with an item, which it only reads.
    fn read<R>(item: &mut [Self], body: impl FnOnce(&[Self::Wide]) -> Result<R>) -> Result<R> {
        if let Some(item) = Self::same(item) {
            return body(item);
        }
        let (mut few, mut many) = ([const { MaybeUninit::uninit() }; FEW], Vec::new());
        body(Self::copy(item, &mut few, &mut many)?)
    }

    /// Calls `body` with an item that it reads and one that it changes.
    fn apply(
        read: &mut [Self],
        edit: &mut [Self],
        body: impl FnOnce(&[Self::Wide], &mut [Self::Wide]) -> Result<()>,
    ) -> Result<()> {
        Self::read(read, |x| Self::edit(edit, |y| body(x, y)))
    }

    /// Copies an item to `few`, or, if it is too long, to newly allocated memory in `many`.
    fn copy<'a>(
        item: &[Self],
        few: &'a mut [MaybeUninit<Self::Wide>; FEW],
        many: &'a mut Vec<Self::Wide>,
    ) -> Result<&'a mut [Self::Wide]> {
        if let Some(few) = few.get_mut(..item.len()) {
            few.iter_mut().zip(item).for_each(|(to, x)| *to = MaybeUninit::new(x.wide()));
            // SAFETY: all of them were just set.
            return Ok(unsafe { few.assume_init_mut() });
        }
        *many = scratch(item.len(), Self::Wide::zero())?;
        many.iter_mut().zip(item).for_each(|(to, x)| *to = x.wide());
        Ok(many)
    }
}

macro_rules! stored {
    ($($T:ty, $Wide:ty, $Real:ty, $Large:ty, |$x:ident| $wide:expr, $rounded:expr, $same:expr $(, $large:item)?;)*) => { $(
        impl Stored for $T {
            type Wide = $Wide;
            type Real = $Real;
            type Large = $Large;
            #[inline(always)]
            fn wide(self) -> $Wide {
                let $x = self;
                $wide
            }
            #[inline(always)]
            fn rounded($x: $Wide) -> $T {
                $rounded
            }
            fn same($x: &mut [$T]) -> Option<&mut [$Wide]> {
                $same
            }
            $($large)?
        }
    )* };
}
stored! {
    f32, f64, f32, f32, |x| f64::from(x), x as f32, { let _ = x; None },
        fn large(item: &mut [f32], order: usize) -> Option<&mut [f32]> {
            (order >= LARGE).then_some(item)
        };
    f64, f64, f64, f64, |x| x, x, Some(x);
    Complex<f32>, Complex<f64>, f32, Complex<f64>, |x| Complex { re: f64::from(x.re), im: f64::from(x.im) }, Complex { re: x.re as f32, im: x.im as f32 }, { let _ = x; None };
    Complex<f64>, Complex<f64>, f64, Complex<f64>, |x| x, x, Some(x);
}

/// The Euclidean length of a vector, even if squares would overflow or underflow.
pub fn length<T: Number>(x: &[T]) -> f64 {
    let square: f64 = x.iter().map(|x| x.square()).sum();
    if square > 1e-290 && square < 1e290 {
        return square.sqrt();
    }
    let largest = x
        .iter()
        .fold(0.0, |top: f64, x| if x.weight() > top || x.weight().is_nan() { x.weight() } else { top });
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    let small = x.iter().map(|x| (x.re() / largest).powi(2) + (x.im() / largest).powi(2));
    largest * small.sum::<f64>().sqrt()
}

/// A scale for numbers whose squares could overflow or underflow: a power of two, which changes no digit. For others 1.
pub fn scale_of<'a, T: Number>(x: impl Iterator<Item = &'a T>) -> f64 {
    let largest = x.fold(0.0, |top: f64, x| top.max(x.weight()));
    let far = largest > 0.0 && !(1e-100..1e100).contains(&largest);
    if far { 2f64.powi(-(largest.log2() as i32).clamp(-1000, 1000)) } else { 1.0 }
}

/// Multiplies by a scale from [`scale_of`].
pub fn rescale<T: Number>(x: &mut [T], scale: f64) {
    if scale != 1.0 {
        x.iter_mut().for_each(|x| *x = x.scaled(scale));
    }
}

/// Two different columns of a matrix with `m` rows.
pub fn columns<T>(a: &mut [T], m: usize, i: usize, j: usize) -> (&mut [T], &mut [T]) {
    debug_assert!(i < j);
    let (left, right) = a.split_at_mut(j * m);
    (&mut left[i * m..(i + 1) * m], &mut right[..m])
}
