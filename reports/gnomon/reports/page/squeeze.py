"""Scripts and styles without what only their readers need: comments, indentation, spaces between signs.

Names and most line breaks stay, so that an error in a page can still be found in the source.

Contents: squeezed_script, squeezed_style.
"""

from __future__ import annotations

import re

__all__ = ["squeezed_script", "squeezed_style"]

_STRING = re.compile(r""""(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""")
_REGEX = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/[a-z]*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_WORD = re.compile(r"[\w$]+")
_SPACE = re.compile(r"\s+")

#: Behind these (and at the beginning) a slash begins a regular expression; elsewhere it divides.
_BEFORE_REGEX = "(,=:[!&|?{};"
_WORDS_BEFORE_REGEX = ("return", "typeof", "case")


def squeezed_script(script: str) -> str:
    """The script, doing the same."""
    out: list[str] = []
    space, at = "", 0
    while at < len(script):
        token = _token(script, at, out[-1] if out else "")
        at += len(token)
        if token.isspace() or _COMMENT.fullmatch(token):
            space = "\n" if "\n" in space + token and not token.startswith("//") else space or " "
            continue
        if out and space:
            out.append(_between(out[-1], space, token))
        out.append(token)
        space = ""
    return "".join(out)


def _between(before: str, space: str, after: str) -> str:
    """What has to stay of the space between two tokens."""
    last, first = before[-1], after[0]
    if space == "\n":
        return "" if last in "{,([&|?:=" or first in "})]" else "\n"
    both = _WORD.match(last) and _WORD.match(first)
    return " " if both or (last == first and last in "+-/") else ""


def _token(script: str, at: int, before: str) -> str:
    sign = script[at]
    if sign.isspace():
        return _matched(_SPACE, script, at)
    if sign in "\"'":
        return _matched(_STRING, script, at)
    if sign == "`":
        return script[at : _template_end(script, at)]
    if sign == "/":
        comment = _COMMENT.match(script, at)
        if comment:
            return comment.group()
        if not before or before[-1] in _BEFORE_REGEX or before == "\n" or before in _WORDS_BEFORE_REGEX:
            return _matched(_REGEX, script, at)
        return sign
    word = _WORD.match(script, at)
    return word.group() if word else sign


def _matched(pattern: re.Pattern[str], script: str, at: int) -> str:
    found = pattern.match(script, at)
    if found is None:
        raise ValueError(f"the script can't be read from here on: {script[at : at + 40]!r}")
    return found.group()


def _template_end(script: str, at: int) -> int:
    """Where the template string that begins at ``at`` ends; what stands inside stays as it is."""
    at += 1
    while script[at] != "`":
        if script[at] == "\\":
            at += 2
        elif script.startswith("${", at):
            at = _expression_end(script, at + 2)
        else:
            at += 1
    return at + 1


def _expression_end(script: str, at: int) -> int:
    depth = 1
    while depth:
        if script[at] == "`":
            at = _template_end(script, at)
            continue
        string = _STRING.match(script, at)
        if string:
            at = string.end()
            continue
        depth += {"{": 1, "}": -1}.get(script[at], 0)
        at += 1
    return at


def squeezed_style(style: str) -> str:
    """The style sheet, meaning the same; it holds no strings with braces or semicolons."""
    style = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    style = re.sub(r"\s+", " ", style)
    style = re.sub(r" ?([{};,]) ?", r"\1", style)
    return re.sub(r"([{;][\w-]+): ", r"\1:", style).replace(";}", "}").strip()
