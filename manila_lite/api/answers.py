"""Answers as data: the bodies that handlers declare for the API description.

The shape of a body, or of a part of it, is one of these:

- a view: an object with its fields;
- a list with one shape: a list of such items;
- a dict: an object with these keys and the shapes of their values;
- a type, such as `str`, `int | None` or `dict[str, str]`;
- a function that returns a shape for the class of the controller, for
  handlers that several controllers inherit.
"""

import typing

Shape: typing.TypeAlias = typing.Any


class MayLack(str):
    """A key that some bodies do not have."""

    __slots__ = ()


class Link(typing.TypedDict):
    """A link of a resource or to the next page."""

    rel: str
    href: str


def page(
    key: str, item: Shape, *, links_key: str | None = None, count: bool = False
) -> Shape:
    """Return the shape of what `paging.answer` returns."""
    shape: dict[str, Shape] = {
        key: [item],
        MayLack(links_key or f'{key}_links'): list[Link],
    }
    if count:
        shape[MayLack('count')] = int
    return shape
