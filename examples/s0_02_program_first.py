"""The program first, as in Theano: it is built, differentiated and printed as a program, and compiled in the end."""

import weft

ir = weft.make_ir(lambda a, b: a * b)(1.0, 1.0)
d = weft.transforms.grad(ir, wrt=0)
print(ir, d, sep="")
g = weft.compile(d)
print("d(a*b)/da at (1.5, 2.5) is", g(1.5, 2.5))
assert float(g(1.5, 2.5)) == 2.5

# From text, where no function in Python was, and differentiated twice.
text = """
fn f(a: f32[], b: f32[]) -> (f32[]) {
  c: f32[] = mul a a
  d: f32[] = mul c b
  return d
}
"""
second = weft.transforms.grad(weft.transforms.grad(weft.parse_ir(text), wrt=0), wrt=1)
assert float(weft.compile(second)(3.0, 5.0)) == 6.0
