"""Programs in which a traced condition chooses containers that something is written to. The oracle is the plain Python
function; what cannot be right is refused at the user's line."""

import collections
import dataclasses
import pathlib
import sys
import typing

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from autograph_aliases_oracle import XS, assert_refused, assert_same

import weft

StructureError = weft.autograph.StructureError


@dataclasses.dataclass
class Point:
    a: float
    b: float = 2.0

    def bump(self, by):
        self.a = self.a + by


@dataclasses.dataclass
class Holder:
    o: list


@dataclasses.dataclass(frozen=True)
class Frozen:
    l: list


class Named(typing.NamedTuple):
    l: list
    n: float


class Tally:
    def __init__(self, v):
        self.items = [v]

    def add(self, v):
        self.items.append(v)


RIGHT, REFUSED = [], []


def right(function):
    RIGHT.append(function)
    return function


def refused(words, line):
    def add(function):
        REFUSED.append((function, words, line))
        return function

    return add


def programs_that_are_right():
    @right
    def loop_step_in_place(x):

        def step(s):
            s[0] = s[0] + 1.0
            return s

        a = [x]
        s = a
        t = x
        while t < 2.0:
            s = step(s)
            t = t + 1.0
        return a, s

    @right
    def loop_step_in_place_dict(x):

        def step(s):
            s["w"] = s["w"] * 2.0
            return s

        a = {"w": x, "b": 1.0}
        s = a
        y = 0.0
        for _i in range(3):
            s = step(s)
            y = y + a["w"]
        return a, s, y

    @right
    def running_best(x):
        best = cur = [x, 1.0]
        for _i in range(4):
            cur = [cur[1], cur[0] * 0.5 - 1]
            if cur[0] < best[0]:
                best = cur
        return best, cur

    @right
    def w_running_best_write(x):
        best = cur = [x, 1.0]
        t = x
        while t < 3.0:
            cur = [cur[1], cur[0] * 0.5 - 1]
            if cur[0] < best[0]:
                best = cur
            cur[0] = cur[0] + 0.25
            t = t + 1
        return best, cur

    @right
    def swap_if(x):
        a, b = [x], [2 * x]
        p, q = a, b
        if x > 0:
            p, q = b, a
        p[0] = 5.0
        q[0] = 6.0
        return a, b, p, q

    @right
    def swap_if_append(x):
        a, b = [x], [2 * x]
        if x > 0:
            a, b = b, a
        a.append(5.0)
        return a, b

    @right
    def tuple_of_lists(x):
        a, b = [x], [2 * x]
        t = a, b
        u = b, a
        o = t if x > 0 else u
        o[0][0] = 9.0
        return a, b, o

    @right
    def tuple_same(x):
        a, b = [x], [2 * x]
        t = a, b
        if x > 0:
            o = t
            y = x
        else:
            o = t
            y = -x
        o[0][0] = 9.0
        return a, b, y

    @right
    def nested_inner_alias(x):
        i, j = [x], [3 * x]
        a, b = [i], [j]
        o = a if x > 0 else b
        o[0][0] = 9.0
        return i, j

    @right
    def dicts(x):
        a, b = {"k": x}, {"k": 2 * x}
        o = a if x > 0 else b
        o["k"] = 9.0
        return a, b, o

    @right
    def default_dict(x):
        a, b = (collections.defaultdict(float, k=x), collections.defaultdict(float, k=2 * x))
        o = a if x > 0 else b
        o["k"] += 1.0
        return (dict(a), dict(b))

    @right
    def dataclass_method(x):
        a, b = (Point(x), Point(2 * x))
        o = a if x > 0 else b
        o.bump(1.0)
        return a.a, b.a, o.a

    @right
    def dataclass_in_list(x):
        ps = [Point(x), Point(2.0 * x)]
        q = ps[1]
        if x > 0:
            ps[0] = Point(5.0)
        ps[1].a = 7.0 * x
        return q.a, ps[0].a, ps[1].a

    @right
    def users_same(x):
        a = Tally(x)
        if x > 0:
            o = a
            y = 1.0
        else:
            o = a
            y = 2.0
        o.add(y)
        return a.items

    @right
    def frozen_dc(x):
        a, b = (Frozen([x]), Frozen([2 * x]))
        o = a if x > 0 else b
        o.l[0] = 9.0
        return a.l, b.l, o.l

    @right
    def namedtuple_(x):
        a, b = (Named([x], 1.0), Named([2 * x], 2.0))
        o = a if x > 0 else b
        o.l[0] = 9.0
        return a.l, b.l, o.n

    @right
    def numpy_original_unread(x):
        a, b = (np.ones(2), np.zeros(2))
        y = (a if x > 0 else b).sum()
        a[0] = 5.0
        return a, b, y

    @right
    def numpy_same(x):
        a = np.ones(2)
        if x > 0:
            o = a
            y = 1.0
        else:
            o = a
            y = 2.0
        o[0] = 5.0
        return a, o, y

    @right
    def np_carry(x):
        a = np.ones(2)
        s = a
        for _i in range(3):
            s = s * x
        a[0] = 5.0
        return s, a

    @right
    def direct_item(x):
        a, b = [x, 0.0], [2 * x, 0.0]
        (a if x > 0 else b)[1] = 3.0
        return a, b

    @right
    def walrus(x):
        a, b = [x], [2 * x]
        (o := (a if x > 0 else b))[0] = 5.0
        return a, b, o

    @right
    def chosen_set_in_call_in_branch(x):

        def g(l):
            l[0] = 8.0 * x

        a, b = [x], [2 * x]
        o = a if x > 0 else b
        if x * x < 3:
            g(o)
        return a, b, o

    @right
    def chosen_set_in_loop(x):
        a, b = [x], [2 * x]
        o = a if x > 0 else b
        t = 0.0
        for _i in range(3):
            o[0] = o[0] + x
            t = t + a[0] + 10 * b[0]
        return a, b, o, t

    @right
    def chosen_set_in_while(x):
        a, b = [x], [2 * x]
        o = a if x > 0 else b
        t = x
        while t < 3:
            o[0] = o[0] + x
            t = t + 1.0
        return a, b, o, t

    @right
    def fresh_two_names(x):
        if x > 0:
            o = [x]
            p = o
        else:
            o = [2 * x]
            p = o
        o.append(3.0)
        return o, p

    @right
    def fresh_one_alias(x):
        if x > 0:
            o = [x]
            p = o
        else:
            o = [2 * x]
            p = [3 * x]
        o[0] = 3.0
        return o, p

    @right
    def rebind_old(x):
        ys = [x]
        if x > 0:
            ys = [2 * x]
        ys.append(3.0)
        return ys

    @right
    def same_object_if(x):
        a = [x]
        if x > 0:
            o = a
            y = 1.0
        else:
            o = a
            y = 2.0
        o.append(4.0)
        return a, o, y, o is a

    @right
    def elif_read(x):
        a, b, c = [x], [2 * x], [3 * x]
        if x > 1:
            o = a
        elif x > 0:
            o = b
        else:
            o = c
        return o[0], a, b, c

    @right
    def chain(x):
        a, b, c = [x], [2 * x], [3 * x]
        o = a if x > 0 else b
        q = o if x > 1 else c
        q[0] = 6.0
        return a, b, c, o, q

    @right
    def two_choices(x):
        a, b = [x], [2 * x]
        o = a if x > 0 else b
        p = b if x > 0 else a
        o[0] = 6.0
        p[0] = 5.0
        return a, b, o, p

    @right
    def reversed_in_both(x):
        i = [1.0 * x]
        ys = [i, [2.0]]
        if x > 0:
            ys.reverse()
        else:
            ys.reverse()
        ys[1][0] = 5.0
        return i, ys

    @right
    def reversed_in_one(x):
        i = [1.0 * x]
        ys = [i, [2.0]]
        if x > 0:
            ys.reverse()
        ys[1][0] = 5.0
        return i, ys

    @right
    def stored_in_list(x):
        a, b = [x], [2 * x]
        box = []
        box.append(a if x > 0 else b)
        box[0][0] = 5.0
        return a, b, box

    @right
    def gen_fn(x):

        def g(l):
            l[0] = 9.0
            yield 1.0

        a, b = [x], [2 * x]
        o = a if x > 0 else b
        for _v in g(o):
            pass
        return a, b, o

    @right
    def item_for_target(x):
        a, b = [x], [2 * x]
        o = a if x > 0 else b
        for o[0] in (5.0, 6.0):
            pass
        return a, b, o

    @right
    def return_in_loop(x):

        def find(ls):
            for l in ls:
                if l[0] > 1.0:
                    return l
            return ls[0]

        ls = [[0.5], [x], [2.0]]
        o = find(ls)
        o[0] = -1.0
        return ls, o

    @right
    def w_pingpong(x):
        cur, nxt = [x], [0.0]
        t = x
        while t < 3.0:
            nxt[0] = cur[0] + 1.0
            cur, nxt = (nxt, cur)
            t = t + 1.0
        return cur, nxt

    @right
    def become_same(x):
        a, b = [x], [0.0]
        s, p = a, b
        for _i in range(3):
            s[0] = s[0] + x
            s = p
        return a, b, s, p

    @right
    def param_state(x):

        def h(st, x):
            if x > 0:
                st = [st[0] + 1, st[1]]
            st.append(x)
            return st

        return h([x, 2.0], x)

    @right
    def inner_if_rebind(x):
        ys = [x]
        z = 0.0
        if x * x > 1:
            if x > 0:
                ys = [2 * x]
            ys[0] = ys[0] + 1
            z = ys[0]
        return ys, z

    @right
    def for_set_item_existing_write(x):
        b = [5.0 * x]
        d = {"o": [x]}
        for _i in range(3):
            d["o"][0] = d["o"][0] + 1
            d["o"] = b
        return d, b

    @right
    def pass_both(x):

        def g(p, q):
            q[0] = 5.0
            return p[0]

        a, b = [x], [2 * x]
        o = a if x > 0 else b
        return (g(a, o), a, b, o)

    @right
    def default_arg(x):

        def g(v, acc=[0.0]):  # noqa: B006
            acc[0] = acc[0] + v
            return acc

        b = [x]
        o = g(1.0) if x > 0 else b
        o[0] = 3.0
        return b

    @right
    def is_check(x):
        a, b = [x], [2 * x]
        o = a if x > 0 else b
        return 1.0 if o is a else 0.0

    @right
    def operator_mutates(x):

        class S:
            def __init__(self, l):
                self.l = l

            def __add__(self, v):
                self.l[0] = self.l[0] + v
                return self

        a, b = [x], [2 * x]
        o = a if x > 0 else b
        s = S(o)
        s = s + 1.0
        return a, b, o

    @right
    def grad_inner(x):
        a, b = [x], [2 * x]
        o = a if x > 0 else b
        g = weft.grad(lambda v: v[0] * v[0])(o)
        o[0] = 3.0
        return g, a, b

    @right
    def two_level_if(x):
        a, b, c = [x], [2 * x], [0.0]
        o = c
        if x * x > 1:
            if x > 0:
                o = a
            else:
                o = b
            o[0] = o[0] + 1.0
        return a, b, c, o

    @right
    def two_level_if_after(x):
        a, b, c = [x], [2 * x], [0.0]
        o = c
        if x * x > 1:
            if x > 0:
                o = a
            else:
                o = b
        o[0] = o[0] + 1.0
        return a, b, c, o

    @right
    def elif_set(x):
        a, b, c = [x], [2 * x], [3 * x]
        if x > 1:
            o = a
        elif x > 0:
            o = b
        else:
            o = c
        o[0] = 6.0
        return o, a, b, c

    @right
    def ternary_nested(x):
        a, b, c = [x], [2.0], [3.0]
        o = a if x > 1 else b if x > 0 else c
        o[0] = 9.0
        return a, b, c

    @right
    def int_into_float(x):
        a, b = [x], [2 * x]
        o = a if x > 0 else b
        o[0] = 5
        return a[0] * 1.0, b[0] * 1.0


def programs_that_are_refused():
    @refused("a list changes here", "o[0] = [9.0]")
    def nested_replace_inner(x):
        a, b = [[x]], [[2 * x]]
        o = a if x > 0 else b
        o[0] = [9.0]
        return a, b, o

    @refused("a dict changes its length or its keys here", 'o["n"] = 9.0')
    def dict_new_key(x):
        a, b = {"k": x}, {"k": 2 * x}
        o = a if x > 0 else b
        o["n"] = 9.0
        return a, b, o

    @refused("a set changes its length or its keys here", "o.add(3)")
    def sets(x):
        a, b = {1, 2}, {1, 2}
        o = a if x > 0 else b
        o.add(3)
        return (len(a), len(b), len(o))

    @refused("a set changes its length or its keys here", "a.add(3)")
    def sets_original(x):
        a, b = {1, 2}, {1, 2}
        o = a if x > 0 else b
        a.add(3)
        return (len(a), len(b), len(o))

    @refused("a NumPy array changes here", "a[0] = 5.0")
    def numpy_original(x):
        a, b = (np.ones(2), np.zeros(2))
        o = a if x > 0 else b
        a[0] = 5.0
        return a, b, o

    @refused("arrays never change", "o[0] = 5.0")
    def numpy_set(x):
        a, b = (np.ones(2), np.zeros(2))
        o = a if x > 0 else b
        o[0] = 5.0
        return a, b, o

    @refused("a NumPy array changes here", "v[0] = 3.0")
    def view_np(x):
        a, b = (np.ones(2), np.zeros(2))
        v = a[:1]
        o = a if x > 0 else b
        v[0] = 3.0
        return a, b, o

    @refused("a NumPy array changes here", "a[0] = 5.0")
    def np_if_kept(x):
        a = np.ones(2)
        s = a
        if x > 0:
            s = s * x
        a[0] = 5.0
        return s, a

    @refused("a NumPy array would be changed in place here", "o += 1.0")
    def np_in_place_op(x):
        a, b = (np.ones(2), np.zeros(2))
        o = a if x > 0 else b
        o += 1.0
        return a, b, o

    @refused("a list changes its length or its keys here", "(a if x > 0 else b).append(3.0)")
    def direct_method(x):
        a, b = [x], [2 * x]
        (a if x > 0 else b).append(3.0)
        return a, b

    @refused("a list changes its length or its keys here", "o.append(3.0)")
    def fresh_one_alias_append(x):
        if x > 0:
            o = [x]
            p = o
        else:
            o = [2 * x]
            p = [3 * x]
        o.append(3.0)
        return o, p

    @refused("a list changes here", "o[0], a[0] = (6.0, 5.0)")
    def multi_targets(x):
        a, b = [x], [2 * x]
        o = a if x > 0 else b
        o[0], a[0] = (6.0, 5.0)
        return a, b, o

    @refused("a list changes here", "r[0][0] = 100.0")
    def sorted_lists(x):
        a, b = [x], [1.0]
        r = sorted([a, b], key=lambda v: v[0])
        r[0][0] = 100.0
        return a, b, r

    @refused("a list changes its length or its keys here", "list(map(o.append, [1.0]))")
    def extend_by_map(x):
        a, b = [x], [2 * x]
        o = a if x > 0 else b
        list(map(o.append, [1.0]))
        return a, b, o

    @refused("a list changes its length or its keys here", "return o.pop() + len(a)")
    def same_stmt(x):
        a, b = [x], [2 * x]
        o = a if x > 0 else b
        return o.pop() + len(a)

    @refused("a dict changes here", 'cur["v"] = 50.0')
    def while_two(x):
        a, b = {"v": x}, {"v": 0.0}
        cur, nxt = a, b
        t = x
        while t < 3.0:
            cur, nxt = (nxt, cur)
            t = t + 1.0
        cur["v"] = 50.0
        return a, b

    @refused("a list changes here", "o[0] = o[0] + 1.0")
    def loop_write_in(x):
        a, b = [x], [2 * x]
        o = b
        t = x
        while t < 2.0:
            o[0] = o[0] + 1.0
            if t > 0:
                o = a
            t = t + 1.0
        return a, b, o

    @refused("is another object after one step, and the body writes", "while t < 3.0:")
    def w_become_same(x):
        a, b = [x], [0.0]
        s, p = a, b
        t = x
        while t < 3.0:
            s[0] = s[0] + 1.0
            s = p
            t = t + 1.0
        return a, b, s, p

    @refused("is another object after one step, and the body writes", "while t < 3.0:")
    def w_become_same_fresh(x):
        s, p = [x], [0.0]
        t = x
        while t < 3.0:
            s[0] = s[0] + 1.0
            s = p
            t = t + 1.0
        return s, p

    @refused("is another object after one step, and the body writes", "while t < 3.0:")
    def w_running_best_write2(x):
        best = cur = [x, 1.0]
        t = x
        while t < 3.0:
            cur[0] = cur[0] + 0.25
            t = t + 1
            if t > 1:
                best = cur
            cur = [cur[1], cur[0] * 0.5 - 1]
        return best, cur

    @refused("a list changes here", 'd["o"][0] = d["o"][0] + 1')
    def w_set_item_existing_write(x):
        b = [5.0 * x]
        d = {"o": [x]}
        t = x
        while t < 3.0:
            d["o"][0] = d["o"][0] + 1
            d["o"] = b
            t = t + 1
        return d, b

    @refused("a list changes here", "d.o[0] = d.o[0] + 1")
    def attr_loop(x):
        b = [5.0 * x]
        d = Holder([x])
        t = x
        while t < 3.0:
            d.o[0] = d.o[0] + 1
            d.o = b
            t = t + 1
        return d.o, b

    @refused("a list changes its length or its keys here", "b.append(1.0)")
    def len_after(x):
        a, b = [x], [2 * x]
        o = a if x > 0 else b
        b.append(1.0)
        return len(o)

    @refused("a list changes its length or its keys here", "self.side().append(v)")
    def in_method_append(x):

        class S:
            def __init__(self):
                self.lo, self.hi = [0.0], [1.0]

            def side(self):
                return self.hi if x > 0 else self.lo

            def put(self, v):
                self.side().append(v)

        s = S()
        s.put(5.0 * x)
        return s.lo, s.hi

    @refused("a list changes its length or its keys here", "a.append(1.0)")
    def append_both_branches(x):
        a, b = [x], [2 * x]
        o = a if x > 0 else b
        if x > 0:
            a.append(1.0)
        else:
            a.append(2.0)
        return a, b, o

    @refused("a list changes here", "a[0] = 5.0")
    def swap_loop(x):
        a, b = [x], [2 * x]
        for i in range(3):
            if x > i:
                a, b = b, a
        a[0] = 5.0
        return a, b


programs_that_are_right()
programs_that_are_refused()


@pytest.mark.parametrize("function", RIGHT, ids=lambda f: f.__name__)
def test_programs(function):
    converted = weft.autograph(function)
    for x in XS:
        assert_same(converted(x), function(x))
        assert_same(weft.jit(function, autograph=True)(x), function(x))


@pytest.mark.parametrize(("function", "words", "line"), REFUSED, ids=[f.__name__ for f, _, _ in REFUSED])
def test_refused_programs(function, words, line):
    assert_refused(function, words, line)
    for x in XS:
        assert_same(weft.autograph(function)(x), function(x))
