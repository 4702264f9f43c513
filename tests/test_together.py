"""Many cases in one test: all of them are run, and those that fail are named."""

from __future__ import annotations

import pytest

from together import Group, Row, run, together

SOME = [1, 2, 3, 4]


def group_of(*values: object) -> Group:
    return Group(("value",), [Row("all", f"case {value}", (value,)) for value in values])


def below_three(value: int) -> None:
    assert value < 3, f"{value} is too large"


def test_all_that_fail_are_named() -> None:
    with pytest.raises(pytest.fail.Exception) as raised:
        run(below_three, group_of(1, 3, 2, 4))
    told = str(raised.value)
    assert told.startswith("2 of 4 cases fail: case 3, case 4\n")
    assert "3 is too large" in told
    assert "4 is too large" in told


def test_one_that_is_skipped_alone_is_told() -> None:
    def but_two(value: int) -> None:
        if value == 2:
            pytest.skip("not 2")

    with pytest.raises(pytest.fail.Exception, match="1 skipped, which nobody would see: not 2"):
        run(but_two, group_of(1, 2))
    with pytest.raises(pytest.skip.Exception, match="not 2"):
        run(but_two, group_of(2))


def test_something_is_done_before_each() -> None:
    done: list[str] = []
    run(lambda value: done.append(f"{value}"), group_of(*SOME), before=lambda: done.append("before"))
    assert done == ["before", "1", "before", "2", "before", "3", "before", "4"]


@pytest.mark.parametrize("is_each", [False, True])
def test_every_case_is_in_one_test(is_each: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("together.EACH", is_each)
    seen: list[tuple[int, str]] = []

    def case(value: int, other: str) -> None:
        """Of two."""
        seen.append((value, other))

    rows = [Row("odd" if value % 2 else "even", str(value), (value,)) for value in SOME]
    test = together("value", rows)(pytest.mark.parametrize("other", ["a"])(case))
    assert test.__doc__ == "Of two."
    other, own = test.pytestmark
    assert other.args == ("other", ["a"])
    names, params = own.args
    assert [each.id for each in params] == (["odd-1", "even-2", "odd-3", "even-4"] if is_each else ["odd", "even"])
    for each in params:
        test(**dict(zip((names,) if isinstance(names, str) else names, each.values, strict=True)), other="a")
    assert sorted(seen) == [(value, "a") for value in SOME]
