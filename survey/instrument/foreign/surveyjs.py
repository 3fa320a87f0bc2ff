"""Convert surveys of SurveyJS, JSON files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from survey.instrument.foreign.conditions import (
    DATE,
    NUMBER,
    Grammar,
    Node,
    Translator,
    Untranslatable,
    Variable,
    both,
    not_here,
    quote,
)
from survey.instrument.foreign.converted import Converted
from survey.instrument.foreign.names import Taken, option_value, set_of_words
from survey.instrument.foreign.sheets import (
    Options,
    Question,
    SheetWriter,
    outcome_of,
)
from survey.instrument.foreign.texts import Texts, quote_answers, shown_text
from survey.instrument.xlsform.languages import CODE

Json = dict[str, Any]
DEFAULT = "default"
DEEPEST = 15
EMAIL = r"regex(., '[^@ ]+@[^@ ]+\.[^@ ]+')"
PIPE = re.compile(r"\{([^{}]+)\}")
ONE = set_of_words("radiogroup dropdown buttongroup imagepicker rating boolean")
MANY = set_of_words("checkbox tagbox")
PANELS = set_of_words("panel flowpanel")
OPEN = set_of_words("text comment")
YES: Texts = {"en": "Yes", "es": "Sí", "fr": "Oui", "de": "Ja", "ar": "نعم"}
NO: Texts = {"en": "No", "es": "No", "fr": "Non", "de": "Nein", "ar": "لا"}
NONE: Texts = {"en": "None", "es": "Ninguno", "fr": "Aucun", "de": "Keine"}
INPUTS = {
    "number": "decimal",
    "range": "decimal",
    "date": "date",
    "datetime-local": "dateTime",
    "datetime": "dateTime",
    "time": "time",
}
# Keys that are read, or that only change how a question looks.
READ = set_of_words(
    "type name title description visibleIf requiredIf isRequired choices "
    "choicesOrder hasOther showOtherItem otherText hasNone showNoneItem noneText "
    "inputType validators min max minValueExpression maxValueExpression maxLength "
    "rateMin rateMax rateStep rateValues minRateDescription maxRateDescription "
    "rateCount labelTrue labelFalse valueTrue valueFalse columns rows items "
    "cellType defaultValue readOnly elements questions templateElements html "
    "expression visible hasComment showCommentArea commentText isAllRowRequired "
    "eachRowRequired multiSelect choicesVisibleIf otherPlaceholder "
    "maxSelectedChoices minSelectedChoices"
)
LOOKS = set_of_words(
    "colCount startWithNewLine width minWidth maxWidth indent titleLocation "
    "hideNumber placeholder placeHolder state size autoComplete rateType "
    "displayMode descriptionLocation choicesPerPage showNumber innerIndent "
    "rightIndent renderAs showLabel imageFit imageHeight imageWidth contentMode "
    "autocomplete cols autoGrow acceptCarriageReturn "
    "useDisplayValuesInDynamicTexts showClearButton allowClear columnColCount "
    "titleWidth errorLocation questionTitleLocation questionsOnPageMode "
    "showQuestionNumbers"
)


def convert(data: Json) -> Converted:
    return SurveyJsConverter(data).convert()


def listing(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def string(value: Any) -> str:
    """Write a value as SurveyJS compares it: true, 3, a."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None or isinstance(value, dict | list) else str(value)


def elements_of(data: Json) -> list[Json]:
    parts = data.get("elements") or data.get("questions")
    return [part for part in listing(parts) if isinstance(part, dict)]


class SurveyJsExpressions(Translator):
    checked = frozenset(["true"])
    unchecked = frozenset(["false", ""])
    grammar = Grammar(
        re.compile(
            r"""(?P<space>\s+)|(?P<text>'[^'\\]*'|"[^"\\]*")|(?P<variable>\{[^{}]*\})
            |(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z]\w*)
            |(?P<operator>==|!=|<>|<=|>=|&&|\|\||[=<>!()\[\]+\-*/,])""",
            re.VERBOSE,
        ),
        {
            **{"&&": "and", "||": "or", "and": "and", "or": "or", "!": "not"},
            **{"==": "=", "equal": "=", "<>": "!=", "notequal": "!="},
            **{"contains": "contains", "contain": "contains", "anyof": "anyof"},
            **{"notcontains": "notcontains", "notcontain": "notcontains"},
            **{"allof": "allof", "noneof": "noneof", "less": "<", "greater": ">"},
            **{"lessorequal": "<=", "greaterorequal": ">=", "empty": "empty"},
            **{"notempty": "notempty", "negate": "not"},
        },
        {"empty": "empty", "notempty": "notempty"},
    )

    def __init__(self) -> None:
        self.variables: dict[str, Variable] = {}

    def variable(self, text: str) -> Variable:
        name = text.strip("{} ")
        # An unquoted word is a text, not the name of a question.
        if not text.startswith("{"):
            raise not_here(text)
        known = self.variables.get(name.removeprefix("#"))
        if known is None:
            raise Untranslatable(
                _("there is no question %(name)s") % {"name": name[:60]}
            )
        return known

    def call(self, name: str, arguments: list[Node]) -> str:
        if name in ("empty", "notempty") and len(arguments) == 1:
            return self.is_blank(arguments[0], blank=name == "empty")
        raise not_here(f"{name}()")

    def truth(self, node: Node, around: int = 0) -> str:
        if node[0] == "variable":
            variable = self.variable(node[1])
            if set(variable.values) == {"true", "false"}:
                return f"${{{variable.name}}} = {quote(variable.values['true'])}"
        return super().truth(node, around)

    def with_literal(
        self, operator: str, variable: Variable, value: str, kind: str
    ) -> str:
        # SurveyJS compares texts without regard to case.
        if variable.kind == "text" and value.lower() != value.upper():
            raise Untranslatable(_("upper and lower case would differ"))
        return super().with_literal(operator, variable, value, kind)

    def with_variable(self, operator: str, left: Variable, right: Variable) -> str:
        if "text" in (left.kind, right.kind):
            raise Untranslatable(_("upper and lower case would differ"))
        return super().with_variable(operator, left, right)

    def comparison(self, operator: str, left: Node, right: Node) -> str:
        # true and false are words of the language, and stored so.
        pair = []
        for node in (left, right):
            is_word = node[0] == "variable" and node[1].lower() in ("true", "false")
            pair.append(("text", node[1].lower()) if is_word else node)
        return super().comparison(operator, pair[0], pair[1])


class SurveyJsConverter:
    def __init__(self, data: Json) -> None:
        self.data = data
        locale = string(data.get("locale"))
        self.first = locale if CODE.fullmatch(locale) else "en"
        languages = {self.first: None}
        languages |= dict.fromkeys(sorted(self.languages_in(data, 0)))
        self.out = SheetWriter(languages)
        self.note = self.out.note
        self.logic = SurveyJsExpressions()
        self.names: dict[tuple[int, str], str] = {}
        self.looks: dict[str, None] = {}

    def languages_in(self, value: Any, depth: int) -> set[str]:
        """Return the languages of all texts with a default one."""
        if depth > DEEPEST * 4:
            return set()
        if isinstance(value, list):
            return {c for part in value for c in self.languages_in(part, depth + 1)}
        if not isinstance(value, dict):
            return set()
        if DEFAULT in value and all(isinstance(text, str) for text in value.values()):
            return {code for code in value if CODE.fullmatch(code) and code != DEFAULT}
        parts = value.values()
        return {c for part in parts for c in self.languages_in(part, depth + 1)}

    def text(self, value: Any) -> Texts:
        if isinstance(value, dict):
            texts = {
                self.first if code == DEFAULT else code: text
                for code, text in value.items()
                if isinstance(text, str)
            }
        else:
            texts = {self.first: string(value)} if string(value) else {}
        return self.piped(texts)

    def piped(self, texts: Texts) -> Texts:
        def name_of(match: re.Match[str]) -> str | None:
            variable = self.logic.variables.get(match[1].strip())
            is_plain = variable and variable.kind in ("text", "number")
            return variable.name if variable and is_plain else None

        return quote_answers(texts, PIPE, name_of)

    def pages(self) -> list[Json]:
        pages = [
            page for page in listing(self.data.get("pages")) if isinstance(page, dict)
        ]
        return pages or [{"name": "page1", "elements": elements_of(self.data)}]

    def convert(self) -> Converted:
        self.out.settings(self.text(self.data.get("title")))
        for page in self.pages():
            for element in self.walk(page, 0):
                self.register(element)
        for page in self.pages():
            self.write_page(page)
        self.write_rest()
        return self.out.converted

    def walk(self, parent: Json, depth: int) -> Iterator[Json]:
        for element in elements_of(parent):
            if string(element.get("type")) in PANELS and depth < DEEPEST:
                yield from self.walk(element, depth + 1)
            else:
                yield element

    # Names, and answers that conditions may read.

    def register(self, element: Json) -> None:
        code, kind = string(element.get("name")), string(element.get("type"))
        name = self.out.names.name_for(code or kind)
        self.names[id(element), ""] = name
        known = self.logic.variables
        if kind in ONE or kind in MANY:
            used = Taken()
            values = {
                choice: option_value(choice, used)
                for choice, _label in self.choices(element)
            }
            is_many = kind in MANY or (
                kind == "imagepicker" and element.get("multiSelect") is True
            )
            known.setdefault(
                code, Variable(name, "many" if is_many else "one", "", values)
            )
        elif kind in ("text", "comment"):
            type_ = self.type_of(element)
            kinds = {"decimal": "number", "integer": "number", "date": "date"}
            known.setdefault(code, Variable(name, kinds.get(type_, "text")))
        elif kind == "matrix":
            used = Taken()
            columns = {
                c: option_value(c, used) for c, _l in self.list_of(element, "columns")
            }
            for row, _label in self.list_of(element, "rows"):
                row_name = self.out.names.name_for(f"{name}_{row}")
                self.names[id(element), row] = row_name
                many = "many" if element.get("cellType") == "checkbox" else "one"
                known.setdefault(f"{code}.{row}", Variable(row_name, many, "", columns))
        elif kind == "multipletext":
            for item in self.items(element):
                row = string(item.get("name"))
                row_name = self.out.names.name_for(f"{name}_{row}")
                self.names[id(element), row] = row_name
                number = self.type_of(item) == "decimal"
                known.setdefault(
                    f"{code}.{row}", Variable(row_name, "number" if number else "text")
                )

    def items(self, element: Json) -> list[Json]:
        return [
            item for item in listing(element.get("items")) if isinstance(item, dict)
        ]

    def list_of(self, element: Json, key: str) -> list[tuple[str, Texts]]:
        items = []
        for item in listing(element.get(key)):
            if isinstance(item, dict):
                value = string(item.get("value", item.get("name", "")))
                label = item.get("text", item.get("title")) or value
            else:
                value = string(item)
                label = value
            if value:
                items.append((value, self.text(label)))
        return items

    def choices(self, element: Json) -> list[tuple[str, Texts]]:
        kind = string(element.get("type"))
        if kind == "boolean":
            values = [
                string(element.get(key, default))
                for key, default in (("valueTrue", True), ("valueFalse", False))
            ]
            labels = [
                self.text(element.get(key)) or self.out.our_words(words)
                for key, words in (("labelTrue", YES), ("labelFalse", NO))
            ]
            return list(zip(values, labels, strict=True))
        if kind == "rating":
            return self.rates(element)
        choices = self.list_of(element, "choices")
        if element.get("hasNone") or element.get("showNoneItem"):
            label = self.text(element.get("noneText")) or self.out.our_words(NONE)
            choices.append(("none", label))
        if element.get("hasOther") or element.get("showOtherItem"):
            label = self.text(element.get("otherText"))
            choices.append(self.out.other_option(label))
        return choices

    def rates(self, element: Json) -> list[tuple[str, Texts]]:
        rates = self.list_of(element, "rateValues")
        if not rates:
            numbers = [element.get(k) for k in ("rateMin", "rateMax", "rateStep")]
            low, high, step = (
                int(n) if isinstance(n, int | float) else d
                for n, d in zip(numbers, (1, 5, 1), strict=True)
            )
            count = element.get("rateCount")
            if isinstance(count, int) and element.get("rateMax") is None:
                high = low + count - 1
            steps = range(low, high + 1, max(step, 1))[:100]
            rates = [(str(n), {self.first: str(n)}) for n in steps]
        for index, key in ((0, "minRateDescription"), (-1, "maxRateDescription")):
            if rates and (words := self.text(element.get(key))):
                value, label = rates[index]
                joined = {
                    code: f"{label.get(code, value)} – {text}"
                    for code, text in words.items()
                }
                rates[index] = value, {**label, **joined}
        return rates

    def type_of(self, element: Json) -> str:
        if element.get("type") == "comment":
            return "text"
        return INPUTS.get(string(element.get("inputType")), "text")

    # Pages and questions.

    def rule(self, place: str, source: Any, what: str = "") -> str:
        text = string(source)
        if not text.strip():
            return ""
        return self.out.rule(place, text, lambda: self.logic.condition(text), what)

    def write_page(self, page: Json) -> None:
        place = string(page.get("name"))
        relevant = self.rule(place, page.get("visibleIf"))
        label = self.text(page.get("title"))
        self.out.begin(place, label, "field-list", relevant, name=place)
        self.rest_of(page, place)
        self.describe(page, place)
        for element in elements_of(page):
            self.write_element(element, 0)
        self.out.end()

    def rest_of(self, container: Json, place: str) -> None:
        """Report the keys of a page or panel that are not taken over."""
        left = self.left_of(container)
        if left:
            self.out.refuse_setting(place, "; ".join(left))

    def left_of(self, element: Json) -> list[str]:
        left = []
        for key, value in element.items():
            if key in LOOKS:
                self.looks[key] = None
            elif key not in READ and value not in (None, "", False, []):
                left.append(f"{key}={string(value)[:60] or '…'}")
        return left

    def describe(self, container: Json, place: str) -> None:
        if words := self.text(container.get("description")):
            name = self.out.names.name_for(f"{place}_text")
            shown = shown_text(words)
            self.out.ask(Question(place, name, "note", words, shown=shown))

    def write_element(self, element: Json, depth: int) -> None:
        kind, place = string(element.get("type")), string(element.get("name"))
        if kind in PANELS:
            if depth >= DEEPEST:
                reason = _("groups are nested too deeply")
                self.note(place, "", "refused", reason, "group")
                return
            relevant = self.rule(place, element.get("visibleIf"))
            self.out.begin(place, self.text(element.get("title")), "", relevant, place)
            self.rest_of(element, place)
            self.describe(element, place)
            for part in elements_of(element):
                self.write_element(part, depth + 1)
            self.out.end()
            return
        changes: list[str] = []
        label = self.text(element.get("title")) or {self.first: place}
        question = Question(
            place,
            self.names.get((id(element), ""), ""),
            "text",
            label,
            self.text(element.get("description")),
            changes=changes,
            shown=shown_text(label) or place,
        )
        if left := self.left_of(element):
            reason = _("not taken over: %(names)s") % {"names": "; ".join(left)[:300]}
            changes.append(reason)
        self.common(element, question)
        if element.get("visible") is False and not element.get("visibleIf"):
            self.refuse(question, _("it is hidden there: nobody answers it"))
        elif kind in ONE or kind in MANY:
            self.write_choice(element, question)
        elif kind in OPEN:
            self.write_open(element, question)
        elif kind == "matrix":
            self.write_matrix(element, question)
        elif kind == "multipletext":
            self.write_fields(element, question)
        elif kind == "html":
            question.type, question.hint = "note", {}
            question.label = self.text(element.get("html"))
            question.shown = shown_text(question.label)
            question.cells = {"relevant": question.cells["relevant"]}
            self.out.ask(question)
        else:
            self.refuse_kind(element, question, kind)

    def refuse_kind(self, element: Json, question: Question, kind: str) -> None:
        reasons = {
            "file": _("respondents cannot send files"),
            "signaturepad": _("respondents cannot send files"),
            "ranking": _("ranking is not possible here"),
            "image": _("pictures, sound and video are not shown"),
            "paneldynamic": _("repeated parts are not possible here"),
            "matrixdynamic": _("repeated parts are not possible here"),
            "matrixdropdown": _("a table with several kinds of cells is not possible"),
            "expression": _("what it computes is not taken over"),
        }
        unknown = _("questions of the type %(type)s are unknown") % {"type": kind[:40]}
        text = string(element.get("expression"))
        if text:
            self.note(
                question.place, text[:400], "refused", not_here(text).args[0], "rule"
            )
        self.refuse(question, reasons.get(kind) or unknown)

    def refuse(self, question: Question, reason: str) -> None:
        self.note(question.place, question.shown, "refused", reason)

    def common(self, element: Json, question: Question) -> None:
        cells, place = question.cells, question.place
        cells["relevant"] = self.rule(place, element.get("visibleIf"))
        if element.get("isRequired") is True:
            cells["required"] = "yes"
        elif element.get("requiredIf"):
            cells["required"] = self.rule(place, element["requiredIf"], _("required"))
        if element.get("readOnly") is True:
            cells["read_only"] = "yes"
        for key in ("minValueExpression", "maxValueExpression"):
            if text := string(element.get(key)):
                reason = not_here(text).args[0]
                self.note(place, f"{key}: {text}"[:400], "refused", reason, "rule")

    def validate(self, element: Json, question: Question, type_: str) -> None:
        """Translate validators, and what a field's own keys allow."""
        limits, is_many = [], type_.startswith("select_multiple")
        for validator in listing(element.get("validators")):
            if not isinstance(validator, dict):
                continue
            kind = string(validator.get("type")).removesuffix("validator")
            if message := self.text(validator.get("text")):
                question.message = message
            written = self.validator(kind, validator, type_)
            if kind == "email":
                reason = _("e-mail addresses are checked by a simpler rule")
                question.changes.append(reason)
            if written:
                limits.append(written)
            else:
                text = f"{kind}: " + "; ".join(
                    f"{k}={string(v)}" for k, v in validator.items() if k != "type"
                )
                reason = not_here(kind).args[0]
                self.note(question.place, text[:400], "refused", reason, "rule")
        for key, operator in (("min", ">="), ("max", "<=")):
            value = string(element.get(key))
            if type_ == "decimal" and NUMBER.fullmatch(value):
                limits.append(f". {operator} {value}")
            elif type_ == "date" and DATE.fullmatch(value):
                limits.append(f". {operator} date('{value}')")
            elif value and element.get("type") in OPEN:
                reason = not_here(value).args[0]
                self.note(question.place, f"{key}: {value}", "refused", reason, "rule")
        length = string(element.get("maxLength"))
        if type_ == "text" and length.isdecimal():
            limits.append(f"string-length(.) <= {length}")
        names = (("minSelectedChoices", ">="), ("maxSelectedChoices", "<="))
        for key, operator in names:
            number = string(element.get(key))
            if is_many and number.isdecimal() and number != "0":
                limits.append(f"count-selected(.) {operator} {number}")
        question.cells["constraint"] = both(*limits)

    def validator(self, kind: str, data: Json, type_: str) -> str:
        def limit(subject: str, low: str, high: str) -> str:
            return both(
                *(
                    f"{subject} {operator} {string(data.get(key))}"
                    for key, operator in ((low, ">="), (high, "<="))
                    if NUMBER.fullmatch(string(data.get(key)))
                )
            )

        if kind == "numeric":
            written = limit(".", "minValue", "maxValue")
            return written or ("regex(., '-?[0-9]+([.][0-9]+)?')" * (type_ == "text"))
        if kind == "text" and type_ == "text" and data.get("allowDigits") is not False:
            return limit("string-length(.)", "minLength", "maxLength")
        if kind == "answercount" and type_.startswith("select_multiple"):
            return limit("count-selected(.)", "minCount", "maxCount")
        if kind == "regex" and type_ == "text" and not data.get("caseInsensitive"):
            match = re.fullmatch(r"\^(.*)\$", string(data.get("regex")), re.DOTALL)
            if match and "|" not in match[1] and "'" not in match[1]:
                return f"regex(., '{match[1]}')"
        return EMAIL if kind == "email" else ""

    def write_choice(self, element: Json, question: Question) -> None:
        kind = string(element.get("type"))
        if element.get("choicesByUrl") or element.get("choicesFromQuestion"):
            self.refuse(question, _("its options come from elsewhere"))
            return
        options = self.out.options(
            question.place, self.choices(element), question.place
        )
        if options is None:
            self.refuse(question, _("its options are not taken over"))
            return
        variable = self.logic.variables.get(question.place)
        is_many = bool(variable and variable.kind == "many")
        command = "select_multiple" if is_many else "select_one"
        question.type = f"{command} {options.name}"
        cells = question.cells
        looks = {"dropdown": "minimal", "tagbox": "minimal", "rating": "horizontal"}
        looks |= {"buttongroup": "horizontal", "boolean": "horizontal"}
        cells["appearance"] = looks.get(kind, "")
        if element.get("choicesOrder") == "random":
            cells["parameters"] = "randomize=true"
        elif element.get("choicesOrder") not in (None, "none"):
            question.changes.append(_("options keep their order"))
        if kind == "imagepicker":
            question.changes.append(_("pictures, sound and video are not shown"))
        self.choice_rules(element, question, options)
        chosen = element.get("defaultValue")
        codes = [string(c) for c in (chosen if isinstance(chosen, list) else [chosen])]
        values = [options.values[code] for code in codes if code in options.values]
        cells["default"] = " ".join(values if is_many else values[:1])
        self.validate(element, question, question.type)
        if not self.out.ask(question):
            return
        if element.get("hasOther") or element.get("showOtherItem"):
            self.out.other_text(question, options.values.get("other", "other"), None)
        if element.get("hasComment") or element.get("showCommentArea"):
            self.comment(element, question)

    def comment(self, element: Json, question: Question) -> None:
        name = self.out.names.name_for(f"{question.name}_comment")
        words = {"en": "Comment", "es": "Comentario", "fr": "Commentaire"}
        label = self.text(element.get("commentText")) or self.out.our_words(words)
        relevant = question.cells.get("relevant", "")
        self.out.ask(
            Question(
                question.place,
                name,
                "text",
                label,
                cells={"relevant": relevant, "appearance": "multiline"},
                is_part=True,
            )
        )

    def choice_rules(self, element: Json, question: Question, options: Options) -> None:
        source = string(element.get("choicesVisibleIf"))

        def translate() -> str:
            match = re.fullmatch(r"\s*\{([^{}]+)\}\s+contains\s+\{item\}\s*", source)
            variable = self.logic.variables.get(match[1].strip()) if match else None
            same = variable and all(
                variable.values.get(code, value) == value
                for code, value in options.values.items()
            )
            if not variable or variable.kind != "many" or not same:
                raise not_here(source)
            return f"selected(${{{variable.name}}}, name)"

        if source:
            written = self.out.rule(question.place, source, translate)
            question.cells["choice_filter"] = written
        for item in listing(element.get("choices")):
            text = string(item.get("visibleIf")) if isinstance(item, dict) else ""
            if text:
                shown = f"{string(item.get('value'))}: {text}"[:400]
                reason = _("a rule of one option")
                self.note(question.place, shown, "refused", reason, "rule")

    def write_open(self, element: Json, question: Question) -> None:
        question.type = self.type_of(element)
        input_type = string(element.get("inputType"))
        if element.get("type") == "comment":
            question.cells["appearance"] = "multiline"
        elif input_type in ("email",):
            reason = _("e-mail addresses are checked by a simpler rule")
            question.changes.append(reason)
        elif input_type not in ("", "text", *INPUTS):
            reason = _("its format is not checked: %(name)s") % {"name": input_type}
            question.changes.append(reason)
        elif element.get("maskType") or element.get("maskSettings"):
            question.changes.append(
                _("its format is not checked: %(name)s") % {"name": "mask"}
            )
        self.validate(element, question, question.type)
        if input_type == "email":
            question.cells["constraint"] = both(question.cells["constraint"], EMAIL)
        default = string(element.get("defaultValue"))
        question.cells["default"] = default
        self.out.ask(question)

    def close(self, question: Question, rows: int) -> None:
        self.out.end()
        if not rows:
            self.refuse(question, _("it has no rows"))
            return
        reason = "; ".join(question.changes)
        self.note(question.place, question.shown, outcome_of(question.changes), reason)

    def write_matrix(self, element: Json, question: Question) -> None:
        options = self.out.options(
            question.place, self.list_of(element, "columns"), question.place
        )
        if options is None:
            self.refuse(question, _("its options are not taken over"))
            return
        many = element.get("cellType") == "checkbox"
        command = "select_multiple" if many else "select_one"
        keys = ("isAllRowRequired", "eachRowRequired")
        is_required = any(element.get(key) for key in keys)
        if question.cells.get("required") and not is_required:
            reason = _("one row must be answered there, here each")
            question.changes.append(reason)
            is_required = True
        self.out.begin_grid(question, "table-list", f"{question.name}_grid")
        rows = self.list_of(element, "rows")
        data = {
            string(item.get("value")): item
            for item in listing(element.get("rows"))
            if isinstance(item, dict)
        }
        for row, label in rows:
            place = f"{question.place}.{row}"
            relevant = self.rule(place, data.get(row, {}).get("visibleIf"))
            name = self.names[id(element), row]
            cells = {"relevant": relevant, "required": "yes" if is_required else ""}
            self.out.ask(
                Question(
                    place,
                    name,
                    f"{command} {options.name}",
                    label,
                    cells=cells,
                    is_part=True,
                    shown=shown_text(label) or row,
                )
            )
        self.close(question, len(rows))

    def write_fields(self, element: Json, question: Question) -> None:
        self.out.begin_grid(question, "", f"{question.name}_grid")
        items = self.items(element)
        for item in items:
            row = string(item.get("name"))
            label = self.text(item.get("title")) or {self.first: row}
            part = Question(
                f"{question.place}.{row}",
                self.names[id(element), row],
                self.type_of(item),
                label,
                is_part=True,
                shown=shown_text(label) or row,
            )
            if item.get("isRequired") is True or question.cells.get("required"):
                part.cells["required"] = "yes"
            self.validate({"type": "text", **item}, part, part.type)
            self.out.ask(part)
        self.close(question, len(items))

    def write_rest(self) -> None:
        skipped = ("pages", "elements", "questions", "title", "locale")
        for key, value in self.data.items():
            if key in skipped or value in (None, "", [], {}):
                continue
            if key in LOOKS:
                self.looks[key] = None
                continue
            words = string(value) or shown_text(self.text(value))
            for item in listing(value):
                parts = item.items() if isinstance(item, dict) else ()
                shown = string(item) or "; ".join(f"{k}={string(v)}" for k, v in parts)
                self.out.refuse_setting(key, f"{key}: {shown}")
            if not isinstance(value, list):
                self.out.refuse_setting(key, f"{key}: {words or '…'}")
        if self.looks:
            reason = _("looks and statistics are not taken over")
            self.out.refuse_setting("", ", ".join(self.looks), reason)
        keeps = self.data.get("clearInvisibleValues") in (None, "onComplete")
        if keeps and any(line.part == "rule" for line in self.out.converted.report):
            reason = _("answers to hidden questions are blank at once, not at the end")
            self.note("", "clearInvisibleValues", "changed", reason, "setting")
