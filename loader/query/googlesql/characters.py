r"""Characters of a regular expression of RE2, by themselves and in classes, as those of Java.

**Invariant:** the same characters match.  What Java means otherwise is written anew (`\s`, `\v`,
classes within classes); what it means otherwise and cannot be written is refused, as are forms that
RE2 does not know.
"""

from __future__ import annotations

from dataclasses import dataclass

_CATEGORIES = """
L Ll Lu Lt Lm Lo N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp C Cc Cf M Mn Mc Me
"""
UNICODE_CLASSES = frozenset(_CATEGORIES.split())
POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": "\\x00-\\x7F", "blank": "\\t ",
    "cntrl": "\\x00-\\x1F\\x7F", "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~",
    "punct": "!-/:-@\\[-`{-~", "space": "\\t\\n\\x0B\\f\\r ", "upper": "A-Z", "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip
PERL = {"d": "0-9", "w": "0-9A-Za-z_", "s": "\\t\\n\\f\\r "}
CONTROL = {"a": "\\x07", "f": "\\f", "n": "\\n", "r": "\\r", "t": "\\t", "v": "\\x0B"}


class RegexError(ValueError):
    """An expression that RE2 does not know, or that Java cannot match alike.

    Attributes:
        at: the offset in the expression.
    """

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


@dataclass(slots=True)
class Characters:
    """An expression that is read from a place on."""

    text: str
    at: int = 0

    def peek(self, count: int = 1) -> str:
        """Return the next characters, without reading them."""
        return self.text[self.at : self.at + count]

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
            return quoted(char)
        raise RegexError(f"\\{char} is not known to RE2, or means another thing in Java", start)

    def hexadecimal(self, start: int) -> str:
        r"""Read what follows `\x`: two digits, or digits in braces."""
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
        r"""Read what follows `\p` or `\P`: a general category."""
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
        """Read `[…]`."""
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
        """Read a character, a range or a class by name, within brackets."""
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
        """Read one character, or an escape, within brackets."""
        char = self.peek()
        if char != "\\":
            self.at += 1
            return quoted(char)
        after = self.text[self.at + 1 : self.at + 2]
        if after.lower() in PERL and after:
            self.at += 2
            inside = PERL[after.lower()]
            return f"[^{inside}]" if after.isupper() else f"[{inside}]"
        return self.escaped_character(self.at)


def quoted(char: str) -> str:
    """Escape a character for Java, in a class or outside."""
    if char.isascii() and not char.isalnum() and char.isprintable():
        return f"\\{char}" if char not in " _" else char
    return char if char.isalnum() else f"\\x{{{ord(char):X}}}"


def _point(java: str) -> int:
    if java.startswith("\\x{"):
        return int(java[3:-1], 16)
    controls = {"\\f": 12, "\\n": 10, "\\r": 13, "\\t": 9, "\\x07": 7, "\\x0B": 11}
    return controls.get(java, ord(java[-1]))
