"""Free text of any alphabet, made safe for a target language. Letters stay readable in all."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata

# What a reader cannot see, or what one of the languages takes for the end of a line: DEL and the C1
# controls, the line and paragraph separators, the byte order mark, and the two non-characters that
# YAML refuses. (JSON itself escapes the C0 controls.)
_INVISIBLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")

# What has no place in an answer. A terminal obeys it (ESC, a carriage return alone), or it changes
# the order in which the text after it is shown (Unicode Standard Annex 9, section 2).
CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\u202a-\u202e\u2066-\u2069]"
    rf"|\r(?!\n)|{_INVISIBLE.pattern}"
)

_MARKDOWN_ACTIVE = re.compile(r"[\\`*_\[\]<>#|~&$]")
_MARKDOWN_BLOCK_START = re.compile(r"^(\d{1,9}(?=[.)])|(?=[-+=:]))")
_NEWLINE = re.compile(r"\r\n?|\n")


def quoted(value: str) -> str:
    r"""Return the inside of a double-quoted TOML, YAML or JSON string.

    The three share JSON's escapes, once all that YAML or TOML refuses is written as ``\uXXXX``.
    """
    inside = json.dumps(value, ensure_ascii=False)[1:-1]
    return _INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", inside)


def python(value: str) -> str:
    r"""Return the inside of a double-quoted Python string.

    A quotation mark becomes ``\x22``: the formatter would change the quotes around ``\"``.
    """
    return quoted(value).replace('\\"', "\\x22")


def markdown(value: str) -> str:
    """Return one line of Markdown that shows the text as typed, in a heading, paragraph or cell."""
    lines = []
    for line in _NEWLINE.split(value):
        escaped = _MARKDOWN_ACTIVE.sub(r"\\\g<0>", line.strip())
        lines.append(_MARKDOWN_BLOCK_START.sub(r"\1\\", escaped))
    return "<br>".join(lines)


def digest(value: str) -> str:
    """Return what tells whether a file is still as generated (ytstream_tools.adopt.owned_files)."""
    return hashlib.sha256(value.rstrip().encode()).hexdigest()[:16]


def shown(value: str) -> str:
    """Return the value in quotes, on one line, with readable letters, for a message.

    Skip a user name and a token in an address.
    """
    return f'"{quoted(re.sub(r"//[^/@ ]*@", "//...@", value))}"'


def called(character: str) -> str:
    """Return the name that Unicode gives the character. Controls have none."""
    return unicodedata.name(character, "a control character").lower()
