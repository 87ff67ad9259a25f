// Special functions over f64, with the formulas and coefficients of `cpu::math`.
// exp(x^2) erfc(x) (1 + 2x) for x >= 0 is smooth enough for one polynomial in (x - 4) / (x + 4).
fn erfc_core(x: f64) -> f64 {
  let a = select(x, T(30), x > 30.0);
  let t = (a - 4.0) / (a + 4.0);
  let fit = (1.2329951186255526 + t * (-0.1396211168405629 + t * (0.015379652102619922 + t * (0.06809705425473522 + t *
    (-0.10103906603630877 + t * (0.09373283499686472 + t * (-0.06633036581241723 + t * (0.03716751556131269 + t *
    (-0.01619773404991162 + t * (0.0050319697673496255 + t * (-0.0007577733958838441 + t * (-0.00019925557641178388 + t
    * (0.00015062243751732846 + t * (-2.4402906473094203e-5 + t * (-1.1225200987500523e-5 + t * (5.7172522333990035e-6 +
    t * (3.018343226981021e-7 + t * (-8.342229073640516e-7 + t * (6.249191117066149e-8 + t * (1.1457547953167116e-7 + t
    * (-7.817456604775876e-9 + t * (-1.3398907591458981e-8 + t * -1.7162455602581445e-9))))))))))))))))))))));
  // x^2 in two parts: the exponential would magnify its rounding error.
  let high = head(a);
  let low = (a - high) * (a + high);
  let e = 1.0 - low * (1.0 - low * (0.5 - low / 6.0));
  let p = fit / (1.0 + 2.0 * a) * e;
  let s = split_exponent(-high * high);
  return scaled(p + p * expm1_core(s.y), s.x);
}
// erf x for |x| <= 1.
fn erf_core(x: f64) -> f64 {
  let z = x * x;
  return x * (1.1283791670955126 + z * (-0.3761263890318355 + z * (0.11283791670945253 + z * (-0.02686617064327622 + z *
    (0.005223977607423468 + z * (-0.0008548325989696758 + z * (0.00012055295320494294 + z * (-1.4924744663335489e-5 + z
    * (1.6447517677871873e-6 + z * (-1.6209175911748696e-7 + z * (1.3722976265924504e-8 + z *
    -7.801188874097751e-10)))))))))));
}
fn erfc(x: f64) -> f64 {
  if (is_nan(x)) { return x; }
  let a = abs(x);
  if (a < 0.7) { return 1.0 - erf_core(x); }
  let far = erfc_core(a);
  return select(far, 2.0 - far, x < 0.0);
}
fn erf(x: f64) -> f64 {
  if (is_nan(x)) { return x; }
  let a = abs(x);
  if (a > 1.0) { return copysign(1.0 - erfc_core(a), x); }
  return copysign(erf_core(a), x);
}
// The cumulative distribution function of the normal distribution.
fn ndtr(x: f64) -> f64 {
  return 0.5 * (erf(x * 0.7071067811865476) + 1.0);
}
// One step of Halley's method towards erf y = a.
fn erfinv_step(a: f64, y: f64) -> f64 {
  var miss = erf_core(y) - a;
  if (y > 0.5) { miss = (1.0 - a) - erfc_core(y); }
  let u = miss * 0.886226925452758 * exp(y * y);
  return y - u / (1.0 + y * u);
}
// An approximation in single precision (M. Giles, 2010), then two steps of Halley's method.
fn erfinv(x: f64) -> f64 {
  let a = abs(x);
  if (!(a <= 1.0)) { return nan(); }
  if (a == 1.0) { return copysign(inf(), x); }
  let w = -log((1.0 - a) * (1.0 + a));
  var y = T(0);
  if (w < 5.0) {
    let t = w - 2.5;
    y = a * (1.50140941 + t * (0.246640727 + t * (-0.00417768164 + t * (-0.00125372503 + t * (0.00021858087 + t *
      (-4.39150654e-6 + t * (-3.5233877e-6 + t * (3.43273939e-7 + t * 2.81022636e-8))))))));
  } else if (w < 16.0) {
    let t = sqrt(w) - 3.0;
    y = a * (2.83297682 + t * (1.00167406 + t * (0.00943887047 + t * (-0.0076224613 + t * (0.00573950773 + t *
      (-0.00367342844 + t * (0.00134934322 + t * (0.000100950558 + t * -0.000200214257))))))));
  } else {
    // Beyond the range of single precision: from the asymptotic form of erfc, refined once.
    let guess = sqrt(w + LN_2 - 0.5 * log(3.141592653589793 * w));
    y = sqrt(w + LN_2 - log(guess * 1.772453850905516 * (1.0 + 0.5 / (guess * guess))));
  }
  return copysign(erfinv_step(a, erfinv_step(a, y)), x);
}
// ln gamma(2 + z) for |z| <= 1/2.
fn lgamma_two(z: f64) -> f64 {
  return z * (0.42278433509846713 + z * (0.32246703342411326 + z * (-0.0673523010531956 + z * (0.020580808427777205 + z
    * (-0.0073855510289379716 + z * (0.002890510331212008 + z * (-0.0011927539009206499 + z * (0.0005096695109438671 + z
    * (-0.00022315497868452666 + z * (9.945773312175258e-5 + z * (-4.492371712602682e-5 + z * (2.050514024157414e-5 + z
    * (-9.4563379276148e-6 + z * (4.386645152495017e-6 + z * (-1.974188896090214e-6 + z * (9.15616535278139e-7 + z *
    (-5.812497213319138e-7 + z * 2.82916391188987e-7)))))))))))))))));
}
// ln gamma for x > 0.
fn lgamma_right(x: f64) -> f64 {
  if (x >= 8.0) {
    // Stirling's series.
    let z = 1.0 / (x * x);
    let series = (0.08333333333333333 + z * (-0.002777777777777778 + z * (0.0007936507936507937 + z *
      (-0.0005952380952380953 + z * (0.0008417508417508417 + z * (-0.0019175269175269176 + z * (0.00641025641025641 + z
      * -0.029550653594771242))))))) / x;
    return (x - 0.5) * (log(x) - 1.0) + (0.41893853320467267 + series);
  }
  var y = x;
  var product = T(1);
  while (y > 2.5) {
    y -= 1.0;
    product *= y;
  }
  if (y <= 0.5) { return lgamma_two(y) - log1p(y) - log(y); }
  if (y < 1.5) { return lgamma_two(y - 1.0) - log1p(y - 1.0); }
  return select(log(product), T(0), product == 1.0) + lgamma_two(y - 2.0);
}
fn lgamma(x: f64) -> f64 {
  if (!is_finite(x)) { return abs(x); }
  if (x > 0.0) { return lgamma_right(x); }
  if (x == floor(x)) { return inf(); }
  if (x > -1e-20) { return -log(-x); }
  // The reflection formula; the sine of a reduced argument stays exact near the poles.
  return log(3.141592653589793 / abs(sin(3.141592653589793 * (x - round(x))))) - lgamma_right(1.0 - x);
}
fn digamma(x: f64) -> f64 {
  if (is_nan(x)) { return x; }
  if (x == 0.0) { return copysign(inf(), -x); }
  if (x < 0.0 && x == trunc(x)) { return nan(); }
  var y = select(x, 1.0 - x, x < 0.0);
  var sum = T(0);
  while (y < 10.0) {
    sum -= 1.0 / y;
    y += 1.0;
  }
  let z = 1.0 / (y * y);
  let series = z * (0.08333333333333333 + z * (-0.008333333333333333 + z * (0.003968253968253968 + z *
    (-0.004166666666666667 + z * (0.007575757575757576 + z * (-0.021092796092796094 + z * (0.08333333333333333 + z *
    -0.4432598039215686)))))));
  let right = sum + (log(y) - 0.5 / y - series);
  if (x < 0.0) { return right - 3.141592653589793 / tan(3.141592653589793 * (x - round(x))); }
  return right;
}
fn trigamma(x: f64) -> f64 {
  if (is_nan(x)) { return x; }
  if (x <= 0.0 && x == floor(x)) { return inf(); }
  var y = select(x, 1.0 - x, x < 0.0);
  var sum = T(0);
  while (y < 10.0) {
    sum += 1.0 / (y * y);
    y += 1.0;
  }
  let z = 1.0 / (y * y);
  let series = (0.16666666666666666 + z * (-0.03333333333333333 + z * (0.023809523809523808 + z * (-0.03333333333333333
    + z * (0.07575757575757576 + z * (-0.2531135531135531 + z * 1.1666666666666667))))));
  let right = sum + 1.0 / y + 0.5 * z + z / y * series;
  if (x > 0.0) { return right; }
  let s = 3.141592653589793 / sin(3.141592653589793 * (x - round(x)));
  return s * s - right;
}
// The sum of (x + k)^-s over all k >= 0, for x > 0 and s >= 2, by the Euler-Maclaurin formula.
fn zeta_sum(s: f64, x: f64) -> f64 {
  var y = x;
  var sum = T(0);
  while (y < 10.0) {
    sum += pow(y, -s);
    y += 1.0;
  }
  let last = pow(y, -s);
  sum += y * last / (s - 1.0) + 0.5 * last;
  var terms = array<f64, 7>(0.08333333333333333, -0.001388888888888889, 3.306878306878307e-5, -8.267195767195768e-7,
    2.08767569878681e-8, -5.284190138687493e-10, 1.3382536530684679e-11);
  var factor = last * s / y;
  var step = T(2);
  for (var k = 0; k < 7; k++) {
    sum += terms[k] * factor;
    factor *= (s + step - 1.0) * (s + step) / (y * y);
    step += 2.0;
  }
  return sum;
}
fn polygamma(n: f64, x: f64) -> f64 {
  if (is_nan(x)) { return x; }
  let s = n + 1.0;
  let odd = n - 2.0 * floor(n * 0.5) == 1.0;
  var sum = T(0);
  if (x > 0.0) {
    if (!is_inf(x)) { sum = zeta_sum(s, x); }
  } else if (x == floor(x)) {
    sum = inf();
  } else {
    // The terms below zero, mirrored, end where those above zero begin.
    let above = x - floor(x);
    let below = zeta_sum(s, 1.0 - above) - zeta_sum(s, 1.0 - x);
    sum = zeta_sum(s, above) + select(-below, below, odd);
  }
  var factorial = T(1);
  for (var k = T(2); k <= clamped(n, T(1), T(171)); k += 1.0) { factorial *= k; }
  return select(-sum, sum, odd) * factorial;
}
