"""Tables of measurements, with a row per task and a column per description."""

from __future__ import annotations

from collections.abc import Iterable

from ._measurement import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english


class Compare:
    """Table of measurements side by side.

    Args:
        results: measurements.

    Examples:
        >>> results = [torch.utils.benchmark.Timer("x + 1", globals={"x": torch.ones(2)}).timeit(10)]
        >>> text = str(torch.utils.benchmark.Compare(results))
    """

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim = self._warn = False

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements to the table."""
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
            self._results.append(result)

    def trim_significant_figures(self) -> None:
        """Show significant digits only."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Do nothing, as the table has no colors."""

    def highlight_warnings(self) -> None:
        """Mark measurements that vary much."""
        self._warn = True

    def print(self) -> None:
        """Print the table."""
        print(str(self))

    def __str__(self) -> str:
        groups: dict[str, list[Measurement]] = {}
        for result in Measurement.merge(self._results):
            groups.setdefault(result.task_spec.label or result.task_spec.stmt, []).append(result)
        return "\n".join(self._table(label, results) for label, results in groups.items())

    def _cell(self, result: Measurement, scale: float, digits: int) -> str:
        time = trim_sigfig(result.median, result.significant_figures) if self._trim else result.median
        mark = f" (! {result.iqr / result.median * 100:.0f}%)" if self._warn and result.has_warnings else ""
        return f"{time / scale:.{digits}f}{mark}"

    def _table(self, label: str, results: list[Measurement]) -> str:
        unit, scale = select_unit(min(result.median for result in results))
        columns = ordered_unique(result.task_spec.description for result in results)
        rows = ordered_unique((result.task_spec.num_threads, result.env, result.as_row_name) for result in results)
        rows.sort(key=lambda row: row[0])
        several = len({env for _, env, _ in rows}) > 1
        names = [f"({env})  {name}" if several else name for _, env, name in rows]
        told = {
            ((result.task_spec.num_threads, result.env, result.as_row_name), result.task_spec.description): result
            for result in results
        }
        digits = (
            1
            if not self._trim
            else max(max(result.significant_figures - len(str(int(result.median / scale))), 0) for result in results)
        )
        cells = [
            [self._cell(told[row, column], scale, digits) if (row, column) in told else "" for column in columns]
            for row in rows
        ]
        # Times stand right below each other, in the middle of their column.
        wide = [max(len(line[at]) for line in cells) for at in range(len(columns))]
        cells = [[text.rjust(width) for text, width in zip(line, wide, strict=True)] for line in cells]
        heads = [column or "" for column in columns]
        widths = [max(len(text) for text in (head, *(line[at] for line in cells))) for at, head in enumerate(heads)]
        first = 6 + max(map(len, names))
        head = "  |  ".join([" " * first, *(text.center(width) for text, width in zip(heads, widths, strict=True))])
        title = f" {label} "
        lines = [f"[{title.center(len(head) - 2, '-')}]", head]
        last = None
        for (threads, _, _), name, line in zip(rows, names, cells, strict=True):
            if threads != last:
                lines.append(f"{threads} threads: ".ljust(len(head), "-"))
                last = threads
            lines.append(
                "  |  ".join(
                    [f"      {name}".ljust(first), *(text.center(width) for text, width in zip(line, widths, strict=True))]
                )
            )
        lines += ["", f"Times are in {unit_to_english(unit)}s ({unit})."]
        if self._warn and any(result.has_warnings for result in results):
            lines.append("(! XX%) Measurement has high variance, where XX is the IQR / median * 100.")
        return "\n".join(lines) + "\n"
