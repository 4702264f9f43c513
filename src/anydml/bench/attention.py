"""The rows of attention: heads of transformers, and one query behind keys of the past."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..core.enums import MultiheadAttentionMaskType
from .computation import Built, Computation, Node, Tensor, layer


class Heads(NamedTuple):
    """Attention of so many queries to so many keys, of which some are of the past."""

    name: str
    batch: int
    heads: int
    queries: int
    size: int
    past: int = 0

    def within(self, most: int) -> Heads:
        """The same with tensors of at most so many elements."""
        found = self
        while found.batch * found.heads * max(found.queries, found.queries + found.past) * found.size > most:
            found = found._replace(
                batch=(found.batch + 1) // 2,
                heads=(found.heads + 1) // 2,
                queries=(found.queries + 1) // 2,
                past=found.past // 2,
                size=max(found.size // 2, 4) if found.heads == 1 else found.size,
            )
        return found


HEADS = (
    Heads("8 heads, 2048 x 64", 1, 8, 2048, 64),
    Heads("12 heads, 128 x 64", 1, 12, 128, 64),
    Heads("12 heads, 128 x 64, batch of 8", 8, 12, 128, 64),
    Heads("5 heads, 333 x 40", 1, 5, 333, 40),
    Heads("16 heads of 128, one row behind 1023", 1, 16, 1, 128, 1023),
    Heads("12 heads of 64, one row behind 511, batch of 8", 8, 12, 1, 64, 511),
)


def _attention(given: Heads) -> Callable[[int, str], Built]:
    def build(most: int, dtype: str) -> Built:
        found = given.within(most)
        batch, heads, queries, size = found.batch, found.heads, found.queries, found.size
        total = found.past + queries
        rows = (batch, queries, heads * size)
        past, present = (batch, heads, found.past, size), (batch, heads, total, size)
        inputs = {"QueryTensor": Tensor(rows), "KeyTensor": Tensor(rows), "ValueTensor": Tensor(rows)}
        outputs = {"OutputTensor": Tensor(rows)}
        if found.past:
            inputs |= {"PastKeyTensor": Tensor(past), "PastValueTensor": Tensor(past)}
            outputs |= {"OutputPresentKeyTensor": Tensor(present), "OutputPresentValueTensor": Tensor(present)}

        def by_torch(torch: Any, q: Any, k: Any, v: Any, *others: Any) -> Callable[[], Any]:
            """The rows of each head apart, as the past ones are; these are joined with the new ones before."""
            attend = torch.nn.functional.scaled_dot_product_attention
            q, k, v = (each.view(batch, queries, heads, size).transpose(1, 2) for each in (q, k, v))
            if not found.past:
                return lambda: attend(q, k, v).transpose(1, 2).reshape(rows)
            pasts, presents = others[:2], others[3:]

            def run() -> Any:
                for one, new, both in zip(pasts, (k, v), presents, strict=True):
                    torch.cat((one, new), 2, out=both)
                return attend(q, *presents).transpose(1, 2).reshape(rows)

            return run

        names = ("QueryTensor", "KeyTensor", "ValueTensor", "", "", "", "PastKeyTensor", "PastValueTensor")
        return Built(
            inputs,
            outputs,
            {
                "Scale": size**-0.5,
                "MaskFilterValue": -10000.0,
                "HeadCount": heads,
                "MaskType": MultiheadAttentionMaskType.NONE,
            },
            torch=by_torch,
            node=Node(
                "com.microsoft.MultiHeadAttention",
                names if found.past else names[:3],
                {"num_heads": heads},
                outputs=len(outputs),
            ),
            products=2 * batch * heads * queries * total * size,
        )

    return build


def attention() -> Iterator[Computation]:
    for dtype in ("float32", "float16"):
        for given in HEADS:
            yield layer(
                "MULTIHEAD_ATTENTION",
                given.name,
                dtype,
                _attention(given),
                "one row" if given.queries == 1 else "many rows",
            )
