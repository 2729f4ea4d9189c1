from tests.cluster import growth


def test_only_a_process_that_goes_on_growing_is_a_problem():
    found = growth.Growth(
        {
            ('api1', 'warm'): [60.0, 80.0, 90.0, *[91.0] * 9],
            ('api2', 'leaks'): [60.0, 80.0, 90.0, *range(91, 140, 5)],
            ('api3', 'young'): [60.0, 90.0, 150.0],
            ('api4', 'a peak'): [*[90.0] * 8, 150.0, *[91.0] * 3],
        }
    )
    (problem,) = found.problems()
    assert problem.startswith('api2, leaks, has grown')
