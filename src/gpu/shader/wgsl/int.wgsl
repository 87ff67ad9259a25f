// Integer functions; T is i32 or i64. Arithmetic wraps, and division by zero gives 0: operators refuse it
// beforehand.
fn abs(x: T) -> T { return select(x, -x, x < T(0)); }
fn sign(x: T) -> T { return select(T(0), T(1), x > T(0)) - select(T(0), T(1), x < T(0)); }
fn maximum(a: T, b: T) -> T { return select(b, a, a > b); }
fn minimum(a: T, b: T) -> T { return select(b, a, a < b); }
fn fmax(a: T, b: T) -> T { return select(b, a, a > b); }
fn fmin(a: T, b: T) -> T { return select(b, a, a < b); }
fn trunc_div(a: T, b: T) -> T {
  // Neither zero nor minus one may reach the hardware, where they could trap or overflow.
  let safe = select(b, T(1), b == T(0) || b == T(-1));
  return select(select(a / safe, -a, b == T(-1)), T(0), b == T(0));
}
fn fmod(a: T, b: T) -> T { return select(a - trunc_div(a, b) * b, T(0), b == T(0)); }
fn remainder(a: T, b: T) -> T {
  let r = fmod(a, b);
  return select(r, r + b, r != T(0) && ((r < T(0)) != (b < T(0))));
}
fn floor_div(a: T, b: T) -> T {
  let r = fmod(a, b);
  return trunc_div(a, b) - select(T(0), T(1), r != T(0) && ((r < T(0)) != (b < T(0))));
}
fn pow(base: T, exponent: T) -> T {
  if (exponent < T(0)) {
    let odd = (exponent & T(1)) == T(1);
    return select(select(T(0), select(T(1), T(-1), odd), base == T(-1)), T(1), base == T(1));
  }
  var result = T(1);
  var power = base;
  var left = exponent;
  while (left > T(0)) {
    result = select(result, result * power, (left & T(1)) == T(1));
    power = power * power;
    left = left >> 1u;
  }
  return result;
}
fn bit_and(a: T, b: T) -> T { return a & b; }
fn bit_or(a: T, b: T) -> T { return a | b; }
fn bit_xor(a: T, b: T) -> T { return a ^ b; }
fn bit_not(x: T) -> T { return ~x; }
fn shift_out(b: T) -> bool { return b < T(0) || b >= T(BITS); }
fn shl(a: T, b: T) -> T { return select(a << u32(b), T(0), shift_out(b)); }
fn shr(a: T, b: T) -> T { return a >> select(u32(b), u32(BITS) - 1u, shift_out(b)); }
fn gcd(a: T, b: T) -> T {
  var x = abs(a);
  var y = abs(b);
  while (y != T(0)) {
    let r = fmod(x, y);
    x = y;
    y = r;
  }
  return x;
}
fn is_nan(x: T) -> bool { return false; }
fn is_inf(x: T) -> bool { return false; }
fn is_finite(x: T) -> bool { return true; }
fn heaviside(x: T, at_zero: T) -> T { return select(select(T(0), T(1), x > T(0)), at_zero, x == T(0)); }
fn floor(x: T) -> T { return x; }
fn ceil(x: T) -> T { return x; }
fn round(x: T) -> T { return x; }
fn trunc(x: T) -> T { return x; }
