"""Which partition of the offsets topic a group's records are in."""


def offsets_partition(group: str, partitions: int) -> int:
    """The partition that holds a group's records, of so many.

    Java's String.hashCode over UTF-16 code units, made positive by Math.abs, whose overflow Kafka turns into 0
    (GroupCoordinatorService.partitionFor, Utils.abs).
    """
    code = 0
    units = group.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(units), 2):
        code = (31 * code + int.from_bytes(units[index : index + 2], "big")) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >= 1 << 31 else code
    return 0 if signed == -(1 << 31) else abs(signed) % partitions
