"""What docs/history.md says of the files is so, and its examples run."""

import re
from pathlib import Path
from typing import Final

import pytest

from streaming.history.store import HistoryStore
from streaming.history.tables import TABLES, Table, rows
from tests.streaming.history.entries import event, state

PAGE: Final = (Path(__file__).resolve().parents[3] / "docs" / "history.md").read_text("utf-8")


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_columns(table: Table) -> None:
    """Each column with its type, in the order of the files."""
    section = PAGE.partition(f"Columns of `{table.name}`")[2].partition("Columns of")[0].partition("Files are")[0]
    found = re.findall(r"^\| `(\w+)` \| (\S.*?) \| ", section, re.MULTILINE)

    assert [(column.name, str(column.type)) for column in table.schema] == found


@pytest.mark.parametrize(
    ("library", "expected"),
    [("pandas", r"orders-service +member_joined +1$"), ("pyarrow", r"2024-10-04 12:00:00\+00:00 +member_joined ")],
)
def test_example(library: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It finds what was written; the one of pandas counts once what was written twice."""
    (code,) = re.findall(rf"```python\n(import {library}\b.*?)```", PAGE, re.DOTALL)
    store = HistoryStore(tmp_path)
    for _ in range(2):
        for table, ordered in rows(enumerate([event(1, group="orders-service"), state(1)])).items():
            store.write(table, ordered)
    store.set_complete(0)
    exec(code, {"HISTORY": str(tmp_path)})  # noqa: S102 - the page's own

    assert re.search(expected, capsys.readouterr().out, re.MULTILINE)
