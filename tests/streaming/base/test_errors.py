"""What is shown of an error of several lines."""

from streaming.base.errors import first_line

PROXIED = """An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "clientserver.py", line 617, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
KeyError: 'p-3'

\tat py4j.Protocol.getReturnValue(Protocol.java:476)
"""


def test_error_is_told_by_its_first_line() -> None:
    """Or by its class where it says nothing, by the last cause of a Java stack."""
    assert "gone" == first_line(ValueError("gone\nand more"))
    assert "ValueError" == first_line(ValueError())
    assert "java.io.IOException: full" == first_line(
        ValueError("Job aborted\n\tat X\nCaused by: java.io.IOException: full")
    )


def test_error_of_python_below_a_jvm_is_told_by_what_it_was() -> None:
    """Not by the line that says that there was one."""
    assert "KeyError: 'p-3'" == first_line(ValueError(PROXIED))


def test_error_of_java_is_told_by_what_java_said() -> None:
    """Not by which of our calls it met; the stack stays behind."""
    text = (
        "An error occurred while calling None.x.JavaSparkContext.\n: java.lang.NoSuchMethodError: 'void y()'\n\tat x.y"
    )

    assert "java.lang.NoSuchMethodError: 'void y()'" == first_line(ValueError(text))
    assert "An error occurred while calling o1.x" == first_line(ValueError("An error occurred while calling o1.x"))


def test_error_whose_words_are_gone_is_told_as_such() -> None:
    """Spark's errors ask a JVM what they say, which may have ended."""

    class Mute(Exception):
        def __str__(self) -> str:
            raise ConnectionError

    assert "its words went with Spark's JVM" == first_line(Mute())
