// Recursive functions in the IR's text form, f(x: f64[], n: i32[]) -> f64[], for the tests of several folders.
#ifndef WEFT_IR_SAMPLES_RECURSIVE_SAMPLES_H_
#define WEFT_IR_SAMPLES_RECURSIVE_SAMPLES_H_

namespace weft {

// x ^ n by repeated squaring, with a branch for odd n: f(x, n) = n < 1 ? 1 : (n odd ? x : 1) * f(x * x, n / 2).
inline constexpr const char* kPower = R"(fn f(x: f64[], n: i32[]) {
  y = recursive x n (x: f64[], n: i32[]) {
    more = gt n 0:i32
    y = cond more x n (x: f64[], n: i32[]) { return 1:f64 } (x: f64[], n: i32[]) {
      h = div n 2:i32
      s = mul x x
      r = recur[depth=0, results=types(f64[])] s h
      rest = rem n 2:i32
      odd = eq rest 1:i32
      y = cond odd r x (r: f64[], x: f64[]) { return r } (r: f64[], x: f64[]) { y = mul r x; return y }
      return y
    }
    return y
  }
  return y
}
)";

// Fibonacci with weights: f(x, n) = n < 2 ? x : f(x, n - 1) + x * f(x, n - 2). Two calls, both on the way to the
// result.
inline constexpr const char* kTree = R"(fn f(x: f64[], n: i32[]) {
  y = recursive x n (x: f64[], n: i32[]) {
    more = gt n 1:i32
    y = cond more x n (x: f64[], n: i32[]) { return x } (x: f64[], n: i32[]) {
      a = sub n 1:i32
      b = sub n 2:i32
      p = recur[depth=0, results=types(f64[])] x a
      q = recur[depth=0, results=types(f64[])] x b
      r = mul x q
      y = add p r
      return y
    }
    return y
  }
  return y
}
)";

}  // namespace weft
#endif  // WEFT_IR_SAMPLES_RECURSIVE_SAMPLES_H_
