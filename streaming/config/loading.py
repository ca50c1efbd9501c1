"""Loading the configuration: a YAML file, then the environment, then flags; the later one wins.

- File: the sections of `streaming.config.sections`; `conf/reference.yaml` shows every option.
- Environment: `GROUP_MONITOR__SECTION__OPTION`, for example `GROUP_MONITOR__HTTP__PORT=0`. Other variables are none of
  our business; a variable with this prefix that names no option is refused like an unknown key.
- Flags: dotted names (`http.port`).

Secrets come from the environment or from files of their own. `${env:NAME}` in any text of the file stands for the
variable NAME, `${file:PATH}` for what is in the file PATH (without the line's end); for a secret option such a
reference is the only thing the file may hold, so that a configuration can be shown, committed and mailed. Values that
came that way are shown by their reference, never by their content.

All problems are shown in one message, before anything is started.
"""

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args, get_origin

import annotated_types
import yaml
from pydantic import SecretStr, ValidationError
from pydantic.fields import FieldInfo

from streaming.base.errors import UsageError
from streaming.base.secret_masking import MASK, hide
from streaming.config.section import Problem, Section, all_rules
from streaming.config.sections import Config

__all__ = ["ENVIRONMENT_PREFIX", "Config", "accepted_by", "effective_yaml", "is_secret", "load", "options"]

ENVIRONMENT_PREFIX: Final = "GROUP_MONITOR__"
_REFERENCE: Final = re.compile(r"\$\{(?:env:[A-Za-z_][A-Za-z0-9_]*|file:[^{}]+)\}")
_LONGEST_SECRET: Final = 64 * 1024
_SECRET_NAME: Final = re.compile(r"secret|password|token|credential|access.?key", re.IGNORECASE)
_SHOWN_CHARACTERS: Final = 80


@dataclass(frozen=True, slots=True)
class _Entry:
    """A value given for an option: `shown` is what messages may print of it, None for the value itself."""

    value: object
    origin: str
    shown: str | None = None


def load(
    path: Path | None = None, env: Mapping[str, str] | None = None, overrides: Mapping[str, object] | None = None
) -> Config:
    """Read the configuration.

    Args:
        path: the YAML file, None for defaults.
        env: environment variables, None for those of the process.
        overrides: dotted option name to value, from flags; a value of None means the flag was not given.

    Raises:
        UsageError: all problems found, in one message.
    """
    environment = os.environ if env is None else env
    problems: list[Problem] = []
    entries: dict[str, _Entry] = {}
    for given in (
        _from_file(path, problems) if path is not None else {},
        _from_environment(environment, problems),
        _from_flags(overrides or {}, problems),
    ):
        entries.update(given)
    entries = _resolved(entries, environment, problems)
    config = _validated(entries, problems)
    if problems:
        raise UsageError("; ".join(str(problem) for problem in problems))
    return config


def options(section: type[Section] = Config, prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield every option as (dotted name, declaration), in the order of declaration."""
    for name, field in section.model_fields.items():
        inner = _section_of(field)
        if inner is None:
            yield prefix + name, field
        else:
            yield from options(inner, f"{prefix}{name}.")


def is_secret(field: FieldInfo) -> bool:
    """Tell whether the option's value must never be shown."""
    return field.annotation is SecretStr or SecretStr in get_args(field.annotation)


def accepted_by(field: FieldInfo) -> str:
    """Say in words what an option accepts."""
    extra = field.json_schema_extra
    if isinstance(extra, dict) and "accepted" in extra:
        return str(extra["accepted"])
    if is_secret(field):
        return "a reference ${env:NAME} to an environment variable or ${file:PATH} to a file"
    kinds = [kind for kind in _alternatives(field.annotation) if kind is not type(None)]
    literals = [str(value) for kind in kinds if get_origin(kind) is Literal for value in get_args(kind)]
    if literals:
        return " or ".join([", ".join(literals[:-1]), literals[-1]]) if len(literals) > 1 else literals[0]
    if bool in kinds:
        return "true or false"
    if int in kinds:
        return "a whole number" + _bounds(field.metadata)
    return "a path" if Path in kinds else "text that is not empty"


def effective_yaml(config: Config) -> str:
    """Render a configuration as YAML that `load` would understand, but for secrets, which are masked."""
    return yaml.safe_dump(_plain(config), sort_keys=False, allow_unicode=True)


# --- where values come from ---


def _from_file(path: Path, problems: list[Problem]) -> dict[str, _Entry]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise UsageError(f"--config: found {str(path)!r} ({reason}), accepted: a readable YAML file") from None
    loader = yaml.SafeLoader(text)
    entries: dict[str, _Entry] = {}
    try:
        root = loader.get_single_node()
        if root is not None:
            _walk(loader, root, Config, "", path, entries, problems)
    except yaml.YAMLError as error:
        raise UsageError(_yaml_error(path, error)) from None
    except RecursionError:
        raise UsageError(f"--config: found {str(path)!r} (nested too deep), accepted: a readable YAML file") from None
    finally:
        loader.dispose()
    return entries


def _walk(  # noqa: PLR0913 - a recursion that carries its collectors
    loader: yaml.SafeLoader,
    node: yaml.Node,
    section: type[Section],
    prefix: str,
    path: Path,
    entries: dict[str, _Entry],
    problems: list[Problem],
) -> None:
    origin = f"{path}:{node.start_mark.line + 1}"
    if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null":
        return
    if not isinstance(node, yaml.MappingNode):
        accepted = f"a mapping with {_names(section)}"
        problems.append(
            Problem(option=prefix.rstrip(".") or "file", found="no mapping", accepted=accepted, origin=origin)
        )
        return
    seen: set[str] = set()
    for key_node, value_node in node.value:
        name = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else "(no text)"
        origin = f"{path}:{key_node.start_mark.line + 1}"
        dotted = prefix + name
        if name in seen:
            problems.append(Problem(option=dotted, found="it twice", accepted="every option once", origin=origin))
            continue
        seen.add(name)
        field = section.model_fields.get(name)
        if field is None:
            problems.append(_unknown(dotted, section, prefix, origin))
            continue
        inner = _section_of(field)
        if inner is not None:
            _walk(loader, value_node, inner, f"{dotted}.", path, entries, problems)
        else:
            entries[dotted] = _Entry(loader.construct_object(value_node, deep=True), origin)


def _from_environment(environment: Mapping[str, str], problems: list[Problem]) -> dict[str, _Entry]:
    known = dict(options())
    entries: dict[str, _Entry] = {}
    for variable, text in sorted(environment.items()):
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        dotted = variable.removeprefix(ENVIRONMENT_PREFIX).lower().replace("__", ".")
        if dotted not in known:
            problems.append(_unknown(dotted, Config, "", f"environment variable {variable}"))
            continue
        value: object = text
        if _alternatives(known[dotted].annotation)[0] is dict:
            value = _mapping_of(text)
        shown = "(not shown)" if is_secret(known[dotted]) else None
        entries[dotted] = _Entry(value, f"environment variable {variable}", shown)
    return entries


def _from_flags(overrides: Mapping[str, object], problems: list[Problem]) -> dict[str, _Entry]:
    known = dict(options())
    entries: dict[str, _Entry] = {}
    for dotted, value in overrides.items():
        if value is None:
            continue
        if dotted not in known:
            problems.append(_unknown(dotted, Config, "", "command line"))
        else:
            entries[dotted] = _Entry(value, "command line")
    return entries


def _resolved(
    entries: Mapping[str, _Entry], environment: Mapping[str, str], problems: list[Problem]
) -> dict[str, _Entry]:
    known = dict(options())
    resolved: dict[str, _Entry] = {}
    for dotted, entry in entries.items():
        secret = is_secret(known[dotted])
        texts = {reference: _referred(reference, environment) for reference in _references(entry.value)}
        missing = [f"{reference}, but {text}" for reference, (text, is_there) in texts.items() if not is_there]
        literal = secret and entry.shown is None and not _is_reference(entry.value) and entry.value is not None
        if literal or missing:
            found = "a literal value (not shown)" if literal else missing[0]
            accepted = accepted_by(known[dotted]) if secret else "references to variables that are set, and to files"
            problems.append(Problem(option=dotted, found=found, accepted=accepted, origin=entry.origin))
        elif secret and _is_blank(entry.value, texts):
            # An empty one would let everybody in, or be sent to brokers as if it were one.
            found, accepted = "an empty value", "a secret that is not empty, or no such option"
            problems.append(Problem(option=dotted, found=found, accepted=accepted, origin=entry.origin))
        elif texts:
            of = {reference: text for reference, (text, _) in texts.items()}
            for reference, text in of.items():
                # A file is for nothing but secrets; a variable may be a port.
                if secret or isinstance(entry.value, dict) or reference.startswith("${file:"):
                    hide(text)
            shown = str(entry.value) if isinstance(entry.value, str) else "(not shown)"
            resolved[dotted] = replace(entry, value=_substituted(entry.value, of), shown=shown)
        else:
            if secret and isinstance(entry.value, str):
                hide(entry.value)
            resolved[dotted] = entry
    return resolved


def _references(value: object) -> list[str]:
    if isinstance(value, str):
        return _REFERENCE.findall(value)
    if isinstance(value, dict):
        return [reference for inner in value.values() for reference in _references(inner)]
    return []


def _referred(reference: str, environment: Mapping[str, str]) -> tuple[str, bool]:
    """What a reference stands for and True, or why it stands for nothing and False."""
    kind, _, name = reference[2:-1].partition(":")
    if kind == "env":
        return (environment[name], True) if environment.get(name) else (f"{name} is not set", False)
    try:
        with Path(name).open("rb") as file:
            content = file.read(_LONGEST_SECRET).decode("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        return f"the file cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8 text'})", False
    return (content, True) if content else ("the file is empty", False)


def _is_blank(value: object, texts: Mapping[str, tuple[str, bool]]) -> bool:
    """Whether a secret has nothing but blanks in it, whatever it was given as."""
    text = _substituted(value, {reference: text for reference, (text, _) in texts.items()})
    return isinstance(text, str) and not text.strip()


def _is_reference(value: object) -> bool:
    return isinstance(value, str) and _REFERENCE.fullmatch(value) is not None


def _substituted(value: object, texts: Mapping[str, str]) -> object:
    if isinstance(value, str):
        return _REFERENCE.sub(lambda match: texts[match[0]], value)
    if isinstance(value, dict):
        return {name: _substituted(inner, texts) for name, inner in value.items()}
    return value


def _mapping_of(text: str) -> object:
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError):
        return text


# --- judging them ---


def _validated(entries: dict[str, _Entry], problems: list[Problem]) -> Config:
    """Judge values one by one, then what must fit together, leaving out what is already known to be wrong."""
    known = dict(options())
    wrong = {problem.option for problem in problems}
    good = dict(entries)
    try:
        Config.model_validate(_tree(entries))
    except UsageError:
        pass  # shown by the rules below, with the places the values came from
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_context=False):
            dotted = _option_of(detail["loc"], known)
            place = tuple(map(str, detail["loc"][len(dotted.split(".")) :]))
            entry = entries.get(dotted)
            within = None if entry is None else _within(dotted, known[dotted], place, detail["input"], entry)
            if within is not None:
                good.pop(dotted, None)
                wrong.add(dotted)
                problems.append(within)
            elif dotted in good:
                entry = good.pop(dotted)
                wrong.add(dotted)
                problems.append(
                    Problem(
                        option=dotted,
                        found=entry.shown if entry.shown is not None else _shown(known[dotted], entry.value),
                        accepted=accepted_by(known[dotted]),
                        origin=entry.origin,
                    )
                )
    sections = _constructed(Config, _tree(good))
    for problem in all_rules(sections):
        if not wrong.intersection((problem.option, *problem.involves)):
            entry_of = next((entries[name] for name in (problem.option, *problem.involves) if name in entries), None)
            problems.append(replace(problem, origin=entry_of.origin if entry_of else ""))
    return sections if problems else Config.model_validate(_tree(good))


def _within(dotted: str, field: FieldInfo, place: tuple[str, ...], given: object, entry: _Entry) -> Problem | None:
    """What is wrong within a mapping of names to sections; None where it is elsewhere."""
    section = _named_section(field)
    if section is None or len(place) != 2:  # noqa: PLR2004 - a name, and an option
        return None
    option = f"{dotted}.{place[0]}.{place[1]}"
    inner = section.model_fields.get(place[1])
    found, accepted = "an unknown option", f"one of {_names(section)}"
    if inner is not None:
        # What a reference stood for is not shown.
        found = _shown(inner, given) if entry.shown is None else entry.shown
        accepted = accepted_by(inner)
    return Problem(option=option, found=found, accepted=accepted, origin=entry.origin)


def _constructed(section: type[Section], tree: dict[str, Any]) -> Any:  # noqa: ANN401 - the type passed in, built unchecked
    """Build a section without its cross-option rules, so that all of them can be shown at once."""
    values = {}
    for name, field in section.model_fields.items():
        inner = _section_of(field)
        if inner is not None:
            values[name] = _constructed(inner, tree.get(name, {}))
    if section is Config:
        return Config.model_construct(**values)
    return section.model_validate({**tree, **values})


def _tree(entries: Mapping[str, _Entry]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for dotted, entry in entries.items():
        *sections, name = dotted.split(".")
        branch = tree
        for part in sections:
            branch = branch.setdefault(part, {})
        branch[name] = entry.value
    return tree


def _option_of(location: tuple[int | str, ...], known: Mapping[str, FieldInfo]) -> str:
    """Find the option an error of pydantic is about: inside a mapping or union the location goes on."""
    parts = [str(part) for part in location]
    return next((".".join(parts[:end]) for end in range(len(parts), 0, -1) if ".".join(parts[:end]) in known), "")


def _unknown(dotted: str, section: type[Section], prefix: str, origin: str) -> Problem:
    """An unknown option, with the one that was probably meant: a neighbour, or one of the same name elsewhere."""
    name = dotted.rsplit(".", 1)[-1]
    everywhere = [known for known, _ in options()]
    near = [prefix + match for match in difflib.get_close_matches(name, list(section.model_fields), n=1)]
    near = near or difflib.get_close_matches(dotted, everywhere, n=1, cutoff=0.75)
    near = near or [known for known in everywhere if known.rsplit(".", 1)[-1] == name][:1]
    accepted = f"known options (did you mean {near[0]}?)" if near else f"one of {_names(section)}"
    return Problem(option=dotted, found="an unknown option", accepted=accepted, origin=origin)


def _names(section: type[Section]) -> str:
    return ", ".join(section.model_fields)


def _section_of(field: FieldInfo) -> type[Section] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def _named_section(field: FieldInfo) -> type[Section] | None:
    """Of a mapping of names to sections, what its values are."""
    kinds = get_args(field.annotation)
    kind = kinds[-1] if get_origin(field.annotation) is dict else None
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def _alternatives(annotation: object) -> list[Any]:
    if get_origin(annotation) is Annotated:
        return _alternatives(get_args(annotation)[0])
    if get_origin(annotation) in (None, Literal):
        return [annotation]
    if get_origin(annotation) is dict:
        return [dict]
    return [kind for inner in get_args(annotation) for kind in _alternatives(inner)]


def _bounds(metadata: list[Any]) -> str:
    low = next((bound.ge for bound in metadata if isinstance(bound, annotated_types.Ge)), None)
    high = next((bound.le for bound in metadata if isinstance(bound, annotated_types.Le)), None)
    if high is not None:
        return f" from {low} to {high}"
    return f", {low} or more" if low is not None else ""


def _shown(field: FieldInfo, value: object) -> str:
    # A mapping may hold credentials, and so may what stands in the place of one.
    if is_secret(field) or isinstance(value, dict) or _alternatives(field.annotation)[0] is dict:
        return f"a {type(value).__name__} (not shown)"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"


def _yaml_error(path: Path, error: yaml.YAMLError) -> str:
    """Name the place and the rule broken; the text itself may be a secret and is left out."""
    mark = getattr(error, "problem_mark", None)
    line = mark.line + 1 if mark is not None else 1
    syntax = isinstance(error, yaml.scanner.ScannerError | yaml.parser.ParserError)
    reason = str(getattr(error, "problem", "")) if syntax else "a tag or an alias that is not understood"
    return f"{path}:{line}: not YAML ({reason}), accepted: a YAML mapping of sections"


def _plain(section: Section) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, Section):
            plain[name] = _plain(value)
        elif isinstance(value, SecretStr):
            plain[name] = MASK
        elif isinstance(value, dict):
            hides = name == "headers"
            plain[name] = {key: MASK if hides or _SECRET_NAME.search(key) else inner for key, inner in value.items()}
        else:
            plain[name] = str(value) if isinstance(value, Path) else list(value) if isinstance(value, tuple) else value
    return plain
