r"""Regular expressions of RE2, which BigQuery has, as those of Java, which Spark has.

**Invariant:** the translated expression matches the same texts at the same places.  What Java means
otherwise is written anew (`.`, `$`, `\b`); what it means otherwise and cannot be written is
refused, as are forms that RE2 does not know.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from loader.query.googlesql.characters import PERL, Characters, RegexError, quoted

_WORD = "[0-9A-Za-z_]"
_EDGE = f"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))"
_INSIDE = f"(?:(?<={_WORD})(?={_WORD})|(?<!{_WORD})(?!{_WORD}))"
_MAX_REPEAT = 1000
_END = "\\z"


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
class _Parser(Characters):
    groups: int = 0
    sure: bool = True
    many: list[bool] = field(default_factory=lambda: [False])
    """Whether (?m) is set, for each group that is open."""

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
        return quoted(char), False

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
            plain = self.text[self.at : end] if end >= 0 else self.text[self.at :]
            self.at = len(self.text) if end < 0 else end + 2
            return "".join(quoted(one) for one in plain) or "(?:)", not plain
        if char.lower() in PERL and char:
            return f"[{'^' if char.isupper() else ''}{PERL[char.lower()]}]", False
        return self.escaped_character(start), False


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
