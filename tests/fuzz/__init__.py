"""Bytes that no one meant to write, for every decoder.

    targets.py     what is asked of each decoder, as a function of bytes that raises where a property does not hold
    mutations.py   damage done to whole records: one of them changed, doubled, dropped, moved, or another one's value
    corpus.py      inputs worth keeping: a line of base64 each, as few as reach all that the fuzzer has reached
    engine.py      one target under libFuzzer, guided by the coverage of our own modules
    __main__.py    `make fuzz`: all of them one after another, and a table

Without the fuzzer, `test_corpus.py` replays the whole corpus in every test run.
"""
