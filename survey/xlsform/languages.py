"""Languages of a survey: `label::Español (es)` names one."""

from __future__ import annotations

import re
from dataclasses import dataclass

from django.conf.locale import LANG_INFO

from survey.definitions.schema import Direction, LanguageDefinition

RIGHT_TO_LEFT = re.compile(
    "ar|arc|azb|bal|bgn|ckb|dv|fa|glk|he|iw|ks|lrc|mzn|nqo|pnb|prs|ps|sd|sdh|skr"
    "|syr|ug|ur|yi"
)
RIGHT_TO_LEFT_SCRIPTS = re.compile("adlm|arab|aran|hebr|mand|mend|nkoo|rohg|syrc|thaa")
CODE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")
NAME_AND_CODE = re.compile(rf"(.*?)\s*\(({CODE.pattern})\)")
CODES_BY_NAME = {
    str(name).casefold(): str(info["code"])
    for info in LANG_INFO.values()
    for name in (info.get("name"), info.get("name_local"))
    if name
}


@dataclass(frozen=True)
class Language:
    code: str
    name: str

    @property
    def direction(self) -> Direction:
        """By the script where the code has one (`ur-Latn`), else by the language."""
        primary, *rest = self.code.lower().split("-")
        scripts = [subtag for subtag in rest if len(subtag) == 4 and subtag.isalpha()]
        if scripts:
            return _direction(RIGHT_TO_LEFT_SCRIPTS, scripts[0])
        return _direction(RIGHT_TO_LEFT, primary)

    def as_json(self) -> LanguageDefinition:
        return {"code": self.code, "name": self.name, "direction": self.direction}


def _direction(right_to_left: re.Pattern[str], subtag: str) -> Direction:
    return "rtl" if right_to_left.fullmatch(subtag) else "ltr"


ENGLISH = Language("en", "English")


def language_of(token: str) -> Language | None:
    """`Español (es)`, `es` or `Spanish`; None where no code can be told."""
    token = token.strip()
    if match := NAME_AND_CODE.fullmatch(token):
        code = canonical_code(match[2])
        return Language(code, match[1] or _own_name(code))
    if CODE.fullmatch(token):
        code = canonical_code(token)
        return Language(code, _own_name(code))
    if known := CODES_BY_NAME.get(token.casefold()):
        return Language(canonical_code(known), token)
    return None


def canonical_code(code: str) -> str:
    """`pt_br` is `pt-BR`, `ZH-hant` is `zh-Hant`."""
    primary, *rest = code.replace("_", "-").split("-")
    return "-".join([primary.lower(), *(_canonical_subtag(subtag) for subtag in rest)])


def _canonical_subtag(subtag: str) -> str:
    if len(subtag) == 4 and subtag.isalpha():
        return subtag.title()
    return subtag.upper() if len(subtag) == 2 else subtag.lower()


def _own_name(code: str) -> str:
    info = LANG_INFO.get(code.lower(), {})
    return str(info.get("name_local", code))
