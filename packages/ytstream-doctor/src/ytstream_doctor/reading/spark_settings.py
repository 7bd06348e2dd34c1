"""Spark settings, wherever the files of a job give them."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .files import TextFile
from .name_resolution import Code
from .syntax import UNKNOWN, BoundExpression, called

_KEY = r"spark\.[A-Za-z][\w.-]*\w"
IF_MISSING, DEFAULTS, SUBMIT, SESSION = range(4)
"""What Spark takes if a setting is given several times, from the last to the first. A session's own
settings are the first, and those of a file the last (Spark, Configuration, "Properties set directly
on the SparkConf take the highest precedence")."""
_WORD = re.compile(rf"({_KEY})=(.*)", re.DOTALL)
_IN_TEXT = re.compile(rf"""(?<![\w.`-])({_KEY})["']?\s*[=:]\s*["']?([^\s"',\\)}}]*)""")
_IN_FRONT = re.compile(r"""(^[\s-]*|(--conf|-c)[\s=]+["']?|["'({\[,=]\s*)$""", re.MULTILINE)
"""What stands in front of a setting: the line's beginning, an option, a quote, a bracket, or "=".
Words in front make it prose."""
_SAYS = re.compile(r"\s*@?(echo|printf|log|info|warn)\b")
_IN_PROPERTIES = re.compile(rf"^\s*({_KEY})\s+(\S+)")
"""The files of Spark's own format separate key and value by blanks."""
_SECTION = re.compile(r"^\s*\[+([\w.-]+)\]+")
_IN_SECTION = re.compile(r"""^\s*["']?([\w.-]+)["']?\s*=\s*["']?([^\s"',]*)""")
_OF_CALLS = {"config": SESSION, "set": SESSION, "setIfMissing": IF_MISSING}
_READS = re.compile(r"get|unset|contains|pop|startswith|is|has|assert|warn|log|print")


@dataclass(frozen=True)
class Setting:
    """One value of a setting; ``value`` is None where it is computed.

    ``rank`` says which of several Spark takes.
    """

    key: str
    value: str | None
    file: str
    line: int
    rank: int = SUBMIT

    @property
    def in_driver(self) -> bool:
        """Whether only the running driver makes the setting."""
        return self.rank in (SESSION, IF_MISSING)


@dataclass(frozen=True)
class SparkSettings:
    """All settings of a job."""

    found: Sequence[Setting]

    def of(self, *keys: str) -> list[Setting]:
        """Return the settings with one of these keys that Spark takes."""
        named = [setting for setting in self.found if setting.key in keys]
        highest = max((setting.rank for setting in named), default=0)
        return [setting for setting in named if setting.rank == highest]

    def at_submit(self, *keys: str) -> list[Setting]:
        """Return the settings with one of these keys that are there before the driver is."""
        return SparkSettings([each for each in self.found if not each.in_driver]).of(*keys)

    def values(self, *keys: str) -> set[str | None]:
        """Return the values of these keys that Spark takes."""
        return {setting.value for setting in self.of(*keys)}


def read(code: Code, texts: Sequence[TextFile]) -> SparkSettings:
    """Return the settings of modules and texts."""
    found = [*_of_code(code)]
    for text in texts:
        found += _of_text(text)
    return SparkSettings(tuple(dict.fromkeys(found)))


def _of_text(text: TextFile) -> Iterator[Setting]:
    is_toml = text.kind == ".toml"
    is_defaults = text.kind in (".conf", ".properties") or "spark-defaults" in text.file
    rank = DEFAULTS if is_defaults else SUBMIT
    section = ""
    for number, line in text.lines:
        if _SAYS.match(line):
            continue
        if is_toml and (header := _SECTION.match(line)):
            section = f"{header[1]}."
        pairs: list[tuple[int, str, str]] = []
        for each in _IN_TEXT.finditer(line):
            if _IN_FRONT.search(line[: each.start()]):
                pairs.append((line.count("\n", 0, each.start()), each[1], each[2]))
        if not pairs and is_defaults and (match := _IN_PROPERTIES.match(line)):
            pairs.append((0, match[1], match[2]))
        if not pairs and section.startswith("spark.") and (match := _IN_SECTION.match(line)):
            pairs.append((0, section + match[1], match[2]))
        for more, key, value in pairs:
            yield Setting(key, _as_text(value), text.file, number + more, rank)


def _of_code(code: Code) -> Iterator[Setting]:
    for module, node in code.walk():
        if not isinstance(node, ast.Call | ast.Dict | ast.Tuple | ast.Constant | ast.JoinedStr):
            continue
        if isinstance(node, ast.Constant) and not str(node.value).startswith("spark."):
            continue
        context = code.context(node, module)

        def of(value: ast.expr, context=context) -> object:  # type: ignore[no-untyped-def]
            return code.value(BoundExpression(value, context))

        pairs: list[tuple[ast.expr, ast.expr]] = []
        rank = SUBMIT
        if isinstance(node, ast.Call) and not _READS.match(called(node)):
            rank = _OF_CALLS.get(called(node), SUBMIT)
            pairs = [(node.args[0], node.args[1])] if len(node.args) > 1 else []
            named = {word.arg: word.value for word in node.keywords}
            if "key" in named and "value" in named:
                pairs = [(named["key"], named["value"])]
        elif isinstance(node, ast.Dict):
            rank = SESSION if _is_of_a_session(code, node) else SUBMIT
            pairs = [(key, value) for key, value in zip(node.keys, node.values, strict=True) if key]
        elif isinstance(node, ast.Tuple) and len(node.elts) == 2:
            pairs = [(node.elts[0], node.elts[1])]
        elif isinstance(node, ast.Constant | ast.JoinedStr) and not isinstance(
            code.parents.get(node), ast.JoinedStr | ast.Expr
        ):
            word = of(node)
            if isinstance(word, str) and (match := _WORD.fullmatch(word)):
                yield Setting(match[1], _as_text(match[2]), module.file, node.lineno)
        for key, value in pairs:
            name = of(key)
            if isinstance(name, str) and re.fullmatch(_KEY, name):
                yield Setting(name, _as_text(of(value)), module.file, key.lineno, rank)


def _is_of_a_session(code: Code, node: ast.Dict) -> bool:
    outer = code.parents.get(node)
    return isinstance(outer, ast.keyword) and outer.arg in ("spark_conf_args", "map")


def _as_text(value: object) -> str | None:
    if value is UNKNOWN or value is None:
        return None
    text = str(value).strip()
    if re.search(r"[$\ufffc]|\{\{", text):  # a variable of the shell or of a template
        return None
    return text.lower() if text.lower() in ("true", "false") else text
