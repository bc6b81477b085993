r"""Regular expressions of RE2, which BigQuery has, as those of Java, which Spark has.

**Invariant:** the translated expression matches the same texts at the same places.  What Java means
otherwise is written anew (`.`, `$`, `\s`, `\b`, `\v`, classes within classes); what it means
otherwise and cannot be written is refused, as are forms that RE2 does not know.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field

UNICODE_CLASSES = frozenset(
    [
        "L",
        "Ll",
        "Lu",
        "Lt",
        "Lm",
        "Lo",
        "N",
        "Nd",
        "Nl",
        "No",
        "P",
        "Pc",
        "Pd",
        "Ps",
        "Pe",
        "Pi",
        "Pf",
        "Po",
        "S",
        "Sm",
        "Sc",
        "Sk",
        "So",
        "Z",
        "Zs",
        "Zl",
        "Zp",
        "C",
        "Cc",
        "Cf",
        "M",
        "Mn",
        "Mc",
        "Me",
    ]
)
POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": "\\x00-\\x7F", "blank": "\\t ",
    "cntrl": "\\x00-\\x1F\\x7F", "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~",
    "punct": "!-/:-@\\[-`{-~", "space": "\\t\\n\\x0B\\f\\r ", "upper": "A-Z", "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip
PERL = {"d": "0-9", "w": "0-9A-Za-z_", "s": "\\t\\n\\f\\r "}
CONTROL = {"a": "\\x07", "f": "\\f", "n": "\\n", "r": "\\r", "t": "\\t", "v": "\\x0B"}
_WORD = "[0-9A-Za-z_]"
_EDGE = f"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))"
_INSIDE = f"(?:(?<={_WORD})(?={_WORD})|(?<!{_WORD})(?!{_WORD}))"
_MAX_REPEAT = 1000
_END = "\\z"


class RegexError(ValueError):
    """An expression that RE2 does not know, or that Java cannot match alike.

    Attributes:
        at: the offset in the expression.
    """

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


@dataclass(frozen=True, slots=True, kw_only=True)
class Regex:
    """A translated expression.

    Attributes:
        java: for Spark.
        groups: the number of capturing groups.
        sure: whether each group takes part in every match.
        empty: whether a match may be empty.
    """

    java: str
    groups: int
    sure: bool
    empty: bool


def translated(pattern: str) -> Regex:
    """Translate an expression.

    Raises:
        RegexError: it cannot be.
    """
    parser = _Parser(pattern)
    java, empty = parser.alternatives(0)
    if parser.at < len(pattern):
        raise RegexError("a ) without its (", parser.at)
    return Regex(java=f"(?d){java}", groups=parser.groups, sure=parser.sure, empty=empty)


@dataclass(slots=True)
class _Parser:
    text: str
    at: int = 0
    groups: int = 0
    sure: bool = True
    many: list[bool] = field(default_factory=lambda: [False])
    """Whether (?m) is set, for each group that is open."""

    def peek(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    def alternatives(self, depth: int) -> tuple[str, bool]:
        """Read up to the end or a closing bracket; return the Java and whether it may be empty."""
        if depth > 50:  # noqa: PLR2004 - brackets in each other
            raise RegexError("groups are nested too deep", self.at)
        branches: list[tuple[str, bool]] = []
        before = self.groups
        while True:
            branches.append(self.sequence(depth))
            if self.peek() != "|":
                break
            self.at += 1
        if len(branches) > 1 and self.groups > before:
            self.sure = False
        return "|".join(java for java, _ in branches), any(empty for _, empty in branches)

    def sequence(self, depth: int) -> tuple[str, bool]:
        parts, empty = [], True
        while self.at < len(self.text) and self.peek() not in "|)":
            before = self.groups
            java, nothing = self.atom(depth)
            times, optional = self.repeat()
            if times and not java:
                raise RegexError("nothing is repeated", self.at)
            if optional and self.groups > before:
                self.sure = False
            parts.append(f"{java}{times}")
            empty = empty and (nothing or optional)
        return "".join(parts), empty

    def repeat(self) -> tuple[str, bool]:
        """Read *, +, ?, {n,m}; return them, and whether they allow no match."""
        start, char = self.at, self.peek()
        if char and char in "*+?":
            self.at += 1
            times, optional = char, char in "*?"
        elif char == "{" and (bounds := self.bounds()) is not None:
            times, optional = bounds
        else:
            return "", False
        if self.peek() == "?":
            self.at += 1
            times += "?"
        if (self.peek() and self.peek() in "*+?") or (
            self.peek() == "{" and self.bounds() is not None
        ):
            raise RegexError("a repetition is repeated", start)
        return times, optional

    def bounds(self) -> tuple[str, bool] | None:
        end = self.text.find("}", self.at)
        inside = self.text[self.at + 1 : end] if end > 0 else ""
        low, comma, high = inside.partition(",")
        if not (
            low.isdecimal()
            and low.isascii()
            and (not high or (high.isdecimal() and high.isascii()))
        ):
            return None
        if max(int(low), int(high or 0)) > _MAX_REPEAT or (high and int(high) < int(low)):
            raise RegexError("a repetition is out of range", self.at)
        self.at = end + 1
        return f"{{{low}{comma}{high}}}", int(low) == 0

    def atom(self, depth: int) -> tuple[str, bool]:  # noqa: PLR0911 - one for each kind
        """Read one atom; return it, and whether it matches without a character."""
        char = self.peek()
        if char == "(":
            return self.group(depth)
        if char == "[":
            return self.char_class(), False
        if char == "\\":
            return self.escape()
        self.at += 1
        if char == ".":
            return ".", False
        if char == "^":
            return ("(?:\\A|(?<=\\n))" if self.many[-1] else "\\A"), True
        if char == "$":
            return ("(?=\\n|\\z)" if self.many[-1] else _END), True
        if char in "*+?":
            raise RegexError("nothing is repeated", self.at - 1)
        return _quoted(char), False

    def group(self, depth: int) -> tuple[str, bool]:
        start = self.at
        self.at += 1
        opening, many = "(", self.many[-1]
        if self.peek() == "?":
            self.at += 1
            opening, many, alone = self.flags(start)
            if alone:
                self.many[-1] = many
                return opening, True
        else:
            self.groups += 1
        self.many.append(many)
        inside, empty = self.alternatives(depth + 1)
        self.many.pop()
        if self.peek() != ")":
            raise RegexError("a ( without its )", start)
        self.at += 1
        return f"{opening}{inside})", empty

    def flags(self, start: int) -> tuple[str, bool, bool]:
        """Read what follows `(?`; return the opening, whether (?m) is set, and if that is all."""
        for named in ("P<", "<"):
            if self.peek(len(named)) == named:
                end = self.text.find(">", self.at)
                name = self.text[self.at + len(named) : end] if end > 0 else ""
                if not name.isidentifier():
                    raise RegexError("this group is not known to RE2", start)
                self.at = end + 1
                self.groups += 1
                return "(", self.many[-1], False
        on, off, many, negative = "", "", self.many[-1], False
        while (char := self.peek()) and char not in ":)":
            self.at += 1
            if char == "-" and not negative:
                negative = True
            elif char in "ism":
                many = many if char != "m" else not negative
                letters = "iu" if char == "i" else char
                on, off = (on, off + letters) if negative else (on + letters, off)
            else:
                raise RegexError("this group is not known to RE2, or means another thing", start)
        if not self.peek():
            raise RegexError("a ( without its )", start)
        alone = self.peek() == ")"
        self.at += 1
        text = on + (f"-{off}" if off else "")
        return (f"(?{text})" if alone else f"(?{text}:"), many, alone

    def escape(self) -> tuple[str, bool]:
        start = self.at
        self.at += 2
        char = self.text[start + 1 : start + 2]
        edges = {"b": _EDGE, "B": _INSIDE, "A": "\\A", "z": _END}
        if char in edges and char:
            return edges[char], True
        if char == "Q":
            end = self.text.find("\\E", self.at)
            quoted = self.text[self.at : end] if end >= 0 else self.text[self.at :]
            self.at = len(self.text) if end < 0 else end + 2
            return "".join(_quoted(one) for one in quoted) or "(?:)", not quoted
        if char.lower() in PERL and char:
            return f"[{'^' if char.isupper() else ''}{PERL[char.lower()]}]", False
        return self.escaped_character(start), False

    def escaped_character(self, start: int) -> str:
        """Read an escape that stands for characters, in a class or outside."""
        self.at = start + 2
        char = self.text[start + 1 : start + 2]
        if char in CONTROL and char:
            return CONTROL[char]
        if char == "x":
            return self.hexadecimal(start)
        if char in {"p", "P"}:
            return self.unicode_class(start, char)
        if char and char.isascii() and not char.isalnum():
            return _quoted(char)
        raise RegexError(f"\\{char} is not known to RE2, or means another thing in Java", start)

    def hexadecimal(self, start: int) -> str:
        if self.peek() == "{":
            end = self.text.find("}", self.at)
            digits = self.text[self.at + 1 : end] if end > 0 else ""
            self.at = end + 1
        else:
            digits = self.peek(2)
            self.at += 2
            if len(digits) != 2:  # noqa: PLR2004 - \xFF
                raise RegexError("\\x needs two digits", start)
        try:
            point = int(digits, 16)
            chr(point)
        except (ValueError, OverflowError):
            raise RegexError("\\x needs hexadecimal digits", start) from None
        return f"\\x{{{point:X}}}"

    def unicode_class(self, start: int, letter: str) -> str:
        if self.peek() == "{":
            end = self.text.find("}", self.at)
            name = self.text[self.at + 1 : end] if end > 0 else ""
            self.at = end + 1
        else:
            name = self.peek()
            self.at += 1
        if name not in UNICODE_CLASSES:
            raise RegexError(
                f"\\{letter}{{{name}}} is not supported: only general categories are", start
            )
        return f"\\{letter}{{{name}}}"

    def char_class(self) -> str:
        start = self.at
        self.at += 1
        out = "["
        if self.peek() == "^":
            self.at += 1
            out += "^"
        first = True
        while first or self.peek() != "]":
            if self.at >= len(self.text):
                raise RegexError("a [ without its ]", start)
            out += self.class_item(start)
            first = False
        self.at += 1
        return out + "]"

    def class_item(self, start: int) -> str:
        if self.peek(2) == "[:":
            end = self.text.find(":]", self.at)
            name = self.text[self.at + 2 : end] if end > 0 else ""
            negative = name.startswith("^")
            if name.lstrip("^") not in POSIX or end < 0:
                raise RegexError("this class is not known to RE2", self.at)
            self.at = end + 2
            inside = POSIX[name.lstrip("^")]
            return f"[^{inside}]" if negative else inside
        low = self.class_character()
        if self.peek() == "-" and self.peek(2) != "-]" and self.at + 1 < len(self.text):
            if (len(low) > 1 and low[1] in "[pP") or low.startswith("["):
                raise RegexError("a class is no end of a range", self.at)
            self.at += 1
            high = self.class_character()
            if high.startswith("[") or (len(high) > 1 and high[1] in "pP"):
                raise RegexError("a class is no end of a range", self.at)
            if _point(low) > _point(high):
                raise RegexError("a range is empty", start)
            return f"{low}-{high}"
        return low

    def class_character(self) -> str:
        char = self.peek()
        if char != "\\":
            self.at += 1
            return _quoted(char)
        after = self.text[self.at + 1 : self.at + 2]
        if after.lower() in PERL and after:
            self.at += 2
            inside = PERL[after.lower()]
            return f"[^{inside}]" if after.isupper() else f"[{inside}]"
        return self.escaped_character(self.at)


def _quoted(char: str) -> str:
    """Escape a character for Java, in a class or outside."""
    if char.isascii() and not char.isalnum() and char.isprintable():
        return f"\\{char}" if char not in " _" else char
    return char if char.isalnum() else f"\\x{{{ord(char):X}}}"


def _point(java: str) -> int:
    if java.startswith("\\x{"):
        return int(java[3:-1], 16)
    controls = {"\\f": 12, "\\n": 10, "\\r": 13, "\\t": 9, "\\x07": 7, "\\x0B": 11}
    return controls.get(java, ord(java[-1]))


def replacement(text: str, groups: int) -> str | None:
    r"""Return the replacement of REGEXP_REPLACE for Java; None if it is not one of RE2's.

    `\0` to `\9` are groups, `\\` is a backslash; a digit after a group is no part of its number.
    """
    out, at = "", 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
            after = text[at : at + 1]
            if after == "\\":
                out += "\\\\"
            elif after and after in "0123456789" and int(after) <= groups:
                out += f"${after}" + (
                    "" if text[at + 1 : at + 2] not in tuple("0123456789") else "\\"
                )
            else:
                return None
        else:
            out += f"\\{char}" if char == "$" else char
        at += 1
    return out
