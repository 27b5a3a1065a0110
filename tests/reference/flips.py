"""Deliberate mistakes: one trait of a family turned over, to prove that a stored number would notice.

Most flips are an edit of the file (a key, or rows of a tensor) or of a test's option, so that any runtime can replay them;
`graph` flips change the graph itself and can only be played here. An edit is a list of steps:

* `{"set": KEY, "to": VALUE}` replaces or adds a key
* `{"option": NAME, "to": VALUE}` replaces an option of every test
* `{"swap": [A, B]}` exchanges two tensors
* `{"copy": A, "to": B}` overwrites tensor B with tensor A
* `{"fill": A, "with": NUMBER}` sets every element
* `{"swap_rows": A, "at": [i, j], "count": n}` exchanges rows i … i+n-1 with rows j … j+n-1
* `{"roll_rows": A, "by": k}` moves every row down by k, the last ones to the top
* `{"swap_columns": A, "at": [i, j], "count": n}` as for rows
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from case_writer import TOLERANCE, Case
from gguf_bundle import Bundle
from layers import Model
from replay import rel_max, run_test

#: A flip must miss the tolerance by this factor in at least one test.
CLEAR = 5.0

Step = dict[str, Any]


@dataclass(frozen=True)
class Flip:
    """A trait turned over: by edit steps, or by a named deviation of the graph."""

    name: str
    edit: tuple[Step, ...] = ()
    graph: str | None = None


def key(flip: str, name: str, value: object) -> Flip:
    """A flip that sets one `jepa.` key."""
    return Flip(flip, ({"set": f"jepa.{name}", "to": value},))


def option(flip: str, name: str, value: object) -> Flip:
    """A flip that sets one option of the tests."""
    return Flip(flip, ({"option": name, "to": value},))


def swap(flip: str, a: str, b: str) -> Flip:
    """A flip that exchanges two tensors."""
    return Flip(flip, ({"swap": [a, b]},))


def copy(flip: str, source: str, target: str) -> Flip:
    """A flip that overwrites the weight and bias of one norm with another's."""
    return Flip(flip, tuple({"copy": f"{source}.{part}", "to": f"{target}.{part}"} for part in ("weight", "bias")))


def swap_rows(flip: str, tensors: tuple[str, ...], at: tuple[int, int], count: int) -> Flip:
    """A flip that exchanges two groups of rows in each of `tensors`."""
    return Flip(flip, tuple({"swap_rows": name, "at": list(at), "count": count} for name in tensors))


def eps(*stacks: str) -> list[Flip]:
    """The usual wrong epsilons instead of 1e-6."""
    return [key(f"{s} eps {v:.0e}", f"{s}.ln_eps", v) for s in stacks for v in (1e-5, 1e-12)]


def qkv_order(prefix: str, width: int) -> list[Flip]:
    """Keys first instead of queries first, and values before keys."""
    names = (f"{prefix}.attn_qkv.weight", f"{prefix}.attn_qkv.bias")
    return [
        swap_rows(f"{prefix} qkv as kqv", names, (0, width), width),
        swap_rows(f"{prefix} qkv as qvk", names, (width, 2 * width), width),
    ]


def apply(bundle: Bundle, flip: Flip) -> tuple[Bundle, dict[str, Any]]:
    """The edited bundle and the options the edit overrides."""
    out, options = bundle.copy(), {}
    tensors = out.tensors
    for step in flip.edit:
        if "set" in step:
            out.keys[step["set"]] = step["to"]
        elif "option" in step:
            options[step["option"]] = step["to"]
        elif "swap" in step:
            a, b = step["swap"]
            tensors[a], tensors[b] = tensors[b], tensors[a]
        elif "copy" in step:
            tensors[step["to"]] = tensors[step["copy"]]
        elif "fill" in step:
            tensors[step["fill"]] = np.full_like(tensors[step["fill"]], step["with"])
        elif "roll_rows" in step:
            tensors[step["roll_rows"]] = np.roll(tensors[step["roll_rows"]], step["by"], axis=0)
        else:
            name = step.get("swap_rows") or step["swap_columns"]
            array = np.array(tensors[name] if "swap_rows" in step else tensors[name].T)
            (i, j), n = step["at"], step["count"]
            array[[*range(i, i + n), *range(j, j + n)]] = array[[*range(j, j + n), *range(i, i + n)]]
            tensors[name] = np.ascontiguousarray(array if "swap_rows" in step else array.T)
    return out, options


def play(case: Case, flip: Flip) -> dict[str, float]:
    """How far every test of `case` is off under `flip`: rel_max of the worst required output."""
    bundle, options = apply(case.bundle, flip)
    model = Model(bundle, {flip.graph} if flip.graph else ())
    result = {}
    for test in case.case["tests"]:
        roles = {role: name for role, name in test["outputs"].items() if role not in test.get("optional_outputs", ())}
        out = run_test(model, test | {"outputs": roles, "options": test["options"] | options}, case.stored)
        result[test["id"]] = max(rel_max(out[role], case.stored[name]) for role, name in roles.items())
    return result


def record(case: Case, flip: Flip) -> dict[str, Any]:
    """Plays `flip` and describes the outcome: the test it is furthest off, by how much, and every test it misses clearly."""
    values = play(case, flip)
    bar = TOLERANCE["rel_max"]
    clear = [test for test, value in values.items() if value >= CLEAR * bar]
    worst = max(values, key=values.__getitem__)
    entry: dict[str, Any] = {"case": case.name, "flip": flip.name}
    entry |= {"graph": flip.graph} if flip.graph else {"edit": list(flip.edit)}
    return entry | {"test": worst, "rel_max": float(f"{values[worst]:.2g}"), "misses": clear}
