"""Convert surveys of LimeSurvey, whichever file they come from."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from survey.instrument.foreign.conditions import (
    NUMBER,
    Variable,
    both,
    not_here,
    quote,
)
from survey.instrument.foreign.converted import Converted
from survey.instrument.foreign.limesurvey_expressions import ExpressionManager
from survey.instrument.foreign.names import Taken, option_value, set_of_words
from survey.instrument.foreign.sheets import (
    UNANSWERED,
    Options,
    Question,
    SheetWriter,
    outcome_of,
)
from survey.instrument.foreign.texts import Texts, quote_answers, shown_text

# Of a whole survey, by their names in its files.
TEXTS = {
    "surveyls_title": "title",
    "surveyls_welcometext": "welcome",
    "surveyls_description": "description",
    "surveyls_endtext": "end text",
    "surveyls_policy_notice": "policy notice",
}


@dataclass(slots=True)
class Answer:
    code: str
    texts: Texts
    scale: str = "0"


@dataclass(slots=True)
class Subquestion:
    code: str
    texts: Texts
    scale: str = "0"
    relevance: str = ""


@dataclass(slots=True)
class Element:
    """A question of LimeSurvey; `type` is its letter there.

    `attributes` have a value, or one for each language; `defaults` are by code of
    the subquestion.
    """

    id: str
    type: str
    code: str
    texts: Texts = field(default_factory=dict)
    help: Texts = field(default_factory=dict)
    pattern: str = ""
    has_other: bool = False
    mandatory: str = "N"
    relevance: str = ""
    attributes: dict[str, Texts] = field(default_factory=dict)
    subquestions: list[Subquestion] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    defaults: dict[str, Texts] = field(default_factory=dict)
    conditions: list[dict[str, str]] = field(default_factory=list)

    def attribute(self, name: str) -> str:
        values = self.attributes.get(name, {})
        return next((value for value in values.values() if value.strip()), "").strip()

    def rows(self, scale: str = "0") -> list[Subquestion]:
        return [row for row in self.subquestions if row.scale == scale]


@dataclass(slots=True)
class Section:
    id: str
    texts: Texts = field(default_factory=dict)
    description: Texts = field(default_factory=dict)
    relevance: str = ""
    elements: list[Element] = field(default_factory=list)
    random: str = ""


@dataclass(slots=True)
class LimeSurvey:
    id: str
    languages: list[str]
    texts: dict[str, Texts] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    sections: list[Section] = field(default_factory=list)
    # Parts that surveys here do not have: what, and how it is called there.
    rest: list[tuple[str, str]] = field(default_factory=list)


YES_NO: list[tuple[str, Texts]] = [
    ("Y", {"en": "Yes", "es": "Sí", "fr": "Oui", "de": "Ja", "pt": "Sim", "ar": "نعم"}),
    ("N", {"en": "No", "es": "No", "fr": "Non", "de": "Nein", "pt": "Não", "ar": "لا"}),
]
UNCERTAIN: tuple[str, Texts] = (
    "U",
    {"en": "Uncertain", "es": "No lo sé", "fr": "Incertain", "de": "Unsicher"},
)
OWN_OPTIONS: dict[str, list[tuple[str, Texts]]] = {
    "Y": YES_NO,
    "C": [YES_NO[0], UNCERTAIN, YES_NO[1]],
    "G": [
        ("F", {"en": "Female", "es": "Femenino", "fr": "Femme", "de": "Weiblich"}),
        ("M", {"en": "Male", "es": "Masculino", "fr": "Homme", "de": "Männlich"}),
    ],
    "E": [
        ("I", {"en": "Increase", "es": "Aumenta", "fr": "Augmente", "de": "Zunahme"}),
        ("S", {"en": "Same", "es": "Igual", "fr": "Identique", "de": "Gleich"}),
        ("D", {"en": "Decrease", "es": "Disminuye", "fr": "Diminue", "de": "Abnahme"}),
    ],
    "5": [(str(n), {"en": str(n)}) for n in range(1, 6)],
    "A": [(str(n), {"en": str(n)}) for n in range(1, 6)],
    "B": [(str(n), {"en": str(n)}) for n in range(1, 11)],
}
SINGLE = frozenset("L!OGY5")
GRIDS = frozenset("FHABCE1")
MANY = frozenset("MP")
FIELDS = frozenset("KQ")
CELLS = frozenset(":;")
KNOWN = SINGLE | GRIDS | MANY | FIELDS | CELLS | frozenset("NSTUDX*")
OPEN = frozenset("NSTUD")
# What these attributes say is taken over, or is said in the line of the question.
READ = set_of_words(
    "hidden em_validation_q em_validation_q_tip equation numbers_only relevance"
    " save_as_default display_columns use_dropdown input_boxes"
)
# By types for which they are; # stands for fields of numbers only.
READ_FOR = {
    "other_replace_text": "L!MP",
    "random_order": "L!OMPFHABCE1",
    "answer_order": "L!OMP",
    "min_answers": "MP",
    "max_answers": "MP",
    "min_num_value_n": "NK#",
    "max_num_value_n": "NK#",
    "num_value_int_only": "NK#",
    "maximum_chars": "STU",
    "array_filter": "MPFHABCE1KQ:;",
    "array_filter_exclude": "MPFHABCE1KQ:;",
    "multiflexible_checkbox": ":",
    "multiflexible_min": ":",
    "multiflexible_max": ":",
    "dualscale_headerA": "1",
    "dualscale_headerB": "1",
    "slider_layout": "K",
    "slider_min": "K",
    "slider_max": "K",
    "date_format": "D",
}
# Looks, statistics, and what is without effect where another attribute is unset.
LOOKS = re.compile(
    "public_statistics|statistics_.*|scale_export|page_break|hide_tip|cssclass"
    "|text_input_.*|input_size|display_.*|question_template|printable_help|"
    "answer_width.*|location_.*|time_limit_.*|slider_.*|dropdown_.*|show_.*|samechoice.*"
    "|samelist.*|label_input_.*|choice_.*|repeat_headings|category_separator|reverse"
    "|assessment_value|array_filter_style|showpopups|.*_auto|em_validation.*_tip"
    "|keep_aspect|crop_or_resize|fix_.*|horizontal_scroll|placeholder|alphasort"
    "|parent_order|other_position.*|value_range_allows_missing|other_numbers_only"
    "|other_comment_mandatory|commented_checkbox.*|min_num_of_files|max_num_of_files"
    "|max_filesize|allowed_filetypes|question_theme_name|theme.*"
)
IDLE = frozenset(["", "0", "N", "none", "normal", "default", "inherit"])
UNUSUAL = set_of_words(
    "array_filter_style other_numbers_only other_comment_mandatory alphasort"
    " placeholder"
)


Limits = tuple[tuple[str, str], ...]
LIMITS: Limits = (("min_num_value_n", ">="), ("max_num_value_n", "<="))
SLIDER: Limits = (("slider_min", ">="), ("slider_max", "<="))


PIPE = re.compile(r"\{([^\s{}][^{}]*)\}")


# A subquestion, the end of its code, its type, its label and other cells.
GridRow = tuple[Subquestion, str, str, Texts, dict[str, str]]


class LimeConverter:
    def __init__(self, survey: LimeSurvey) -> None:
        self.survey = survey
        self.out = SheetWriter(survey.languages)
        self.manager = ExpressionManager()
        self.names: dict[tuple[str, str], str] = {}
        self.looks: dict[str, int] = {}
        self.note = self.out.note

    def convert(self) -> Converted:
        survey = self.survey
        title = survey.texts.get("title", {})
        self.out.settings(title, f"limesurvey_{survey.id}" if survey.id else "")
        for section in survey.sections:
            for element in section.elements:
                self.register(section, element)
        self.write_welcome()
        for section in survey.sections:
            self.write_section(section)
        self.write_rest()
        return self.out.converted

    # Names and answers that conditions may read.

    def options_of(self, element: Element, scale: str = "0") -> list[tuple[str, Texts]]:
        if element.type in OWN_OPTIONS:
            return [
                (code, self.out.our_words(texts))
                for code, texts in OWN_OPTIONS[element.type]
            ]
        if element.type in MANY:
            options = [(row.code, row.texts) for row in element.rows()]
        else:
            options = [
                (answer.code, answer.texts)
                for answer in element.answers
                if answer.scale == scale
            ]
        if element.has_other and element.type in "L!MP":
            texts = element.attributes.get("other_replace_text", {})
            label = {
                language: texts.get(language) or texts.get("") or ""
                for language in self.survey.languages
            }
            label = {language: text for language, text in label.items() if text}
            options.append(self.out.other_option(label))
        return options

    def values_of(self, element: Element, scale: str = "0") -> dict[str, str]:
        used = Taken()
        options = self.options_of(element, scale)
        values = {code: option_value(code, used) for code, _texts in options}
        if element.has_other and "other" in values:
            values["-oth-"] = values["other"]
        return values

    def register(self, section: Section, element: Element) -> None:
        if element.type not in KNOWN:
            return
        kind = element.type
        if kind in SINGLE:
            self.add(section, element, "", "one", values=self.values_of(element))
        elif kind in MANY:
            values = self.values_of(element)
            name = self.add(section, element, "", "many", values=values)
            for code, value in values.items():
                variable = Variable(name, "flag", value)
                self.read_as(section, element, code, variable)
        elif kind in GRIDS:
            for row in element.rows():
                for scale in ("0", "1") if kind == "1" else ("0",):
                    values = self.values_of(element, scale)
                    suffix = f"{row.code}_{scale}" if kind == "1" else row.code
                    self.add(section, element, suffix, "one", values=values, row=row)
        elif kind in CELLS:
            for row in element.rows():
                if element.attribute("multiflexible_checkbox") == "1":
                    name = self.add(section, element, row.code, "many", row=row)
                    for column in element.rows("1"):
                        variable = Variable(name, "flag", column.code)
                        suffix = f"{row.code}_{column.code}"
                        self.read_as(section, element, suffix, variable)
                    continue
                for column in element.rows("1"):
                    suffix = f"{row.code}_{column.code}"
                    number = "number" if kind == ":" else "text"
                    self.add(section, element, suffix, number, row=row)
        elif kind in FIELDS:
            for row in element.rows():
                number = "number" if kind == "K" else "text"
                self.add(section, element, row.code, number, row=row)
        else:
            kinds = {"N": "number", "D": "date"}
            numbers = kind == "S" and element.attribute("numbers_only") == "1"
            self.add(
                section, element, "", "number" if numbers else kinds.get(kind, "text")
            )

    def add(
        self,
        section: Section,
        element: Element,
        suffix: str,
        kind: str,
        values: dict[str, str] | None = None,
        row: Subquestion | None = None,
    ) -> str:
        code = f"{element.code}_{suffix}" if suffix else element.code
        name = self.out.names.name_for(code or f"q{element.id}")
        self.names[element.id, suffix] = name
        self.read_as(
            section, element, suffix, Variable(name, kind, values=values or {})
        )
        rules = section.relevance, element.relevance, row.relevance if row else ""
        filters = (
            element.attribute("array_filter"),
            element.attribute("array_filter_exclude"),
        )
        if (
            any(rule.strip() not in ("", "1") for rule in rules)
            or element.conditions
            or (row and any(filters))
        ):
            self.manager.conditional.add(name)
        return name

    def read_as(
        self, section: Section, element: Element, suffix: str, variable: Variable
    ) -> None:
        """Let conditions call an answer by its code, and by its numbers."""
        numbers = f"{self.survey.id}X{section.id}X{element.id}"
        known = self.manager.variables
        code = f"{element.code}_{suffix}" if suffix else element.code
        known.setdefault(code, variable)
        known.setdefault(numbers + suffix, variable)
        known.setdefault(numbers + re.sub(r"_([01])$", r"#\1", suffix), variable)

    # Texts.

    def piped(self, texts: Texts) -> Texts:
        def name_of(match: re.Match[str]) -> str | None:
            name = match[1].removeprefix("INSERTANS:")
            base, _dot, suffix = name.partition(".")
            variable = self.manager.variables.get(base)
            # Of a choice, LimeSurvey shows the label; pages here show the value.
            is_plain = suffix in ("", "NAOK", "shown", "value")
            if variable and is_plain and variable.kind in ("text", "number"):
                return variable.name
            return None

        return quote_answers(texts, PIPE, name_of)

    def write_welcome(self) -> None:
        texts = self.survey.texts
        if shown_text(texts.get("welcome", {})):
            self.out.begin("welcome", {}, "field-list", part=None)
            changes: list[str] = []
            label = self.piped(texts["welcome"])
            name = self.out.names.name_for("welcome_text")
            self.out.ask(Question("welcome", name, "note", label, changes=changes))
            self.out.end()
        for key, value in texts.items():
            if key not in ("title", "welcome") and (shown := shown_text(value)):
                reason = _("surveys have no such text")
                self.note(key, shown, "refused", reason, "setting")

    # Groups and questions.

    def write_section(self, section: Section) -> None:
        place = shown_text(section.texts) or section.id
        relevant = self.rule(place, section.relevance)
        self.out.begin(
            place,
            self.piped(section.texts),
            "field-list",
            relevant,
            name=f"group_{section.id}",
        )
        if section.random:
            reason = _("groups keep their order")
            self.note(place, f"random: {section.random}", "refused", reason, "setting")
        if shown_text(section.description):
            name = self.out.names.name_for(f"group_{section.id}_text")
            label = self.piped(section.description)
            self.out.ask(Question(place, name, "note", label, shown=shown_text(label)))
        for element in section.elements:
            self.write_element(element)
        self.out.end()

    def rule(self, place: str, source: str, what: str = "") -> str:
        if source.strip() in ("", "1"):
            return ""
        return self.out.rule(
            place, source, lambda: self.manager.condition(source), what
        )

    def relevance(self, element: Element) -> str:
        if element.relevance.strip() not in ("", "1") or not element.conditions:
            return self.rule(element.code, element.relevance)
        source = " / ".join(
            f"[{row.get('scenario', '1')}] {row.get('cfieldname', '')}"
            f" {row.get('method', '')} {row.get('value', '')}"
            for row in element.conditions
        )
        return self.out.rule(
            element.code, source, lambda: self.old_conditions(element.conditions)
        )

    def old_conditions(self, rows: list[dict[str, str]]) -> str:
        """Any scenario, with all questions of it, with any value of each."""
        scenarios: dict[str, dict[str, list[str]]] = {}
        for row in rows:
            name = row.get("cfieldname", "").lstrip("+")
            value, method = row.get("value", ""), row.get("method", "")
            if method == "RX" or re.match(r"[@{]", value) or "{" in name:
                raise not_here(f"{name} {method} {value}")
            operator = {"==": "=", "": "="}.get(method.strip(), method.strip())
            literal = ("text", value.strip())
            node = ("variable", f"{name}.NAOK")
            if operator not in ("=", "!=", "<", "<=", ">", ">="):
                raise not_here(method)
            # Without a method a condition on one of several is that it is chosen.
            written = self.manager.comparison(operator, node, literal)
            fields = scenarios.setdefault(row.get("scenario", "1"), {})
            fields.setdefault(row.get("cqid", name), []).append(written)
        joined = [
            both(*(" or ".join(values) for values in fields.values()))
            for fields in scenarios.values()
        ]
        if len(joined) == 1:
            return joined[0]
        return " or ".join(f"({part})" for part in joined)

    def write_element(self, element: Element) -> None:
        place, kind = element.code or element.id, element.type
        shown = shown_text(element.texts)
        if kind not in KNOWN:
            reasons = {
                "R": _("ranking is not possible here"),
                "|": _("respondents cannot send files"),
                "I": _("the language is chosen before the first page"),
                "H": "",
            }
            reason = reasons.get(kind) or _(
                "questions of the type %(type)s are unknown"
            )
            self.note(place, shown, "refused", reason % {"type": kind})
            if element.relevance.strip() not in ("", "1"):
                reason = _("its question is not taken over")
                self.note(place, element.relevance[:300], "refused", reason, "rule")
            return
        changes: list[str] = []
        label = self.piped(element.texts)
        question = Question(
            place,
            self.names.get((element.id, ""), ""),
            "text",
            label,
            self.piped(element.help),
            changes=changes,
            shown=shown,
        )
        self.common(element, question)
        if element.attribute("hidden") == "1" and kind not in "*":
            self.write_hidden(element, question)
        elif kind in SINGLE or kind in MANY:
            self.write_choice(element, question)
        elif kind in GRIDS:
            self.write_grid(element, question)
        elif kind in CELLS:
            self.write_cells(element, question)
        elif kind in FIELDS:
            self.write_fields(element, question)
        elif kind == "*":
            self.write_equation(element, question)
        else:
            self.write_open(element, question)

    def common(self, element: Element, question: Question) -> None:
        """Set what all types have in common."""
        cells = question.cells
        cells["relevant"] = self.relevance(element)
        if element.mandatory == "Y" and element.type not in "X*":
            cells["required"] = "yes"
        elif element.mandatory == "S":
            question.changes.append(_("mandatory in a soft way: it may be skipped"))
        left = []
        for name in sorted(element.attributes):
            value = element.attribute(name)
            if value in IDLE or self.is_read(element, name):
                continue
            if LOOKS.fullmatch(name) and name not in UNUSUAL and name not in READ_FOR:
                self.looks[name] = self.looks.get(name, 0) + 1
            else:
                left.append(f"{name}={value[:40]}")
        if left:
            reason = _("not taken over: %(names)s") % {"names": "; ".join(left)}
            question.changes.append(reason)
        if source := element.attribute("em_validation_q"):
            self.validation(element, question, source)
        if element.pattern:
            self.pattern(element, question)

    def is_read(self, element: Element, name: str) -> bool:
        """Return whether an attribute is taken over, or reported elsewhere."""
        is_number = element.attribute("numbers_only") == "1"
        kinds = READ_FOR.get(name, "")
        return name in READ or element.type in kinds or ("#" in kinds and is_number)

    def validation(self, element: Element, question: Question, source: str) -> None:
        tip = element.attribute("em_validation_q_tip")
        shown = f"{source} ({tip})" if tip else source
        if element.type not in SINGLE | MANY | OPEN:
            reason = _("a rule about several questions")
            self.note(question.place, shown[:400], "refused", reason, "rule")
            return
        self.manager.this = element.code
        written = self.out.rule(
            question.place,
            shown,
            lambda: self.manager.condition(source),
            _("validation"),
        )
        self.manager.this = ""
        question.cells["constraint"] = written
        question.message = {
            language or self.survey.languages[0]: text
            for language, text in element.attributes.get(
                "em_validation_q_tip", {}
            ).items()
        }

    def pattern(self, element: Element, question: Question) -> None:
        def translate() -> str:
            match = re.fullmatch(r"/\^(.*)\$/", element.pattern.strip(), re.DOTALL)
            if not match or "|" in match[1] or element.type not in "NST":
                raise not_here(element.pattern)
            return f"regex(., {quote(match[1])})"

        written = self.out.rule(question.place, element.pattern, translate)
        question.cells["constraint"] = both(
            question.cells.get("constraint", ""), written
        )

    def limit(self, question: Question, condition: str) -> None:
        constraint = question.cells.get("constraint", "")
        question.cells["constraint"] = both(constraint, condition)

    def default_of(self, element: Element, code: str = "") -> str:
        texts = element.defaults.get(code, {})
        return next((text.strip() for text in texts.values() if text.strip()), "")

    def write_hidden(self, element: Element, question: Question) -> None:
        default = self.default_of(element)
        if element.type in "X" or not question.name:
            reason = _("it is always hidden")
            self.note(question.place, question.shown, "refused", reason)
            return
        question.changes.append(_("it is always hidden: only its default is stored"))
        question.type, question.label, question.hint = "hidden", {}, {}
        question.cells = {"default": "" if "{" in default else default}
        self.out.ask(question)

    def list_of(
        self, element: Element, question: Question, scale: str = "0"
    ) -> Options | None:
        return self.out.options(
            question.place, self.options_of(element, scale), element.code or "list"
        )

    def refuse(self, question: Question, reason: str) -> None:
        self.note(question.place, question.shown, "refused", reason)

    def write_choice(self, element: Element, question: Question) -> None:
        options = self.list_of(element, question)
        if options is None:
            self.refuse(question, _("its options are not taken over"))
            return
        is_many, cells = element.type in MANY, question.cells
        command = "select_multiple" if is_many else "select_one"
        question.type = f"{command} {options.name}"
        if element.type == "!":
            cells["appearance"] = "minimal"
        if "1" in (element.attribute("random_order"),) or (
            element.attribute("answer_order") == "random"
        ):
            cells["parameters"] = "randomize=true"
        for name, operator in (("min_answers", ">="), ("max_answers", "<=")):
            if is_many and (number := element.attribute(name)) not in IDLE:
                if NUMBER.fullmatch(number):
                    self.limit(question, f"count-selected(.) {operator} {number}")
                    if name == "min_answers" and element.mandatory != "Y":
                        question.changes.append(_(UNANSWERED))
                else:
                    reason = _("its number is computed")
                    self.note(
                        question.place, f"{name}: {number}", "refused", reason, "rule"
                    )
        if is_many:
            self.filter_options(element, question)
            chosen = [
                value
                for code, value in options.values.items()
                if self.default_of(element, code) == "Y"
            ]
            cells["default"] = " ".join(chosen)
        else:
            default = self.default_of(element)
            cells["default"] = options.values.get(default, "")
            if default and not cells["default"]:
                question.changes.append(_("its default is not one of its options"))
        if not self.out.ask(question):
            return
        if element.has_other and "other" in options.values:
            self.out.other_text(question, options.values["other"], None)
        if element.type == "O":
            self.comment(question, "comment")
        if element.type == "P":
            for code, value in options.values.items():
                relevant = f"selected(${{{question.name}}}, '{value}')"
                label = dict(self.options_of(element))[code]
                self.comment(question, f"{code}_comment", label, relevant)

    def comment(
        self,
        question: Question,
        suffix: str,
        label: Texts | None = None,
        rule: str = "",
    ) -> None:
        """Ask for a comment beside a choice."""
        words = {"en": "Comment", "es": "Comentario", "fr": "Commentaire"}
        words |= {"de": "Kommentar", "pt": "Comentário", "ar": "تعليق"}
        name = self.out.names.name_for(f"{question.name}_{suffix}")
        relevant = rule or question.cells.get("relevant", "")
        translated = self.out.our_words(words)
        texts = {
            language: f"{(label or {}).get(language, '')} – {text}".removeprefix(" – ")
            for language, text in translated.items()
        }
        self.out.ask(
            Question(
                question.place,
                name,
                "text",
                texts,
                cells={"relevant": relevant},
                is_part=True,
            )
        )

    def filter_options(self, element: Element, question: Question) -> None:
        for name in ("array_filter", "array_filter_exclude"):
            source = element.attribute(name)
            if source in IDLE:
                continue

            def translate(name: str = name, source: str = source) -> str:
                parts = []
                for code in source.split(";"):
                    variable = self.manager.variables.get(code.strip())
                    if not variable or variable.kind != "many" or element.has_other:
                        raise not_here(code)
                    written = f"selected(${{{variable.name}}}, name)"
                    parts.append(
                        written if name == "array_filter" else f"not({written})"
                    )
                return " or ".join(parts) if name == "array_filter" else both(*parts)

            written = self.out.rule(question.place, source, translate, name)
            cells = question.cells
            cells["choice_filter"] = both(cells.get("choice_filter", ""), written)
        for row in element.rows():
            if row.relevance.strip() not in ("", "1"):
                reason = _("a rule of one option")
                text = f"{row.code}: {row.relevance[:200]}"
                self.note(question.place, text, "refused", reason, "rule")

    def row_rule(self, element: Element, question: Question, row: Subquestion) -> str:
        """Return the condition of a row of a grid, without the question's own."""
        parts = [self.rule(f"{question.place} {row.code}", row.relevance)]
        for name in ("array_filter", "array_filter_exclude"):
            source = element.attribute(name)
            if source in IDLE:
                continue

            def translate(name: str = name, source: str = source) -> str:
                written = []
                for code in source.split(";"):
                    known = self.manager.variables
                    if f"{code.strip()}_{row.code}" not in known:
                        raise not_here(f"{code}_{row.code}")
                    node = ("variable", f"{code.strip()}_{row.code}")
                    is_shown = name == "array_filter"
                    written.append(self.manager.is_blank(node, blank=not is_shown))
                joint = " or " if name == "array_filter" else " and "
                return joint.join(written)

            place = f"{question.place} {row.code}"
            parts.append(self.out.rule(place, source, translate, name))
        return both(*parts)

    def write_rows(
        self,
        element: Element,
        question: Question,
        rows: list[GridRow],
        appearance: str,
    ) -> None:
        """Write a group; a row has its subquestion, suffix, type, label and cells."""
        required = question.cells.get("required", "")
        before = self.out.questions
        self.out.begin_grid(question, appearance)
        rules: dict[str, str] = {}
        for row, suffix, type_, label, cells in rows:
            if row.code not in rules:
                rules[row.code] = self.row_rule(element, question, row)
            row_cells = {"relevant": rules[row.code], "required": required, **cells}
            name = self.names[element.id, suffix]
            self.out.ask(
                Question(
                    question.place,
                    name,
                    type_,
                    self.piped(label),
                    cells=row_cells,
                    is_part=True,
                    shown=shown_text(label) or suffix,
                )
            )
        self.out.end()
        outcome = outcome_of(question.changes)
        if self.out.questions == before:
            outcome = "refused"
            question.changes.append(_("it has no rows"))
        reason = "; ".join(question.changes)
        self.note(question.place, question.shown, outcome, reason)

    def write_grid(self, element: Element, question: Question) -> None:
        if element.attribute("random_order") == "1":
            question.changes.append(_("rows keep their order"))
        scales = ("0", "1") if element.type == "1" else ("0",)
        title = question.label
        for scale in scales:
            options = self.list_of(element, question, scale)
            if options is None:
                self.refuse(question, _("its options are not taken over"))
                return
            rows: list[GridRow] = []
            for row in element.rows():
                suffix = f"{row.code}_{scale}" if element.type == "1" else row.code
                rows.append((row, suffix, f"select_one {options.name}", row.texts, {}))
            part = Question(
                question.place,
                "",
                "",
                title,
                question.hint,
                changes=question.changes,
                cells=dict(question.cells),
                shown=question.shown,
            )
            if element.type == "1":
                header = element.attributes.get(
                    f"dualscale_header{'AB'[int(scale)]}", {}
                )
                part.shown = f"{question.shown} ({int(scale) + 1})"
                part.changes = [*question.changes, _("two scales are two grids")]
                part.label = {
                    language: "<br>".join(
                        filter(None, [text, header.get(language) or header.get("")])
                    )
                    for language, text in title.items()
                }
            self.write_rows(element, part, rows, "table-list")

    def write_cells(self, element: Element, question: Question) -> None:
        columns = element.rows("1")
        if element.attribute("multiflexible_checkbox") == "1":
            codes = [(column.code, column.texts) for column in columns]
            options = self.out.options(question.place, codes, element.code)
            if options is None:
                self.refuse(question, _("its options are not taken over"))
                return
            type_ = f"select_multiple {options.name}"
            rows: list[GridRow] = [
                (row, row.code, type_, row.texts, {}) for row in element.rows()
            ]
            self.write_rows(element, question, rows, "table-list")
            return
        cells: dict[str, str] = {}
        type_ = "decimal" if element.type == ":" else "text"
        if element.type == ":":
            names = ("multiflexible_min", ">="), ("multiflexible_max", "<=")
            cells = {"constraint": self.number_limits(element, names)}
        question.changes.append(_("the cells of a table are asked one below another"))
        cell_rows = []
        for row in element.rows():
            for column in columns:
                languages = dict.fromkeys([*row.texts, *column.texts])
                label = {
                    language: f"{row.texts.get(language, row.code)} –"
                    f" {column.texts.get(language, column.code)}"
                    for language in languages
                }
                suffix = f"{row.code}_{column.code}"
                cell_rows.append((row, suffix, type_, label, cells))
        self.write_rows(element, question, cell_rows, "")

    def write_fields(self, element: Element, question: Question) -> None:
        is_number = element.type == "K" or element.attribute("numbers_only") == "1"
        type_ = self.number_type(element) if is_number else "text"
        is_slider = element.attribute("slider_layout") == "1" and element.type == "K"
        limits = self.number_limits(element) if is_number else ""
        if is_slider:
            limits = both(limits, self.number_limits(element, SLIDER))
            question.changes.append(_("sliders are number fields"))
        cells = {"constraint": limits}
        if element.type == "K":
            sums = [
                f"{name}={value}"
                for name in ("min_num_value", "max_num_value", "equals_num_value")
                if (value := element.attribute(name)) not in IDLE
            ]
            if sums:
                reason = _("a rule about several questions")
                self.note(question.place, "; ".join(sums), "refused", reason, "rule")
        rows: list[GridRow] = [
            (
                row,
                row.code,
                type_,
                row.texts,
                {**cells, "default": self.plain_default(element, row.code)},
            )
            for row in element.rows()
        ]
        self.write_rows(element, question, rows, "")

    def number_type(self, element: Element) -> str:
        is_integer = element.attribute("num_value_int_only") == "1"
        return "integer" if is_integer else "decimal"

    def number_limits(self, element: Element, names: Limits = LIMITS) -> str:
        limits = []
        for name, operator in names:
            number = element.attribute(name)
            if NUMBER.fullmatch(number):
                limits.append(f". {operator} {number}")
            elif number not in IDLE:
                written = self.computed_limit(element, name, number)
                limits += [f". {operator} {written}"] if written else []
        return both(*limits)

    def computed_limit(self, element: Element, name: str, source: str) -> str:
        def translate() -> str:
            variable = self.manager.variable(source.strip())
            if variable.kind != "number":
                raise not_here(source)
            return f"${{{variable.name}}}"

        return self.out.rule(element.code, source, translate, name)

    def plain_default(self, element: Element, code: str = "") -> str:
        default = self.default_of(element, code)
        if "{" in default:
            reason = _("a computed default")
            self.note(element.code, default[:200], "refused", reason, "rule")
            return ""
        return default

    def write_open(self, element: Element, question: Question) -> None:
        cells, kind = question.cells, element.type
        if kind == "X":
            question.type = "note"
        elif kind == "N" or element.attribute("numbers_only") == "1":
            question.type = self.number_type(element)
            self.limit(question, self.number_limits(element))
        elif kind == "D":
            question.type = self.date_type(element)
        else:
            if kind in "TU":
                cells["appearance"] = "multiline"
            if NUMBER.fullmatch(most := element.attribute("maximum_chars")):
                self.limit(question, f"string-length(.) <= {most}")
        if kind != "X":
            cells["default"] = self.plain_default(element)
        self.out.ask(question)

    def date_type(self, element: Element) -> str:
        pattern = element.attribute("date_format").lower()
        has_time = "h" in pattern
        has_date = not pattern or re.search("[dmy]", pattern.replace("mm:", ""))
        if has_time:
            return "dateTime" if re.search("[dy]", pattern) else "time"
        return "date" if has_date else "time"

    def write_equation(self, element: Element, question: Question) -> None:
        source = element.attribute("equation") or next(iter(element.texts.values()), "")
        match = re.fullmatch(r"\s*\{(.*)\}\s*", source, re.DOTALL)

        def translate() -> str:
            if match is None:
                raise not_here(source)
            return self.manager.condition(match[1])

        written = self.out.rule(question.place, source, translate, _("calculation"))
        if not written:
            self.refuse(question, _("what it computes is not taken over"))
            return
        question.type, question.label, question.hint = "calculate", {}, {}
        # LimeSurvey writes true as 1 and false as blank.
        question.cells = {"calculation": f"if({written}, '1', '')"}
        question.cells["relevant"] = ""
        self.out.ask(question)

    def write_rest(self) -> None:
        for what, name in self.survey.rest:
            self.out.refuse_setting(name, what)
        idle = {"", "N", "0", "I", "inherit", "none"}
        unusual = [
            f"{name}={value[:60]}"
            for name, value in self.survey.settings.items()
            if value.strip() not in idle
        ]
        if unusual:
            self.out.refuse_setting("", "; ".join(unusual))
        if self.looks:
            names = ", ".join(sorted(self.looks))
            reason = _("looks and statistics are not taken over")
            self.out.refuse_setting("", names, reason)


def convert(survey: LimeSurvey) -> Converted:
    return LimeConverter(survey).convert()
