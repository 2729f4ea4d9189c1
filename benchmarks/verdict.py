"""What was measured, as JSON lines, and whether the budget was kept."""

import json


class Verdict:
    """Takes figures; prints each as it comes, and the sum of them."""

    def __init__(self) -> None:
        self.over: list[str] = []
        self.missing: list[str] = []

    def measured(
        self,
        name: str,
        value: float,
        unit: str,
        *,
        most: float | None = None,
        least: float | None = None,
        **more: object,
    ) -> None:
        """Note a figure; with neither `most` nor `least` it only informs."""
        kept = (most is None or value <= most) and (
            least is None or value >= least
        )
        budget = most if least is None else least
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

    def not_measured(self, name: str, reason: str) -> None:
        self._print(figure=name, value=None, reason=reason)
        self.missing.append(name)

    def sum_up(self) -> bool:
        """Print the verdict; True when every budget was kept."""
        self._print(
            verdict='over budget' if self.over else 'within budget',
            over=self.over,
            not_measured=self.missing,
        )
        return not self.over

    def _print(self, **line: object) -> None:
        print(
            json.dumps(
                {
                    key: value
                    for key, value in line.items()
                    if value is not None
                }
            ),
            flush=True,
        )
