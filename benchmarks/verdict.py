"""Measured figures as JSON lines, and whether budgets were kept."""

import json


class Verdict:
    """Records figures; prints each one at once, and a summary."""

    def __init__(self) -> None:
        self.over: list[str] = []
        self.missing: list[str] = []

    def record(
        self,
        name: str,
        value: float,
        unit: str,
        *,
        at_most: float | None = None,
        at_least: float | None = None,
        **more: object,
    ) -> None:
        """Record a figure; its budget is `at_most` or `at_least`, if given."""
        kept = (at_most is None or value <= at_most) and (
            at_least is None or value >= at_least
        )
        budget = at_most if at_least is None else at_least
        self._print(
            figure=name,
            value=round(value, 3),
            unit=unit,
            budget=budget,
            kept=None if budget is None else kept,
            **more,
        )
        if not kept:
            self.over.append(name)

    def record_missing(self, name: str, reason: str) -> None:
        self._print(figure=name, value=None, reason=reason)
        self.missing.append(name)

    def summarize(self) -> bool:
        """Print the verdict; return whether every budget was kept."""
        self._print(
            verdict='over budget' if self.over else 'within budget',
            over=self.over,
            not_measured=self.missing,
        )
        return not self.over

    def _print(self, **line: object) -> None:
        print(
            json.dumps(
                {key: value for key, value in line.items() if value is not None}
            ),
            flush=True,
        )


def percentile(ordered: list[float], percent: int) -> float:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
