"""What `kafka-consumer-groups` of any release says of a group, and a GROUP view in the same form.

Each release prints other columns: what a table does not have is not in the values either, and nothing is compared then.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError

from streaming.base.errors import CannotTellError
from tests.brokers.releases import Release
from tests.group_tables import Row, rows
from tests.group_tool import GroupTool

Printout = dict[str, str]
"""`state`, `members` and `offsets`: the tables of one group, as text."""
Said = dict[str, Any]
"""`state`, `members` (by id), `offsets` (`topic-partition` → offset, log end, lag)."""

_TABLES: Final = ("state", "members", "offsets")
_NOT_FOUND: Final = re.compile(r"GroupIdNotFoundException|does not exist|not found")
# Of a group that is empty the tables of some releases begin with a sentence that says so.
_NO_MEMBERS: Final = re.compile(r"^(Error: )?.*has no active members\.$", re.MULTILINE)
# `orders:0,1;payments:2`; before 4.0 `orders(0,1), payments(2)`; of 3.8 and 3.9 without the names: `(0,1), (2)`.
_OWNED: Final = re.compile(r"([^\s:;,()]*)[:(]([\d,]+)")
_NUMBERS: Final = {"CURRENT-OFFSET": "offset", "LOG-END-OFFSET": "log_end_offset", "LAG": "lag"}


class ReleaseTool(GroupTool):
    """`kafka-consumer-groups` of one release, in one JVM."""

    def __init__(self, release: Release, bootstrap_servers: str, *, log: Path) -> None:
        """Start the JVM; raises as `GroupTool`."""
        super().__init__(bootstrap_servers, log=log, jars_dir=release.jars())
        self._verbose = ("--verbose",) if release.number >= (4, 0) else ()
        self._class = (
            "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
            if release.number >= (3, 8)
            else "kafka.admin.ConsumerGroupCommand"
        )
        # Once: Scala's println keeps the stream that it finds first.
        java = self._gateway.jvm.java
        self._printed = java.io.ByteArrayOutputStream()
        java.lang.System.setOut(java.io.PrintStream(self._printed, True, "UTF-8"))

    def run(self, *arguments: str, main_class: str = "") -> str:
        """As `GroupTool.run`."""
        given = ["--bootstrap-server", self._bootstrap_servers, *arguments]
        with self._lock:
            array = self._gateway.new_array(self._gateway.jvm.java.lang.String, len(given))
            for number, argument in enumerate(given):
                array[number] = argument
            self._printed.reset()
            try:
                command: Any = self._gateway.jvm
                for name in (main_class or self._class).split("."):
                    command = getattr(command, name)
                command.main(array)
            except Py4JJavaError as error:
                raise CannotTellError(f"kafka-consumer-groups: {error.java_exception.toString()}") from None
            return str(self._printed.toString("UTF-8"))

    def printed(self, group: str) -> Printout:
        """The three tables of a group."""
        more = {"state": self._verbose, "members": ("--verbose",), "offsets": ()}
        return {
            table: self.run("--describe", "--group", group, f"--{table}", *more[table]).strip("\n") for table in _TABLES
        }


def said(printout: Printout) -> Said | None:
    """The tables as values; None of a group that does not exist.

    Raises:
        CannotTellError: the tool printed an error.
    """
    if _NOT_FOUND.search(printout["state"]) is not None:
        return None
    (state,) = rows(printout["state"])
    if state["STATE"] == "Dead":
        return None
    return {
        "state": state["STATE"],
        "member_count": int(state["#MEMBERS"]),
        **({"assignor": state["ASSIGNMENT-STRATEGY"]} if state["STATE"] == "Stable" else {}),
        **({"epoch": int(epoch)} if (epoch := state.get("GROUP-EPOCH", "-")) != "-" else {}),
        "members": {row["CONSUMER-ID"]: _member(row) for row in _rows(printout["members"])},
        "offsets": {f"{row['TOPIC']}-{row['PARTITION']}": _offset(row) for row in _offset_rows(printout["offsets"])},
    }


def differences(
    said_by_tool: Said | None, view: Mapping[str, Any] | None, *, writes_static_returns: bool = True
) -> list[str]:
    """Where a GROUP view is not what the tool says, in words; a view without lag is compared without.

    Where a static member's return is not written, the log has the member id that it had before.
    """
    if said_by_tool is None or view is None:
        return [] if said_by_tool is view else [f"tool {said_by_tool}, monitor {view}"]
    found = _of_view(view)
    return [*_differences(said_by_tool, found if writes_static_returns else _as_returned(said_by_tool, found))]


def _as_returned(expected: Said, found: Said) -> Said:
    """With the member ids that static members have now, by their client ids."""
    now = {of["client_id"]: member_id for member_id, of in expected["members"].items()}
    members = {
        now.get(of["client_id"], member_id) if of["instance_id"] is not None else member_id: of
        for member_id, of in found["members"].items()
    }
    return {**found, "members": members}


def _differences(expected: Said, found: Said) -> Iterator[str]:
    # Of a group that takes the broker's default assignor the log does not have the name.
    of_default = {"assignor"} if found["assignor"] is None else set()
    for name in sorted(expected.keys() - {"members", "offsets"} - of_default):
        if expected[name] != found[name]:
            yield f"{name}: tool {expected[name]}, monitor {found[name]}"
    for part in ("members", "offsets"):
        if expected[part].keys() != found[part].keys():
            yield f"{part}: tool {sorted(expected[part])}, monitor {sorted(found[part])}"
            continue
        for key, values in expected[part].items():
            shown = {name: found[part][key].get(name, value) for name, value in values.items()}
            if values != shown:
                yield f"{key}: tool {values}, monitor {shown}"


def _of_view(view: Mapping[str, Any]) -> Said:
    names = ("instance_id", "client_id", "client_host", "epoch")
    return {
        "state": view["state"],
        "member_count": len(view["members"]),
        "assignor": view["protocol"],
        "epoch": view["epoch"],
        "members": {
            member["member_id"]: {
                **{name: member[name] for name in names},
                "owned": member["assigned"],
                "owned_numbers": sorted(number for numbers in member["assigned"].values() for number in numbers),
            }
            for member in view["members"]
        },
        "offsets": {
            f"{offset['topic']}-{offset['partition']}": {
                name: offset[name] for name in _NUMBERS.values() if name in offset
            }
            for offset in view["offsets"]
        },
    }


def _member(row: Row) -> dict[str, Any]:
    cell = row["CURRENT-ASSIGNMENT"] if "CURRENT-ASSIGNMENT" in row else row["ASSIGNMENT"]
    owned = [(topic, int(number)) for topic, numbers in _OWNED.findall(cell) for number in numbers.split(",")]
    by_topic = {topic: sorted(number for of, number in owned if of == topic) for topic in sorted(dict(owned))}
    epoch = row.get("CURRENT-EPOCH", "-")
    return {
        "client_id": row["CLIENT-ID"],
        "client_host": row["HOST"],
        **({"owned_numbers": sorted(number for _, number in owned)} if "" in by_topic else {"owned": by_topic}),
        # The column is there only where a member has one, and not at all before 2.5.
        **({"instance_id": row["GROUP-INSTANCE-ID"].strip("-") or None} if "GROUP-INSTANCE-ID" in row else {}),
        **({} if epoch == "-" else {"epoch": int(epoch)}),
    }


def _offset(row: Row) -> dict[str, int]:
    return {name: int(row[column]) for column, name in _NUMBERS.items() if row[column] != "-"}


def _offset_rows(text: str) -> list[Row]:
    """Of partitions with an offset: those without, and members without partitions, have rows as well."""
    return [row for row in _rows(text) if row["CURRENT-OFFSET"] != "-"]


def _rows(text: str) -> list[Row]:
    return rows(_NO_MEMBERS.sub("", text))
