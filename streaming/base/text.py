"""Text that is safe to print: names and metadata are the clients' own."""


def printable(text: str) -> str:
    """Names and metadata are the clients' own; what could steer a terminal is shown by its code."""
    return text if text.isprintable() else "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def printable_lines(text: str) -> str:
    """The same for a text of several lines, whose ends are ours: what is the clients' was made printable before."""
    return "\n".join(map(printable, text.split("\n")))
