// Functions of every compute type. `!(a == b)` stands for `a != b`, which drivers get wrong for NaN.
fn eq(a: T, b: T) -> bool { return a == b; }
fn ne(a: T, b: T) -> bool { return !(a == b); }
fn lt(a: T, b: T) -> bool { return a < b; }
fn le(a: T, b: T) -> bool { return a <= b; }
fn gt(a: T, b: T) -> bool { return a > b; }
fn ge(a: T, b: T) -> bool { return a >= b; }
fn both(a: bool, b: bool) -> bool { return a && b; }
fn either(a: bool, b: bool) -> bool { return a || b; }
fn differ(a: bool, b: bool) -> bool { return a != b; }
fn not(a: bool) -> bool { return !a; }
fn truth(x: T) -> bool { return !(x == T(0)); }
fn num(b: bool) -> T { return select(T(0), T(1), b); }
fn neg(x: T) -> T { return -x; }
fn square(x: T) -> T { return x * x; }
fn multiply_add(a: T, b: T, c: T) -> T { return a * b + c; }
fn fused_multiply_add(a: T, b: T, c: T) -> T { return a * b + c; }
// Shaders compute only with real numbers.
fn conj(x: T) -> T { return x; }
fn zero_of(x: T) -> T { return T(0); }
fn constant_zero(x: T) -> T { return T(0); }
fn first_power(x: T) -> T { return x; }
fn zeroth_power(x: T) -> T { return T(1); }
fn angle_gradient(g: T, x: T) -> T { return T(0); }
fn sgn_gradient(g: T, x: T, y: T) -> T { return T(0); }
