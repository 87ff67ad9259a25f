//! Which loops an expression is compiled into: one for each type that its row's class computes in.

/// The loops of one expression, per class; a row whose brackets begin with `complex` has complex ones as well.
macro_rules! loops {
    ([complex $(, $word:ident)*] $class:ident; $names:tt $e:expr) => {
        $crate::cpu::pointwise::Loops { c64: Some(loops!(@complex c64; $class; $names $e)),
            c128: Some(loops!(@complex c128; $class; $names $e)),
            ..loops!($class; $names $e)
        }
    };
    ([$($word:ident),*] $class:ident; $names:tt $e:expr) => { loops!($class; $names $e) };
    (@complex $t:ident; Compare; ($($x:ident,)*) $e:expr) => {
        $crate::cpu::pointwise::pointwise_loop!(plain $t => bool; ($($x),*) $e)
    };
    (@complex $t:ident; Test; ($($x:ident,)*) $e:expr) => {
        $crate::cpu::pointwise::pointwise_loop!(plain $t => bool; ($($x),*) $e)
    };
    (@complex $t:ident; $class:ident; ($($x:ident,)*) $e:expr) => {
        $crate::cpu::pointwise::pointwise_loop!(plain $t; ($($x),*) $e)
    };
    (Modulus; ($($x:ident,)*) $e:expr) => { loops!(@ false; f32 f64 i64; ($($x),*) $e) };
    (Angle; ($($x:ident,)*) $e:expr) => { loops!(@ false; f32 f64; ($($x),*) $e) };
    (Float; ($($x:ident,)*) $e:expr) => { loops!(@ false; f32 f64; ($($x),*) $e) };
    (Arith; ($($x:ident,)*) $e:expr) => { loops!(@ false; f32 f64 i64; ($($x),*) $e) };
    (Divide; ($($x:ident,)*) $e:expr) => { loops!(@ false; f32 f64 i64; ($($x),*) $e) };
    (FloatAlike; ($($x:ident,)*) $e:expr) => { loops!(@ false; f32 f64; ($($x),*) $e) };
    (Alike; ($($x:ident,)*) $e:expr) => { loops!(@ false; f32 f64 i64; ($($x),*) $e) };
    (Number; ($($x:ident,)*) $e:expr) => { loops!(@ false; f32 f64 i64; ($($x),*) $e) };
    (Plain; ($($x:ident,)*) $e:expr) => { loops!(@ false; f32 f64 i64; ($($x),*) $e) };
    (Real; ($($x:ident,)*) $e:expr) => { loops!(@ false; f32 f64; ($($x),*) $e) };
    (Choose; ($($x:ident,)*) $e:expr) => { loops!(@ false; f32 f64 i64; ($($x),*) $e) };
    (Compare; ($($x:ident,)*) $e:expr) => { loops!(@ true; f32 f64 i64; ($($x),*) $e) };
    (Test; ($($x:ident,)*) $e:expr) => { loops!(@ true; f32 f64; ($($x),*) $e) };
    (Bits; ($($x:ident,)*) $e:expr) => { loops!(@ false; i64; ($($x),*) $e) };
    (@ $p:tt; $($t:ident)+; $names:tt $e:expr) => {
        $crate::cpu::pointwise::Loops {
            predicate: $p,
            powers: $crate::cpu::pointwise::powers::of(stringify!($names), stringify!($e)),
            words: $crate::cpu::pointwise::words::of(stringify!($e)),
            $($t: Some(loops!(@one $p; $t; $names $e)),)+
            ..$crate::cpu::pointwise::Loops::NONE
        }
    };
    (@one true; $t:ident; $names:tt $e:expr) => { $crate::cpu::pointwise::pointwise_loop!($t => bool; $names $e) };
    (@one false; $t:ident; $names:tt $e:expr) => { $crate::cpu::pointwise::pointwise_loop!($t; $names $e) };
}
pub(crate) use loops;
