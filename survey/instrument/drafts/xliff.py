"""Write the texts of a draft as XLIFF 1.2 or 2.0, and read a translated file.

`${name}` becomes an inline tag, which translators' tools protect. Files come from
other people: entities and document types are refused, and so is what is larger or
deeper than any survey needs.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from xml.etree.ElementTree import (
    Element,
    ParseError,
    SubElement,
    register_namespace,
    tostring,
)

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse
from django.utils.translation import gettext as _

from survey.instrument.drafts.commands import default_language
from survey.instrument.drafts.reading import DraftReading
from survey.instrument.drafts.text_files import FileText, TextFile, UnreadableTexts
from survey.instrument.drafts.texts import DraftText, places_of, texts_in
from survey.instrument.xlsform.languages import Language, language_of
from survey.instrument.xlsform.names import REFERENCE
from survey.models import Survey

NAMESPACES = {
    "1.2": "urn:oasis:names:tc:xliff:document:1.2",
    "2.0": "urn:oasis:names:tc:xliff:document:2.0",
}
SPACE = "{http://www.w3.org/XML/1998/namespace}space"
# Of a text in a state; tools show the first two as work to do.
STATES = {
    "1.2": {
        "missing": "needs-translation",
        "stale": "needs-review-translation",
        "done": "translated",
    },
    "2.0": {"missing": "initial", "stale": "initial", "done": "translated"},
}
CONFIRMED = frozenset(["translated", "signed-off", "final", "reviewed"])
# A survey of 1,000 questions in ten languages has 200,000.
MOST_ELEMENTS = 500_000
DEEPEST = 30
# Inline elements of which only what they contain is a text: 1.2 and 2.0.
AROUND = frozenset(["g", "mrk", "pc", "bpt", "ept", "it", "sub"])
# Inline elements that stand for something, or mark a place.
MARKS = frozenset(["sm", "em", "sc", "ec", "bx", "ex"])


# Write -------------------------------------------------------------------------------


def as_xliff(
    survey: Survey, reading: DraftReading, languages: Sequence[Language], version: str
) -> bytes:
    """Return a file; 2.0 is of exactly one language."""
    namespace = NAMESPACES[version]
    register_namespace("", namespace)
    book = reading.book
    first = default_language(book)
    places = places_of(reading)
    root = Element(_tag(version, "xliff"), {"version": version})
    if version == "2.0":
        root.attrib |= {"srcLang": first.code, "trgLang": languages[0].code}
    name = f"{survey.name} {survey.version}"
    for language in languages:
        texts = [row for row in texts_in(book, language, places) if row.original]
        if version == "2.0":
            file = SubElement(root, _tag(version, "file"), {"id": "texts"})
            file.set("original", name)
            for text in texts:
                _add_unit(file, text)
            continue
        attributes = {
            "original": name,
            "source-language": first.code,
            "target-language": language.code,
            "datatype": "plaintext",
        }
        file = SubElement(root, _tag(version, "file"), attributes)
        body = SubElement(file, _tag(version, "body"))
        for text in texts:
            _add_trans_unit(body, text)
    return tostring(root, encoding="UTF-8", xml_declaration=True)


def _tag(version: str, name: str) -> str:
    return f"{{{NAMESPACES[version]}}}{name}"


def _add_trans_unit(parent: Element, text: DraftText) -> None:
    def tag(name: str) -> str:
        return _tag("1.2", name)

    unit = SubElement(parent, tag("trans-unit"), {"id": text.id, SPACE: "preserve"})
    numbers = _numbers_in(text.original)
    _fill(SubElement(unit, tag("source")), text.original, numbers, _x)
    state = {"state": STATES["1.2"][text.state]}
    _fill(SubElement(unit, tag("target"), state), text.text, numbers, _x)
    SubElement(unit, tag("note")).text = text.place


def _x(number: int, reference: str) -> Element:
    attributes = {"id": str(number), "ctype": "x-name", "equiv-text": reference}
    return Element(_tag("1.2", "x"), attributes)


def _add_unit(parent: Element, text: DraftText) -> None:
    def tag(name: str) -> str:
        return _tag("2.0", name)

    unit = SubElement(parent, tag("unit"), {"id": text.id, SPACE: "preserve"})
    notes = SubElement(unit, tag("notes"))
    SubElement(notes, tag("note")).text = text.place
    state = {"state": STATES["2.0"][text.state]}
    segment = SubElement(unit, tag("segment"), state)
    numbers = _numbers_in(text.original)
    _fill(SubElement(segment, tag("source")), text.original, numbers, _ph)
    if text.text:
        _fill(SubElement(segment, tag("target")), text.text, numbers, _ph)


def _ph(number: int, reference: str) -> Element:
    attributes = {"id": str(number), "equiv": reference, "disp": reference}
    return Element(_tag("2.0", "ph"), attributes)


# The number of each occurrence of a name: a translation may order them otherwise.
Numbers = dict[tuple[str, int], int]


def _occurrences(text: str) -> Iterator[tuple[re.Match[str], tuple[str, int]]]:
    counts: Counter[str] = Counter()
    for match in REFERENCE.finditer(text):
        counts[match[0]] += 1
        yield match, (match[0], counts[match[0]])


def _numbers_in(text: str) -> Numbers:
    return {name: n for n, (_match, name) in enumerate(_occurrences(text), 1)}


def _fill(
    element: Element, text: str, numbers: Numbers, tag: Callable[[int, str], Element]
) -> None:
    position = 0
    last: Element | None = None
    for match, name in _occurrences(text):
        _append(element, last, text[position : match.start()])
        last = tag(numbers.setdefault(name, len(numbers) + 1), match[0])
        element.append(last)
        position = match.end()
    _append(element, last, text[position:])


def _append(element: Element, last: Element | None, text: str) -> None:
    if last is None:
        element.text = (element.text or "") + text
    else:
        last.tail = (last.tail or "") + text


# Read --------------------------------------------------------------------------------


def is_xliff(content: bytes) -> bool:
    start = content[:4_000].replace(b"\0", b"")
    return b"<" in start[:20] and b"<xliff" in start or b":xliff" in start


def read_xliff(content: bytes, first: Language) -> TextFile:
    """Read XLIFF 1.2 or 2.0. Raises UnreadableTexts."""
    root = _parse(content)
    version = root.get("version", "")
    file = TextFile()
    if version.startswith("1."):
        for part in root.iter("file"):
            code = _code(part.get("target-language", ""))
            if _check_languages(file, part.get("source-language", ""), code, first):
                for unit in part.iter("trans-unit"):
                    file.texts.append(_read_trans_unit(unit, code))
    elif version.startswith("2."):
        code = _code(root.get("trgLang", ""))
        if _check_languages(file, root.get("srcLang", ""), code, first):
            file.texts += [_read_unit(unit, code) for unit in root.iter("unit")]
    else:
        raise UnreadableTexts(
            _(
                "Only XLIFF 1.2 and 2.0 can be read. The file says it is version"
                " “%(version)s”."
            )
            % {"version": version[:20]}
        )
    return file


def _parse(content: bytes) -> Element:
    """Return the root, with names that have no namespace."""
    depth = count = 0
    root = None
    try:
        events = iterparse(
            io.BytesIO(content), events=("start", "end"), forbid_dtd=True
        )
        for event, node in events:
            if event == "end":
                depth -= 1
                continue
            depth += 1
            count += 1
            if count > MOST_ELEMENTS or depth > DEEPEST:
                raise UnreadableTexts(
                    _("The file has more elements than any survey needs.")
                )
            root = node if root is None else root
            node.tag = node.tag.rpartition("}")[2]
    except DefusedXmlException:
        raise UnreadableTexts(
            _("The file declares a document type or entities, which no XLIFF needs.")
        ) from None
    except ParseError as error:
        line, column = error.position
        raise UnreadableTexts(
            _("The file is damaged or cut off in line %(line)s, character %(column)s.")
            % {"line": line, "column": column + 1}
        ) from error
    except (LookupError, ValueError) as error:
        raise UnreadableTexts(
            _("The encoding of the file is not known. Save it as UTF-8.")
        ) from error
    if root is None or root.tag != "xliff":
        raise UnreadableTexts(_("This is not an XLIFF file."))
    return root


def _code(code: str) -> str:
    language = language_of(code.replace("_", "-"))
    return language.code if language else code


def _check_languages(file: TextFile, source: str, code: str, first: Language) -> bool:
    if not code:
        file.refused.append(
            _("The file does not name the language of its translations.")
        )
    elif _code(source) != first.code:
        file.refused.append(
            _(
                "The originals in the file are in another language (%(code)s) than"
                " those of the survey (%(first)s)."
            )
            % {"code": source or "–", "first": first.code}
        )
    else:
        return True
    return False


def _read_trans_unit(unit: Element, code: str) -> FileText:
    source, target = unit.find("source"), unit.find("target")
    tags = dict(_tags_of(source))
    state = "" if target is None else target.get("state", "")
    text, problem = _text_of(target, tags)
    original, _problem = _text_of(source, tags)
    is_confirmed = state in CONFIRMED or unit.get("approved") == "yes"
    return FileText(
        unit.get("id", ""),
        code,
        original,
        text,
        is_confirmed=is_confirmed,
        problem=problem,
    )


def _read_unit(unit: Element, code: str) -> FileText:
    """Join the segments of a unit, into which a tool may have divided its text."""
    parts = [part for part in unit if part.tag in ("segment", "ignorable")]
    tags = {
        name: text for part in parts for name, text in _tags_of(part.find("source"))
    }
    originals, texts, problems, missing = [], [], [], 0
    for part in parts:
        original, _problem = _text_of(part.find("source"), tags)
        text, problem = _text_of(part.find("target"), tags)
        if part.find("target") is None:
            missing += part.tag == "segment"
            text = original if part.tag == "ignorable" else ""
        originals.append(original)
        texts.append(text)
        problems.append(problem)
    segments = [part for part in parts if part.tag == "segment"]
    problem = next(filter(None, problems), "")
    if 0 < missing < len(segments):
        problem = _("Only a part of this text is translated.")
    return FileText(
        unit.get("id", ""),
        code,
        "".join(originals),
        "" if missing == len(segments) else "".join(texts),
        is_confirmed=all(part.get("state") in CONFIRMED for part in segments),
        problem=problem,
    )


def _tags_of(source: Element | None) -> Iterator[tuple[str, str]]:
    for tag in source.iter() if source is not None else ():
        if tag.tag in ("x", "ph") and (reference := _reference(tag)):
            yield tag.get("id", ""), reference


def _reference(tag: Element) -> str:
    words = [tag.get(name, "") for name in ("equiv-text", "equiv", "disp")]
    words.append("".join(tag.itertext()))
    return next((text for text in words if REFERENCE.fullmatch(text)), "")


def _text_of(element: Element | None, tags: dict[str, str]) -> tuple[str, str]:
    """Return the text with its names, and why it cannot be used, if so."""
    if element is None:
        return "", ""
    texts, problem = [element.text or ""], ""
    for child in element:
        if child.tag in ("x", "ph"):
            reference = _reference(child) or tags.get(child.get("id", ""), "")
            texts.append(reference)
            if not reference:
                problem = _("It has a tag that the original does not have.")
        elif child.tag in AROUND:
            text, inner = _text_of(child, tags)
            texts.append(text)
            problem = problem or inner
        elif child.tag == "cp":
            # A character that XML cannot contain.
            problem = _("Remove the characters that cannot be seen.")
        elif child.tag not in MARKS:
            problem = _("It has a tag that the original does not have.")
        texts.append(child.tail or "")
    return "".join(texts), problem
