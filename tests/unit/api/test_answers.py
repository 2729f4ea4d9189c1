"""Every handler says what it answers, in terms that can be described."""

import inspect

import pytest

from manila_lite.api import answers, fields, router, routes, versions, wsgi
from manila_lite.api.description import shapes


def declarations():
    """Yield the declarations of all handlers, with their names."""
    for route in routes.ROUTES:
        controller = route.controller
        if route.handler != router.ACTION:
            yield (
                f'{controller.__name__}.{route.handler}',
                controller,
                wsgi.declaration(controller, route.handler),
            )
            continue
        for name in wsgi.action_methods(controller):
            for row in getattr(controller, name).actions:
                yield f'{controller.__name__}.{name}', controller, row.declared


def views(shape):
    """Yield the views that a shape contains, and those of their fields."""
    if isinstance(shape, fields.View):
        yield shape
        for field in shape.rows:
            yield from views(field.shape)
    elif isinstance(shape, dict):
        for inner in shape.values():
            yield from views(inner)
    elif isinstance(shape, list):
        yield from views(shape[0])


DECLARATIONS = {name: rest for name, *rest in declarations()}


@pytest.mark.parametrize(
    'name',
    [
        f'{route.controller.__name__}.{route.handler}'
        for route in routes.ROUTES
        if route.method == 'GET'
    ],
)
def test_every_read_declares_its_answer(name):
    """Say `answer=` in the decorator of the handler."""
    _, declared = DECLARATIONS[name]
    assert declared.answer is not None


@pytest.mark.parametrize('name', DECLARATIONS)
def test_every_field_of_an_answer_has_a_type(name):
    """Annotate the function of the field, or give the field a `shape`."""
    controller, declared = DECLARATIONS[name]
    shape = declared.answer
    if inspect.isfunction(shape):
        shape = shape(controller)
    untyped = [
        field.name
        for view in views(shape)
        for field in view.rows
        if field.shape is None and not shapes.value_schema(field.value)
    ]
    assert untyped == []


def test_page_may_lack_its_link_and_count():
    found = shapes.Shapes(versions.MAX).schema(
        answers.page('widgets', str, links_key='widget_links', count=True),
        'Widgets.index',
    )
    assert found['required'] == ['widgets']
    assert set(found['properties']) == {'widgets', 'widget_links', 'count'}
