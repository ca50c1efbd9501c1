"""The shapes that record keys take. Two keys of one shape differ by their record type alone."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from coordinator_model.wire.schema import Schema, String


class RecordKey:
    """Any key. Upstream calls the group `group` up to type 2 and `groupId` from 3 on; `group_name` is it in all."""

    __slots__ = ()
    SCHEMA: ClassVar[Schema] = Schema()

    @property
    @abstractmethod
    def group_name(self) -> str:
        """The group whose state the record is part of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupIdKey(RecordKey):
    """One record per group."""

    group_id: String

    @property
    def group_name(self) -> str:
        """The group whose state the record is part of."""
        return self.group_id


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberKey(GroupIdKey):
    """One record per member of a group."""

    member_id: String
