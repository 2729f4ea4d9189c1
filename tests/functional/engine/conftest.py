import pytest

from tests.functional.engine.service_process import House


@pytest.fixture
def build_house(database_url, tmp_path):
    """`build_house(**given)`: one more process on the same database."""
    built = []

    def build(**given):
        house = House(tmp_path, database_url, fill=not built, **given)
        built.append(house)
        for one in built:
            one.houses = built
        return house

    yield build
    for house in built:
        house.stop()


@pytest.fixture
def house(build_house):
    """A process whose services run in threads."""
    return build_house().start()


@pytest.fixture
def two(build_house):
    """Two processes of one back end that run nothing by themselves.

    Each hears of its own work only.
    """
    houses = [build_house(backends=['alpha']) for _ in range(2)]
    for house in houses:
        house.houses = [house]
        house.register()
        house.run()
    return houses
