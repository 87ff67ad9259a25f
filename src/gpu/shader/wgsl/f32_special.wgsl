// Special functions over f32.
fn erf_middle(s: f32) -> f32 {
  let p = -2.3621185683e-3 + s * (4.1485610604e-1 + s * (-3.7220788002e-1 + s * (3.1834661961e-1
    + s * (-1.1089469492e-1 + s * (3.5478305072e-2 + s * -2.1663755178e-3)))));
  let q = 1.0 + s * (1.0642088205e-1 + s * (5.4039794207e-1 + s * (7.1828655899e-2 + s * (1.2617121637e-1
    + s * (1.3637083583e-2 + s * 1.1984500103e-2)))));
  return p / q;
}
// erfc for a in [1.25, 11).
fn erfc_tail(a: f32) -> f32 {
  let s = 1.0 / (a * a);
  var p = 0.0;
  var q = 0.0;
  if (a < 2.857143) {
    p = -9.8649440333e-3 + s * (-6.9385856390e-1 + s * (-1.0558626175e1 + s * (-6.2375331879e1
      + s * (-1.6239666748e2 + s * (-1.8460508728e2 + s * (-8.1287437439e1 + s * -9.8143291473))))));
    q = 1.0 + s * (1.9651271820e1 + s * (1.3765776062e2 + s * (4.3456588745e2 + s * (6.4538726807e2
      + s * (4.2900814819e2 + s * (1.0863500214e2 + s * (6.5702495575 + s * -6.0424413532e-2)))))));
  } else {
    p = -9.8649431020e-3 + s * (-7.9928326607e-1 + s * (-1.7757955551e1 + s * (-1.6063638306e2
      + s * (-6.3756646729e2 + s * (-1.0250950928e3 + s * -4.8351919556e2)))));
    q = 1.0 + s * (3.0338060379e1 + s * (3.2579251099e2 + s * (1.5367296143e3 + s * (3.1998581543e3
      + s * (2.5530502930e3 + s * (4.7452853394e2 + s * -2.2440952301e1))))));
  }
  // With eleven bits the square minus 9/16 is exact.
  let z = bitcast<f32>(bitcast<u32>(a) & 0xffffe000u);
  return exp(-z * z - 0.5625) * exp((z - a) * (z + a) + p / q) / a;
}
fn erf_small(x: f32) -> f32 {
  let z = x * x;
  let p = 1.2837916613e-1 + z * (-3.2504209876e-1 + z * (-2.8481749818e-2 + z * (-5.7702702470e-3 + z * -2.3763017452e-5)));
  let q = 1.0 + z * (3.9791721106e-1 + z * (6.5022252500e-2 + z * (5.0813062117e-3 + z * (1.3249473704e-4 + z * -3.9602282413e-6))));
  return p / q;
}
fn erf(x: f32) -> f32 {
  let a = abs(x);
  if (is_nan(x)) { return x; }
  if (a < 0.84375) { return x + x * erf_small(x); }
  if (a < 1.25) { return copysign(8.4506291151e-1 + erf_middle(a - 1.0), x); }
  if (a >= 6.0) { return copysign(1.0, x); }
  return copysign(1.0 - erfc_tail(a), x);
}
// The cumulative distribution function of the normal distribution, as on the CPU.
fn ndtr(x: f32) -> f32 {
  if (is_nan(x)) { return x; }
  let a = abs(x);
  if (a > 5.6) { return select(0.0, 1.0, x > 0.0); }
  let t = a - 2.8;
  let u = a * (0.261654 + t * (-0.019494593 + t * (-0.01066005 + t * (0.0028108075 + t * (9.960969e-5 + t * (-0.00012936115
    + t * (1.1926627e-5 + t * (3.2347435e-6 + t * (-5.691811e-7 + t * -8.427131e-8)))))))));
  let root = 1.0 - u * (2.0 - u);
  let tail = 0.5 * root * root;
  return select(1.0 - tail, tail, x < 0.0);
}
fn erfc(x: f32) -> f32 {
  let a = abs(x);
  if (is_nan(x)) { return x; }
  if (a < 0.84375) {
    let y = erf_small(x);
    if (x < 0.25) { return 1.0 - (x + x * y); }
    return 0.5 - (pin(x - 0.5) + x * y);
  }
  if (a < 1.25) {
    let y = erf_middle(a - 1.0);
    return select((1.0 - 8.4506291151e-1) - y, 1.0 + (8.4506291151e-1 + y), x < 0.0);
  }
  if (a >= 11.0) { return select(0.0, 2.0, x < 0.0); }
  let y = erfc_tail(a);
  return select(y, 2.0 - y, x < 0.0);
}
fn erfinv(x: f32) -> f32 {
  let a = abs(x);
  if (!(a <= 1.0)) { return nan(); }
  if (a == 1.0) { return copysign(inf(), x); }
  var w = -log1p(-a) - log1p(a);
  var p = 0.0;
  if (w < 5.0) {
    w -= 2.5;
    p = 1.50140941 + w * (0.246640727 + w * (-0.00417768164 + w * (-0.00125372503 + w * (0.00021858087
      + w * (-4.39150654e-6 + w * (-3.5233877e-6 + w * (3.43273939e-7 + w * 2.81022636e-8)))))));
  } else {
    w = sqrt(w) - 3.0;
    p = 2.83297682 + w * (1.00167406 + w * (0.00943887047 + w * (-0.0076224613 + w * (0.00573950773
      + w * (-0.00367342844 + w * (0.00134934322 + w * (0.000100950558 + w * -0.000200214257)))))));
  }
  return p * x;
}
// sin(pi * x).
fn sin_pi(x: f32) -> f32 {
  let whole = round(x);
  let r = (x - whole) * 3.14159265;
  let half = whole * 0.5;
  let y = select(sin_near(r), copysign(cos_near(1.57079633 - abs(r)), r), abs(r) > 0.78539816);
  return select(y, -y, !(half == floor(half)));
}
// lgamma(1 + t) for |t| <= 0.5.
fn lgamma_one(t: f32) -> f32 {
  return t * (-5.772156659e-1 + t * (8.224670206e-1 + t * (-4.006852341e-1 + t * (2.705819690e-1
    + t * (-2.074117598e-1 + t * (1.695327800e-1 + t * (-1.434191645e-1 + t * (1.255873360e-1
    + t * (-1.183976860e-1 + t * (1.022818415e-1 + t * (-5.179341723e-2 + t * (6.075992193e-2
    + t * (-1.760237507e-1 + t * 1.471280514e-1)))))))))))));
}
// lgamma(2 + t) for |t| <= 0.5.
fn lgamma_two(t: f32) -> f32 {
  return t * (4.227843350e-1 + t * (3.224670345e-1 + t * (-6.735228159e-2 + t * (2.058074623e-2
    + t * (-7.386171873e-3 + t * (2.891561644e-3 + t * (-1.185874688e-3 + t * (5.024317049e-4
    + t * (-2.537877240e-4 + t * 1.207336643e-4)))))))));
}
// lgamma for x >= 0.5.
fn lgamma_right(x: f32) -> f32 {
  if (x == 1.0 || x == 2.0) { return 0.0; }
  if (x < 1.5) { return lgamma_one(x - 1.0); }
  if (x < 2.5) { return lgamma_two(x - 2.0); }
  if (x < 8.0) {
    var y = x;
    var product = 1.0;
    while (y >= 2.5) {
      y -= 1.0;
      product *= y;
    }
    return log(product) + lgamma_two(y - 2.0);
  }
  if (x > 1e30) { return x * (log(x) - 1.0); }
  let r = 1.0 / x;
  return (x - 0.5) * (log(x) - 1.0) + (0.41893853 + r * (0.083333333 - r * r * 0.0027777778));
}
fn lgamma(x: f32) -> f32 {
  if (is_nan(x)) { return x; }
  if (is_inf(x)) { return inf(); }
  if (x >= 0.5) { return lgamma_right(x); }
  if (x > -0.5) { return lgamma_one(x) - log(abs(x)); }
  if (floor(x) == x) { return inf(); }
  return 1.14472989 - log(abs(sin_pi(x))) - lgamma_right(1.0 - x);
}
fn digamma(x: f32) -> f32 {
  if (is_nan(x)) { return x; }
  if (x == 0.0) { return copysign(inf(), -x); }
  var y = x;
  var result = 0.0;
  if (x < 0.0) {
    if (floor(x) == x) { return nan(); }
    // The distance of x from the next pole, which is exact.
    result = -3.14159265 / tan(3.14159265 * (x - round(x)));
    y = 1.0 - x;
  }
  while (y < 8.0) {
    result -= 1.0 / y;
    y += 1.0;
  }
  let r = 1.0 / (y * y);
  return result + log(y) - 0.5 / y - r * (0.083333333 - r * (0.0083333333 - r * 0.0039682540));
}
fn trigamma(x: f32) -> f32 {
  if (is_nan(x)) { return x; }
  var y = x;
  var sum = 0.0;
  var sign = 1.0;
  if (x <= 0.0) {
    if (x == floor(x)) { return inf(); }
    let s = 3.14159265 / sin_pi(x);
    sum = s * s;
    sign = -1.0;
    y = 1.0 - x;
  }
  var tail = 0.0;
  while (y < 8.0) {
    tail += 1.0 / (y * y);
    y += 1.0;
  }
  let z = 1.0 / (y * y);
  tail += 1.0 / y + 0.5 * z + z / y * (0.16666667 - z * (0.033333333 - z * 0.023809524));
  return sum + sign * tail;
}
// The sum of (x + k)^-s over all k >= 0, for x > 0 and s >= 2.
fn zeta_sum(s: f32, x: f32) -> f32 {
  var y = x;
  var sum = 0.0;
  while (y < 8.0) {
    sum += pow(y, -s);
    y += 1.0;
  }
  let last = pow(y, -s);
  let first = last * s / y;
  let z = 1.0 / (y * y);
  let second = first * (s + 1.0) * (s + 2.0) * z;
  let third = second * (s + 3.0) * (s + 4.0) * z;
  return sum + y * last / (s - 1.0) + 0.5 * last
    + (first * 0.083333333 - second * 0.0013888889 + third * 0.000033068783);
}
fn polygamma(n: f32, x: f32) -> f32 {
  if (is_nan(x)) { return x; }
  let odd = n - 2.0 * floor(n * 0.5) == 1.0;
  var sum = 0.0;
  if (x > 0.0) {
    if (!is_inf(x)) { sum = zeta_sum(n + 1.0, x); }
  } else if (x == floor(x)) {
    sum = inf();
  } else {
    let above = x - floor(x);
    let below = zeta_sum(n + 1.0, 1.0 - above) - zeta_sum(n + 1.0, 1.0 - x);
    sum = zeta_sum(n + 1.0, above) + select(-below, below, odd);
  }
  var factorial = 1.0;
  for (var k = 2.0; k <= min(n, 40.0); k += 1.0) { factorial *= k; }
  return select(-sum, sum, odd) * factorial;
}
