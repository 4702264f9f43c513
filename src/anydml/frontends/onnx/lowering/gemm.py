"""Products of matrices, and sums of products in general."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ....functions import load
from ...directmlx import Expression
from ..context import Lowering, NodeContext, NotLowered
from ..values import Traced
from .shapes import broadcast, reshaped

_REAL = (np.dtype(np.float32), np.dtype(np.float16))


def product(node: NodeContext, a: Expression, b: Expression, **options: Any) -> Expression:
    """A product of matrices, whose other dimensions broadcast.

    Of integers, for which GEMM is not: sum over k of a[..., m, k] * b[..., k, n], modulo 2^bits as ONNX's wrap.
    """
    if a.dtype in _REAL:
        # GEMM has at most two dimensions for the batch.
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        if len(batch) > 2:
            a, b = (broadcast(x, (*batch, *x.shape[-2:])).reshape(-1, *x.shape[-2:]) for x in (a, b))
        found: Expression = node.call("gemm", a, b, **options)
        return found.reshape(*batch, *found.shape[-2:]) if len(batch) > 2 else found
    if options:
        raise NotLowered(f"a product of {a.dtype} with {', '.join(options)}")
    terms = a.reshape(*a.shape, 1) * b.reshape(*b.shape[:-2], 1, *b.shape[-2:])
    total: Expression = node.call("reduce", terms, "sum", axes=[terms.ndim - 2])
    return total.reshape(*total.shape[:-2], total.shape[-1])


def gemm(node: NodeContext) -> Any:
    """alpha * a b + beta * c."""
    a, b = node.shape(0), node.shape(1)
    trans_a, trans_b = bool(node.get("transA", 0)), bool(node.get("transB", 0))
    rows, columns = a[1 if trans_a else 0], b[0 if trans_b else 1]
    if not rows * columns:
        return np.zeros((rows, columns), node.dtype(0))
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    if node.dtype(0) not in _REAL:
        return _integer_gemm(node, trans_a, trans_b, alpha, beta)
    c = node.x(2) if node.has(2) else None
    return node.call("gemm", node.x(0), node.x(1), c, trans_a=trans_a, trans_b=trans_b, alpha=alpha, beta=beta)


def _integer_gemm(node: NodeContext, trans_a: bool, trans_b: bool, alpha: float, beta: float) -> Expression:
    if int(alpha) != alpha or int(beta) != beta:
        raise NotLowered(f"integers of which {alpha} and {beta} are factors")
    kind = node.dtype(0).type
    a, b = node.x(0), node.x(1)
    found = product(node, a.T if trans_a else a, b.T if trans_b else b)
    found = found if alpha == 1 else found * kind(int(alpha))
    if not node.has(2):
        return found
    c = node.x(2)
    return found + (c if beta == 1 else c * kind(int(beta)))


def mat_mul(node: NodeContext) -> Any:
    """NumPy's: a vector is a row before a matrix, and a column behind one."""
    a, b = node.shape(0), node.shape(1)
    is_row, is_column = len(a) == 1, len(b) == 1
    left, right = ((1, *a) if is_row else a), ((*b, 1) if is_column else b)
    batch = np.broadcast_shapes(left[:-2], right[:-2])
    shape = (*batch, *(() if is_row else left[-2:-1]), *(() if is_column else right[-1:]))
    if 0 in a or 0 in b:
        return np.zeros(shape, node.dtype(0))
    x, y = node.x(0), node.x(1)
    if len(left) > 2 == len(right) and x.dtype in _REAL:
        # One matrix for all: the rows of the others are those of one matrix.
        left = (prod(left[:-1]), left[-1])
    return node.shaped(product(node, reshaped(x, left), reshaped(y, right)), shape)


def einsum(node: NodeContext) -> Traced | Any:
    """A sum of products, two operands at a time, from the left."""
    terms, result = _labels(node)
    if any(0 in node.shape(i) for i in range(len(node))):
        sizes = {each: size for i, term in enumerate(terms) for each, size in zip(term, node.shape(i), strict=True)}
        return np.zeros([sizes[each] for each in result], node.dtype(0))
    operands = [_diagonal(node.x(i), term) for i, term in enumerate(terms)]
    first, *others = operands
    for i, other in enumerate(others):
        later = set(result).union(*(term for _, term in others[i + 1 :]))
        first = _pair(
            node, _summed(node, first, later | set(other[1])), _summed(node, other, later | set(first[1])), later
        )
    x, labels = _summed(node, first, set(result))
    return node.shaped(x.transpose([labels.index(each) for each in result]) if result else x, _shape(x, labels, result))


def _shape(x: Expression, labels: str, result: str) -> tuple[int, ...]:
    return tuple(x.shape[labels.index(each)] for each in result)


def _labels(node: NodeContext) -> tuple[list[str], str]:
    """The labels of each operand and of the result, one character each; those of "..." are capitals of no alphabet."""
    equation = node.required("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(node):
        raise NotLowered(f"{len(terms)} terms for {len(node)} operands")
    most = max(
        (node.rank(i) - len(term.replace("...", "")) for i, term in enumerate(terms) if "..." in term), default=0
    )
    ellipsis = "".join(chr(0x1000 + i) for i in range(most))
    found = []
    for i, term in enumerate(terms):
        own = node.rank(i) - len(term.replace("...", ""))
        term = term.replace("...", ellipsis[most - own :] if own else "")
        if len(term) != node.rank(i):
            raise NotLowered(f"a term {term!r} for {node.rank(i)} dimensions")
        found.append(term)
    if arrow:
        return found, right.replace("...", ellipsis)
    every = "".join(found)
    return found, ellipsis + "".join(sorted(each for each in set(every) if every.count(each) == 1 and each < "\u1000"))


def _diagonal(x: Expression, labels: str) -> tuple[Expression, str]:
    """A label that stands twice goes along a diagonal: its stride is the sum of both."""
    once = "".join(dict.fromkeys(labels))
    if once == labels:
        return x, labels
    strides = dict.fromkeys(once, 0)
    for each, stride in zip(labels, x.tensor.strides, strict=True):
        strides[each] += stride
    sizes = dict(zip(labels, x.shape, strict=True))
    view = x.reinterpret(x.tensor.DataType, [sizes[each] for each in once], [strides[each] for each in once])
    return _copied(view), once


def _copied(x: Expression) -> Expression:
    """A view's elements, one behind the other."""
    found: Expression = load("identity")(x)
    return found


def _summed(node: NodeContext, operand: tuple[Expression, str], kept: set[str]) -> tuple[Expression, str]:
    """Without the labels that nothing else has."""
    x, labels = operand
    axes = [i for i, each in enumerate(labels) if each not in kept]
    if not axes:
        return operand
    rest = "".join(each for each in labels if each in kept)
    shape = [size for size, each in zip(x.shape, labels, strict=True) if each in kept]
    total = node.call("reduce", x, "sum", axes=axes)
    return total.reshape(*shape or (1,)), rest


def _pair(
    node: NodeContext, left: tuple[Expression, str], right: tuple[Expression, str], later: set[str]
) -> tuple[Expression, str]:
    """Two operands as one: a batch of products of matrices, of which rows, columns and what is summed are labels.

    Labels of both that are kept are the batch's; those of one alone are rows or columns; the others are summed.
    """
    (x, of_x), (y, of_y) = left, right
    sizes = dict(zip(of_y, y.shape, strict=False))
    for each, size in zip(of_x, x.shape, strict=False):
        sizes[each] = max(size, sizes.get(each, 1))
    batch = "".join(each for each in of_x if each in of_y and each in later)
    inner = "".join(each for each in of_x if each in of_y and each not in later)
    rows = "".join(each for each in of_x if each not in of_y)
    columns = "".join(each for each in of_y if each not in of_x)
    x, y = (_spread(each, own, {one: sizes[one] for one in batch + inner}) for each, own in (left, right))

    def laid(z: Expression, own: str, *groups: str) -> Expression:
        order = [own.index(each) for group in groups for each in group]
        z = z.transpose(order) if order else z
        return z.reshape(
            *(sizes[each] for each in groups[0]), *(prod(sizes[each] for each in one) for one in groups[1:])
        )

    a, b = laid(x, of_x, batch, rows, inner), laid(y, of_y, batch, inner, columns)
    # Without a sum, or of integers, the elements are multiplied where they stand.
    found = a * b if not inner else product(node, a, b)
    labels = batch + rows + columns
    return found.reshape([sizes[each] for each in labels] or [1]), labels


def _spread(x: Expression, labels: str, sizes: dict[str, int]) -> Expression:
    """A size of 1 beside a larger one of the same label is repeated."""
    wanted = tuple([sizes.get(each, size) for each, size in zip(labels, x.shape, strict=False)])
    return x if not labels or wanted == x.shape else _copied(broadcast(x, wanted))


LOWERINGS: dict[str, Lowering] = {
    "Einsum": einsum,
    "Gemm": gemm,
    "MatMul": mat_mul,
}
