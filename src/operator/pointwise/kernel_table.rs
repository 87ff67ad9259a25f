//! The loops compiled for an expression: one for each dtype in which its row's class computes.

/// The loops of one expression, by class. The clause `complex` adds complex loops, the clause `narrow` adds
/// loops for narrow integers, the clause `fused` those for instructions of groups.
macro_rules! loops {
    ([complex $($clause:tt)*] $class:ident; $names:tt $e:expr $(=> $quick:ident $way:tt)?) => {
        $crate::cpu::pointwise::Loops { c64: Some(loops!(@complex c64; $class; $names $e)),
            c128: Some(loops!(@complex c128; $class; $names $e)),
            ..loops!([$($clause)*] $class; $names $e $(=> $quick $way)?)
        }
    };
    ([$($clause:tt)*] $class:ident; $names:tt $e:expr $(=> $quick:ident $way:tt)?) => {
        $crate::cpu::pointwise::Loops {
            fused: loops!(@fused [$($clause)*] $names $e),
            narrow: loops!(@narrow [$($clause)*] $class; $names $e),
            ..loops!($class; $names $e $(=> $quick $way)?)
        }
    };
    (@complex $t:ident; Compare; ($($x:ident,)*) $e:expr) => {
        $crate::cpu::pointwise::pointwise_loop!(plain $t => bool; ($($x),*) $e)
    };
    (@complex $t:ident; Test; ($($x:ident,)*) $e:expr) => {
        $crate::cpu::pointwise::pointwise_loop!(plain $t => bool; ($($x),*) $e)
    };
    (@complex $t:ident; $class:ident; ($($x:ident,)*) $e:expr) => {
        $crate::cpu::pointwise::pointwise_loop!(plain $t; ($($x),*) $e)
    };
    (Modulus; ($($x:ident,)*) $($e:tt)+) => { loops!(@ false; f32 f64 i64; ($($x),*) $($e)+) };
    (Angle; ($($x:ident,)*) $($e:tt)+) => { loops!(@ false; f32 f64; ($($x),*) $($e)+) };
    (Float; ($($x:ident,)*) $($e:tt)+) => { loops!(@ false; f32 f64; ($($x),*) $($e)+) };
    (Arith; ($($x:ident,)*) $($e:tt)+) => { loops!(@ false; f32 f64 i64; ($($x),*) $($e)+) };
    (Divide; ($($x:ident,)*) $($e:tt)+) => { loops!(@ false; f32 f64 i64; ($($x),*) $($e)+) };
    (FloatAlike; ($($x:ident,)*) $($e:tt)+) => { loops!(@ false; f32 f64; ($($x),*) $($e)+) };
    (Alike; ($($x:ident,)*) $($e:tt)+) => { loops!(@ false; f32 f64 i64; ($($x),*) $($e)+) };
    (Number; ($($x:ident,)*) $($e:tt)+) => { loops!(@ false; f32 f64 i64; ($($x),*) $($e)+) };
    (Plain; ($($x:ident,)*) $($e:tt)+) => { loops!(@ false; f32 f64 i64; ($($x),*) $($e)+) };
    (Real; ($($x:ident,)*) $($e:tt)+) => { loops!(@ false; f32 f64; ($($x),*) $($e)+) };
    (Choose; ($($x:ident,)*) $($e:tt)+) => { loops!(@ false; f32 f64 i64; ($($x),*) $($e)+) };
    (Compare; ($($x:ident,)*) $($e:tt)+) => { loops!(@ true; f32 f64 i64; ($($x),*) $($e)+) };
    (Test; ($($x:ident,)*) $($e:tt)+) => { loops!(@ true; f32 f64; ($($x),*) $($e)+) };
    (Shift; ($($x:ident,)*) $($e:tt)+) => { loops!(@ false; i64; ($($x),*) $($e)+) };
    (Bits; ($($x:ident,)*) $($e:tt)+) => { loops!(@ false; i64; ($($x),*) $($e)+) };
    (@ $p:tt; $($t:ident)+; $names:tt $e:expr $(=> $quick:ident $way:tt)?) => {
        $crate::cpu::pointwise::Loops {
            predicate: $p,
            $($t: Some(loops!(@one $p; $t; $names $e)),)+
            $($quick: loops!(@$quick $names $way),)?
            ..$crate::cpu::pointwise::Loops::NONE
        }
    };
    (@one true; $t:ident; $names:tt $e:expr) => { $crate::cpu::pointwise::pointwise_loop!($t => bool; $names $e) };
    (@one false; $t:ident; $names:tt $e:expr) => { $crate::cpu::pointwise::pointwise_loop!($t; $names $e) };
    (@powers $names:tt { $($exponent:literal: $e:expr),* $(,)? }) => {
        &[$($crate::cpu::pointwise::powers::Power {
            exponent: $exponent,
            loops: {
                #[allow(unused_variables, reason = "the exponent is known")]
                const LOOPS: $crate::cpu::pointwise::Loops = loops!(@ false; f32 f64; $names $e);
                LOOPS
            },
            wgsl: stringify!($e),
        }),*]
    };
    (@words $names:tt { $e:expr }) => { Some($crate::cpu::pointwise::pointwise_loop!(i64; $names $e)) };
    (@fused [fused $($clause:tt)*] ($($x:ident,)*) $e:expr) => {
        Some(const { &$crate::cpu::pointwise::fused::Fused {
            f32: $crate::cpu::pointwise::pointwise_loop!(@fused f32; T; ($($x),*) $e),
            f64: $crate::cpu::pointwise::pointwise_loop!(@fused f64; T; ($($x),*) $e),
        } })
    };
    (@fused [$other:tt $($clause:tt)*] $($rest:tt)+) => { loops!(@fused [$($clause)*] $($rest)+) };
    (@fused [] $($rest:tt)+) => { None };
    (@narrow [narrow $($clause:tt)*] Compare; ($($x:ident,)*) $e:expr) => {
        Some(const { &$crate::cpu::pointwise::narrow::narrow!(u8; ($($x)*) u8::from($e)) })
    };
    (@narrow [narrow $($clause:tt)*] $class:ident; ($($x:ident,)*) $e:expr) => {
        Some(const { &$crate::cpu::pointwise::narrow::narrow!(T; ($($x)*) $e) })
    };
    (@narrow [$other:tt $($clause:tt)*] $($rest:tt)+) => { loops!(@narrow [$($clause)*] $($rest)+) };
    (@narrow [] $($rest:tt)+) => { None };
}
pub(crate) use loops;
