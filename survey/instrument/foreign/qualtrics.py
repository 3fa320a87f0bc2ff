"""Convert surveys of Qualtrics, .qsf files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from survey.instrument.foreign.conditions import (
    NUMBER,
    Translator,
    Untranslatable,
    Variable,
    both,
    not_here,
    quote,
)
from survey.instrument.foreign.converted import (
    Cells,
    Converted,
    Part,
    UnreadableQuestionnaire,
)
from survey.instrument.foreign.names import Taken, option_value, set_of_words
from survey.instrument.foreign.sheets import (
    UNANSWERED,
    Options,
    Question,
    SheetWriter,
    outcome_of,
)
from survey.instrument.foreign.texts import Texts, plain_text, quote_answers, shown_text
from survey.instrument.xlsform.problems import quoted

Json = dict[str, Any]
# A question, what of it, and a choice; in a grid its row, and then its column.
LOCATOR = re.compile(r"q://(QID[\w#]+)/(\w+)(?:/(\w+))?(?:/(\w+))?")
PIPE = re.compile(r"\$\{([^{}]*)\}")
COMPARISONS = {
    "EqualTo": "=",
    "NotEqualTo": "!=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
MANY = set_of_words("MAVR MAHR MACOL MSB")
DEEPEST_FLOW = 12
# Parts of a question that are converted or noted below, and those that only lay it
# out on the screen of Qualtrics or count for its editor; any other has a line.
READ_PARTS = set_of_words(
    "AdditionalQuestions AnswerOrder Answers ChoiceDataExportTags ChoiceGroups"
    " ChoiceOrder Choices Configuration DataExportTag DefaultChoices DisplayLogic"
    " DynamicChoices Graphics InPageDisplayLogic Labels Language QuestionID QuestionJS"
    " QuestionText QuestionType Randomization RecodeValues Selector SubSelector"
    " Validation"
)
SILENT_PARTS = set_of_words(
    "AnalysisType AnswerColumns AnswerDataExportTag ChoiceColumnWidth"
    " ChoiceColumnWidthPixels ChoiceGroupOrder DataVisibility FilesDescription"
    " GraphicsDescription NextAnswerId NextChoiceId NumberOfQuestions"
    " QuestionDescription QuestionText_Unsafe"
)
OPTION_PARTS = set_of_words(
    "Display DisplayLogic ExclusiveAnswer Image InputHeight InputWidth TextEntry"
    " TextEntrySize"
)
EMAIL = r"regex(., '[^@ ]+@[^@ ]+\.[^@ ]+')"


def convert(data: Json) -> Converted:
    return QualtricsConverter(data).convert()


def mapping(value: Any) -> Json:
    """Return an object; Qualtrics writes an empty one as a list."""
    if isinstance(value, list):
        return {str(index): item for index, item in enumerate(value)}
    return value if isinstance(value, dict) else {}


def listing(value: Any) -> list[Any]:
    return (
        list(value.values())
        if isinstance(value, dict)
        else (value if isinstance(value, list) else [])
    )


def string(value: Any) -> str:
    return "" if value is None or isinstance(value, dict | list) else str(value)


def is_blank(value: Any) -> bool:
    blank: tuple[Any, ...] = (None, "", "false", "No", "None", False, [], {})
    parts = listing(value)
    return value in blank or bool(parts) and all(part in blank for part in parts)


def displayed(value: Any) -> str:
    """Join the words in a part of a question that respondents would see."""
    words = [string(mapping(part).get("Display")) for part in listing(value)]
    return ", ".join(plain_text(word)[0] for word in words if word)


@dataclass(slots=True)
class Entry:
    """A choice or an answer (a column) of a question."""

    id: str
    texts: Texts
    json: Json = field(default_factory=dict)


class QualtricsLogic(Translator):
    """Translate logic, which Qualtrics stores as objects."""

    def __init__(self) -> None:
        # By question, and by question and choice for rows of a grid.
        self.variables: dict[str, Variable] = {}

    def logic(self, data: Json) -> str:
        sets: list[tuple[str, str]] = []
        for _key, group in ordered(data):
            if isinstance(group, dict):
                sets.append((string(group.get("Type")), self.set_of(group)))
        kinds = {kind.lower() for kind, _written in sets[1:]}
        if not sets or not kinds <= {"andif"} and not kinds <= {"orif", "elseif"}:
            raise Untranslatable(_("And and Or are mixed"))
        if kinds <= {"andif"}:
            return both(*(written for _kind, written in sets))
        return " or ".join(f"({written})" for _kind, written in sets)

    def set_of(self, group: Json) -> str:
        written: list[str] = []
        joints: set[str] = set()
        for _key, expression in ordered(group):
            if not isinstance(expression, dict):
                continue
            if written:
                joints.add(string(expression.get("Conjuction")).lower() or "and")
            written.append(self.expression(expression))
        if not written:
            raise not_here("")
        # Which of the two binds tighter is nowhere said.
        if len(joints) > 1:
            raise Untranslatable(_("And and Or are mixed"))
        return both(*written) if joints <= {"and"} else " or ".join(written)

    def expression(self, data: Json) -> str:
        operator = string(data.get("Operator"))
        left = string(data.get("LeftOperand")).replace("%23", "#")
        match = LOCATOR.match(left) or LOCATOR.match(string(data.get("ChoiceLocator")))
        if data.get("LogicType") != "Question" or match is None:
            raise not_here(described(data))
        question, part, choice, column = match.groups()
        if column and part == "SelectableChoice":
            question, choice = f"{question}/{choice}", column
        if choice and part in ("ChoiceTextEntryValue", "ChoiceNumericEntryValue"):
            question = f"{question}/{choice}"
        variable = self.variables.get(question)
        if variable is None:
            raise Untranslatable(
                _("there is no question %(name)s") % {"name": question}
            )
        if operator in ("Selected", "NotSelected") and part == "SelectableChoice":
            return self.choice(variable, choice or "", chosen=operator == "Selected")
        name, value = f"${{{variable.name}}}", string(data.get("RightOperand"))
        if part in ("ChoiceTextEntryValue", "ChoiceNumericEntryValue"):
            if operator in ("Empty", "NotEmpty"):
                return f"{name} {'=' if operator == 'Empty' else '!='} ''"
            is_plain = NUMBER.fullmatch(value) and variable.kind in ("number", "text")
            if operator in COMPARISONS and is_plain:
                return f"{name} {COMPARISONS[operator]} {value}"
        is_count = part == "SelectedChoicesCount" and variable.kind == "many"
        if is_count and operator in COMPARISONS and NUMBER.fullmatch(value):
            return f"count-selected({name}) {COMPARISONS[operator]} {value}"
        raise not_here(described(data))

    def choice(self, variable: Variable, choice: str, *, chosen: bool) -> str:
        value = variable.values.get(choice)
        if value is None:
            raise Untranslatable(
                _("%(name)s has no option %(value)s")
                % {"name": variable.name, "value": choice}
            )
        if variable.kind == "many":
            return self.selected(Variable(variable.name, "flag", value), chosen=chosen)
        return f"${{{variable.name}}} {'=' if chosen else '!='} {quote(value)}"


def ordered(data: Json) -> list[tuple[str, Any]]:
    pairs = [(key, value) for key, value in data.items() if key.isdecimal()]
    return sorted(pairs, key=lambda pair: int(pair[0]))


def described(data: Json) -> str:
    """Return the words in which Qualtrics tells a person of a rule."""
    words = [string(data.get("Description"))]
    words += [
        described(value) for _key, value in ordered(data) if isinstance(value, dict)
    ]
    text = plain_text(re.sub(r"</span>", " ", " ".join(filter(None, words))))[0]
    return re.sub(r"\s+", " ", text) or string(data.get("LogicType"))


class QualtricsConverter:
    def __init__(self, data: Json) -> None:
        entry = mapping(data.get("SurveyEntry"))
        elements = data.get("SurveyElements")
        if not isinstance(elements, list):
            raise UnreadableQuestionnaire(
                _("The file of Qualtrics has no list of elements (SurveyElements).")
            )
        self.entry = entry
        self.elements = [element for element in elements if isinstance(element, dict)]
        self.first = string(entry.get("SurveyLanguage")) or "EN"
        self.questions: dict[str, Json] = {}
        languages = {self.first: None}
        for element in self.of_kind("SQ"):
            payload = mapping(element.get("Payload"))
            key = string(payload.get("QuestionID") or element.get("PrimaryAttribute"))
            self.questions[key] = payload
            if isinstance(payload.get("Language"), dict):
                languages |= dict.fromkeys(payload["Language"])
        self.out = SheetWriter(languages)
        self.note = self.out.note
        self.logic = QualtricsLogic()
        self.names: dict[str, str] = {}
        self.blocks: dict[str, Json] = {}
        for element in self.of_kind("BL"):
            for block in listing(element.get("Payload")):
                if isinstance(block, dict):
                    self.blocks[string(block.get("ID"))] = block
        self.shown: set[str] = set()

    def of_kind(self, kind: str) -> Iterator[Json]:
        return (e for e in self.elements if e.get("Element") == kind)

    def convert(self) -> Converted:
        title = {self.first: string(self.entry.get("SurveyName"))}
        name = string(self.entry.get("SurveyID"))
        self.out.settings(title, name)
        if text := string(self.entry.get("SurveyDescription")):
            self.out.refuse_setting("", f"SurveyDescription: {text}")
        for key, question in self.questions.items():
            self.register(key, question)
        flows = [mapping(e.get("Payload")) for e in self.of_kind("FL")]
        steps = [step for flow in flows for step in listing(flow.get("Flow"))]
        if not steps:
            # Without a flow the blocks follow each other.
            steps = [{"Type": "Block", "ID": key} for key in self.blocks]
        self.write_flow(steps, 0)
        self.write_rest()
        return self.out.converted

    # Names, and answers that rules may read.

    def tag(self, key: str, question: Json) -> str:
        return string(question.get("DataExportTag")) or key

    def register(self, key: str, question: Json) -> None:
        kind, selector = (string(question.get(k)) for k in ("QuestionType", "Selector"))
        name = self.out.names.name_for(self.tag(key, question))
        self.names[key] = name
        if kind == "MC":
            many = "many" if selector in MANY else "one"
            values = self.values_of(question, self.entries(question, "Choice"))
            self.logic.variables[key] = Variable(name, many, values=values)
        elif kind == "TE" and selector != "FORM":
            is_number = self.content_type(question) == "ValidNumber"
            self.logic.variables[key] = Variable(
                name, "number" if is_number else "text"
            )
        elif kind == "Matrix" and selector != "TE":
            self.register_rows(key, question, name)
        elif kind == "SBS":
            for side, column in mapping(question.get("AdditionalQuestions")).items():
                inner = self.side(question, side, mapping(column))
                if inner.get("Answers"):
                    self.register_rows(f"{key}#{side}", inner, f"{name}#{side}")
        elif kind in ("TE", "Slider", "CS"):
            for choice in self.entries(question, "Choice"):
                row = self.out.names.name_for(f"{name}_{choice.id}")
                self.names[f"{key}/{choice.id}"] = row
                number = "text" if kind == "TE" else "number"
                self.logic.variables[f"{key}/{choice.id}"] = Variable(row, number)

    def side(self, question: Json, number: str, column: Json) -> Json:
        """Return a column of questions side by side as a question of its own."""
        rows = {key: question.get(key) for key in ("Choices", "ChoiceOrder")}
        languages = {}
        for language, words in mapping(question.get("Language")).items():
            sides = mapping(mapping(words).get("AdditionalQuestions"))
            languages[language] = {
                **mapping(sides.get(number)),
                "Choices": mapping(words).get("Choices"),
            }
        return {**column, "Language": languages, **rows}

    def register_rows(self, key: str, question: Json, name: str) -> None:
        values = self.values_of(question, self.entries(question, "Answer"))
        tags = mapping(question.get("ChoiceDataExportTags"))
        many = "many" if question.get("SubSelector") == "MultipleAnswer" else "one"
        for choice in self.entries(question, "Choice"):
            tag = string(tags.get(choice.id)) or f"{name}_{choice.id}"
            row = self.out.names.name_for(tag)
            self.names[f"{key}/{choice.id}"] = row
            self.logic.variables[f"{key}/{choice.id}"] = Variable(row, many, "", values)

    def content_type(self, question: Json) -> str:
        settings = mapping(mapping(question.get("Validation")).get("Settings"))
        return string(settings.get("ContentType")) * (
            settings.get("Type") == "ContentType"
        )

    def entries(self, question: Json, kind: str) -> list[Entry]:
        """List the choices (or answers) of a question in their order."""
        items = mapping(question.get(f"{kind}s"))
        order = [string(key) for key in listing(question.get(f"{kind}Order"))]
        keys = [key for key in order if key in items]
        keys += [key for key in items if key not in set(keys)]
        translated = mapping(question.get("Language"))
        entries = []
        for key in keys:
            item = mapping(items[key])
            texts = {self.first: string(item.get("Display"))}
            for language, words in translated.items():
                display = mapping(mapping(words).get(f"{kind}s")).get(key)
                if text := string(mapping(display).get("Display")):
                    texts[language] = text
            entries.append(Entry(key, texts, item))
        return entries

    def values_of(self, question: Json, entries: list[Entry]) -> dict[str, str]:
        recoded = mapping(question.get("RecodeValues"))
        used = Taken()
        return {
            entry.id: option_value(string(recoded.get(entry.id)) or entry.id, used)
            for entry in entries
        }

    def options(
        self, question: Json, entries: list[Entry], place: str
    ) -> Options | None:
        values = self.values_of(question, entries)
        codes = [(values[entry.id], self.piped(entry.texts)) for entry in entries]
        options = self.out.options(place, codes, place)
        self.refuse_option_rules(entries, place)
        return options

    def refuse_option_rules(self, entries: list[Entry], place: str) -> None:
        for entry in entries:
            if rule := mapping(entry.json.get("DisplayLogic")):
                text = f"{entry.id}: {described(rule)}"
                reason = _("a rule of one option")
                self.note(place, text[:400], "refused", reason, "rule")

    def text_of(self, question: Json) -> Texts:
        texts = {self.first: string(question.get("QuestionText"))}
        for language, words in mapping(question.get("Language")).items():
            if text := string(mapping(words).get("QuestionText")):
                texts[language] = text
        return self.piped(texts)

    def piped(self, texts: Texts) -> Texts:
        def name_of(match: re.Match[str]) -> str | None:
            locator = LOCATOR.fullmatch(match[1])
            key = ""
            if locator and locator[2] == "ChoiceTextEntryValue":
                key = "/".join(filter(None, [locator[1], locator[3]]))
            variable = self.logic.variables.get(key)
            is_plain = variable and variable.kind in ("text", "number")
            return variable.name if variable and is_plain else None

        return quote_answers(texts, PIPE, name_of)

    # The flow: blocks, branches and what else is on the way.

    def write_flow(self, steps: list[Any], depth: int) -> None:
        for step in steps:
            if not isinstance(step, dict):
                continue
            kind = string(step.get("Type"))
            inner = listing(step.get("Flow"))
            if depth > DEEPEST_FLOW:
                reason = _("the flow is nested too deeply")
                self.note(string(step.get("FlowID")), kind, "refused", reason, "group")
            elif kind in ("Block", "Standard"):
                self.write_block(string(step.get("ID")))
            elif kind == "Branch":
                self.write_branch(step, inner, depth)
            else:
                self.write_step(step, kind)
                self.write_flow(inner, depth + 1)

    def write_branch(self, step: Json, inner: list[Any], depth: int) -> None:
        place = string(step.get("FlowID"))
        relevant = self.rule(place, step.get("BranchLogic"))
        ends = [part for part in inner if mapping(part).get("Type") == "EndSurvey"]
        if not relevant and not ends and inner:
            reason = _("its condition is not taken over, so everybody is asked")
            self.note(place, _("Branch"), "changed", reason, "group")
        self.out.begin(place, {}, "", relevant, name=f"branch_{place}", part=None)
        self.write_flow(inner, depth + 1)
        self.out.end()

    def write_step(self, step: Json, kind: str) -> None:
        place, text = string(step.get("FlowID")), kind
        if kind == "EmbeddedData":
            names = [
                string(mapping(data).get("Field"))
                for data in listing(step.get("EmbeddedData"))
            ]
            text = f"{kind}: {', '.join(filter(None, names))}"
            reason = _("data from outside cannot be brought along")
        elif kind in ("BlockRandomizer", "Randomizer"):
            text = f"{kind}: {string(step.get('SubSet'))}"
            reason = _("parts keep their order, and all are asked")
        elif kind == "EndSurvey":
            reason = _("a survey ends after its last page only")
        elif kind in ("Group", "Root"):
            self.note(
                place, string(step.get("Description")) or kind, "taken", "", "group"
            )
            return
        else:
            reason = _("the flow has no such step here")
        self.out.refuse_setting(place, text, reason)

    def rule(self, place: str, logic: Any, what: str = "") -> str:
        if not mapping(logic):
            return ""
        data = mapping(logic)
        return self.out.rule(
            place, described(data), lambda: self.logic.logic(data), what
        )

    def write_block(self, key: str) -> None:
        block = self.blocks.get(key)
        shown = string(block.get("Description")) if block else key
        if block is None:
            self.note(key, shown, "refused", _("the file has no such block"), "group")
            return
        if key in self.shown:
            reason = _("the block is shown again: every question is asked once")
            self.note(key, shown, "refused", reason, "group")
            return
        self.shown.add(key)
        self.note(key, shown, "taken", "", "group")
        for name, value in mapping(block.get("Options")).items():
            words = string(value) or ("yes" if value else "")
            if name in ("BlockLocking", "BlockVisibility") or words in ("", "false"):
                continue
            self.out.refuse_setting(key, f"{shown}: {name}={words}")
        relevant = ""
        self.out.begin(key, {}, "field-list", relevant, name=shown or key, part=None)
        for element in listing(block.get("BlockElements")):
            element = mapping(element)
            if element.get("Type") == "Page Break":
                self.out.end()
                self.out.begin(key, {}, "field-list", name=shown or key, part=None)
                continue
            question = string(element.get("QuestionID"))
            for skip in listing(element.get("SkipLogic")):
                text = described(mapping(skip))
                reason = _("skipping ahead: write a condition at the questions skipped")
                self.note(question, text[:400], "refused", reason, "rule")
            if question in self.questions:
                self.write_question(question, self.questions[question])
                self.shown.add(question)
            else:
                self.note(question, "", "refused", _("the file has no such question"))
        self.out.end()

    def write_rest(self) -> None:
        for key, block in self.blocks.items():
            if key in self.shown:
                continue
            is_bin = block.get("Type") == "Trash"
            reason = _("in the trash") if is_bin else _("not part of the flow")
            for element in listing(block.get("BlockElements")):
                question = string(mapping(element).get("QuestionID"))
                if question in self.questions and question not in self.shown:
                    self.shown.add(question)
                    data = self.questions[question]
                    shown = shown_text(self.text_of(data))
                    # What was thrown away is no question of the survey.
                    part: Part = "setting" if is_bin else "question"
                    self.note(self.tag(question, data), shown, "refused", reason, part)
            shown = string(block.get("Description"))
            self.note(key, shown, "refused", reason, "group")
        for key, data in self.questions.items():
            if key not in self.shown:
                shown = shown_text(self.text_of(data))
                reason = _("it belongs to no block")
                self.note(self.tag(key, data), shown, "refused", reason)
        for element in self.elements:
            kind = string(element.get("Element"))
            if kind in ("SQ", "BL", "FL"):
                continue
            words = [
                f"{name}={string(value)[:60]}"
                for name, value in mapping(element.get("Payload")).items()
                if string(value) not in ("", "false", "None")
            ]
            text = (
                f"{kind} {string(element.get('PrimaryAttribute'))}: {'; '.join(words)}"
            )
            self.out.refuse_setting(kind, text)

    # Questions.

    def write_question(self, key: str, data: Json) -> None:
        kind, selector = string(data.get("QuestionType")), string(data.get("Selector"))
        place, changes = self.tag(key, data), list[str]()
        label = self.text_of(data)
        question = Question(
            place,
            self.names[key],
            "text",
            label,
            changes=changes,
            shown=shown_text(label),
        )
        changes += self.losses(data)
        relevant = self.rule(place, data.get("DisplayLogic"))
        relevant = both(relevant, self.rule(place, data.get("InPageDisplayLogic")))
        question.cells["relevant"] = relevant
        self.validation(data, question)
        if kind == "MC":
            self.write_choice(key, data, question)
        elif kind == "Matrix" and selector in ("Likert", "Bipolar", "Profile"):
            self.write_matrix(key, data, question)
        elif kind == "Matrix" and selector in ("TE", "CS"):
            self.write_text_matrix(data, question)
        elif kind == "SBS":
            self.write_side_by_side(key, data, question)
        elif kind == "TE" and selector != "FORM":
            if selector in ("ML", "ESTB"):
                question.cells["appearance"] = "multiline"
            if selector == "PW":
                changes.append(_("what is typed can be seen"))
            self.out.ask(question)
        elif kind in ("TE", "Slider", "CS"):
            self.write_fields(key, data, question)
        elif kind == "DB":
            question.type, question.cells = "note", {"relevant": relevant}
            if selector in ("GRB", "PTB") and selector == "GRB":
                changes.append(_("pictures, sound and video are not shown"))
            self.out.ask(question)
        else:
            reasons = {
                "RO": _("ranking is not possible here"),
                "FileUpload": _("respondents cannot send files"),
                "Timing": _("times are not recorded by a question"),
                "Meta": _("the browser is not recorded by a question"),
                "Captcha": _("a captcha is not needed: people have access codes"),
            }
            name = f"{kind} {selector}".strip()
            reason = reasons.get(kind) or (
                _("questions of the type %(type)s are unknown") % {"type": name}
            )
            self.refuse(question, reason)

    def losses(self, data: Json) -> list[str]:
        """Say which parts of a question have no place in a workbook."""
        losses = [_("scripts are dropped")] if data.get("QuestionJS") else []
        names = []
        for group in listing(data.get("ChoiceGroups")):
            names.append(string(mapping(group).get("GroupLabel")))
        if any(names):
            reason = _("options are not in groups: %(names)s")
            losses.append(reason % {"names": quoted(", ".join(filter(None, names)))})
        if mapping(data.get("DynamicChoices")):
            losses.append(_("options that come from other answers are dropped"))
        rest = {
            name: value
            for name, value in data.items()
            if name not in READ_PARTS | SILENT_PARTS and not is_blank(value)
        }
        if data.get("QuestionType") != "MC" and not is_blank(
            data.get("DefaultChoices")
        ):
            rest["DefaultChoices"] = data["DefaultChoices"]
        for name, value in rest.items():
            words = displayed(value)
            part = f"{name} ({words})" if words else name
            losses.append(_("not taken over: %(names)s") % {"names": quoted(part)})
        entries = self.entries(data, "Choice") + self.entries(data, "Answer")
        parts = {
            name: None
            for entry in entries
            for name, value in entry.json.items()
            if name not in OPTION_PARTS and not is_blank(value)
        }
        if parts:
            part = ", ".join(parts)
            losses.append(_("not taken over: %(names)s") % {"names": quoted(part)})
        return losses

    def refuse(self, question: Question, reason: str) -> None:
        self.note(question.place, question.shown, "refused", reason)

    def validation(self, data: Json, question: Question) -> None:
        validation = mapping(data.get("Validation"))
        settings = mapping(validation.get("Settings"))
        cells, changes = question.cells, question.changes
        if settings.get("ForceResponse") == "ON":
            cells["required"] = "yes"
        elif settings.get("ForceResponse") == "RequestResponse":
            changes.append(_("an answer is asked for, not required: it may be skipped"))
        kind = string(settings.get("Type"))
        if kind in ("", "None"):
            return
        if kind == "ContentType":
            self.content(string(settings.get("ContentType")), settings, question)
        elif kind in ("MinChar", "MaxChar", "CharRange", "TotalChar"):
            limits = []
            low, high = settings.get("MinChars"), settings.get("MaxChars")
            total = settings.get("TotalChars")
            for operator, number in ((">=", low), ("<=", high), ("<=", total)):
                if NUMBER.fullmatch(string(number)):
                    limits.append(f"string-length(.) {operator} {number}")
            cells["constraint"] = both(*limits)
        elif kind in ("MinChoices", "MaxChoices", "ChoiceRange", "NumChoices"):
            low, high = settings.get("MinChoices"), settings.get("MaxChoices")
            limits = [
                f"count-selected(.) {operator} {number}"
                for operator, number in ((">=", low), ("<=", high))
                if NUMBER.fullmatch(string(number))
            ]
            if string(data.get("Selector")) in MANY:
                cells["constraint"] = both(*limits)
                if NUMBER.fullmatch(string(low)) and not cells.get("required"):
                    changes.append(_(UNANSWERED))
        if not cells.get("constraint") and kind != "ContentType":
            text = f"{kind}: " + "; ".join(
                f"{name}={string(value)}" for name, value in settings.items()
            )
            self.note(
                question.place, text[:400], "refused", not_here(kind).args[0], "rule"
            )

    def content(self, kind: str, settings: Json, question: Question) -> None:
        cells, changes = question.cells, question.changes
        rest = mapping(settings.get("ValidNumber"))
        if kind == "ValidNumber":
            is_integer = string(rest.get("NumDecimals")) == "0"
            question.type = "integer" if is_integer else "decimal"
            limits = [
                f". {operator} {number}"
                for operator, number in (
                    (">=", rest.get("Min")),
                    ("<=", rest.get("Max")),
                )
                if NUMBER.fullmatch(string(number))
            ]
            cells["constraint"] = both(*limits)
        elif kind == "ValidEmail":
            cells["constraint"] = EMAIL
            changes.append(_("e-mail addresses are checked by a simpler rule"))
        elif kind == "ValidDate":
            question.type = "date"
        elif kind:
            changes.append(_("its format is not checked: %(name)s") % {"name": kind})

    def write_choice(self, key: str, data: Json, question: Question) -> None:
        selector, changes = string(data.get("Selector")), question.changes
        entries = self.entries(data, "Choice")
        if mapping(data.get("DynamicChoices")) and not entries:
            self.refuse(question, _("its options come from other answers"))
            return
        options = self.options(data, entries, question.place)
        if options is None:
            self.refuse(question, _("its options are not taken over"))
            return
        is_many = selector in MANY
        command = "select_multiple" if is_many else "select_one"
        question.type = f"{command} {options.name}"
        looks = {"DL": "minimal", "SB": "minimal", "SAHR": "horizontal"}
        looks |= {"MAHR": "horizontal", "NPS": "likert"}
        question.cells["appearance"] = looks.get(selector, "")
        mixed = mapping(data.get("Randomization")).get("Type")
        if mixed == "All":
            question.cells["parameters"] = "randomize=true"
        elif mixed and mixed != "None":
            changes.append(_("options keep their order"))
        variable = self.logic.variables[key]
        chosen = [
            variable.values[choice]
            for choice, value in mapping(data.get("DefaultChoices")).items()
            if choice in variable.values and mapping(value).get("Selected")
        ]
        question.cells["default"] = " ".join(chosen if is_many else chosen[:1])
        if any(entry.json.get("ExclusiveAnswer") for entry in entries) and is_many:
            changes.append(_("an option that excludes the others does not"))
        if any(entry.json.get("Image") for entry in entries):
            changes.append(_("pictures, sound and video are not shown"))
        if not self.out.ask(question):
            return
        for entry in entries:
            if string(entry.json.get("TextEntry")).lower() in ("true", "on"):
                value = variable.values[entry.id]
                self.out.other_text(question, value, self.piped(entry.texts))

    def close(self, question: Question, rows: int) -> None:
        self.out.end()
        reason = "; ".join(dict.fromkeys(question.changes))
        if not rows:
            self.refuse(question, _("it has no rows"))
        else:
            self.note(
                question.place, question.shown, outcome_of(question.changes), reason
            )

    def write_matrix(self, key: str, data: Json, question: Question) -> None:
        columns, rows = self.entries(data, "Answer"), self.entries(data, "Choice")
        if mapping(data.get("DynamicChoices")) and not rows:
            self.refuse(question, _("its options come from other answers"))
            return
        options = self.options(data, columns, question.place)
        if options is None:
            self.refuse(question, _("its options are not taken over"))
            return
        kind = string(data.get("SubSelector"))
        if kind not in ("SingleAnswer", "MultipleAnswer", "DL", ""):
            question.changes.append(
                _("shown as a grid, not as %(name)s") % {"name": kind}
            )
        if string(data.get("Selector")) == "Bipolar":
            question.changes.append(_("a scale between two words is a grid"))
        if mapping(data.get("Randomization")).get("Type") not in (None, "None"):
            question.changes.append(_("rows keep their order"))
        command = "select_multiple" if kind == "MultipleAnswer" else "select_one"
        self.out.begin_grid(question, "table-list")
        for row in rows:
            place = f"{question.place}_{row.id}"
            name = self.names[f"{key}/{row.id}"]
            cells = self.cells_of_row(row, question, place)
            self.out.ask(
                Question(
                    question.place,
                    name,
                    f"{command} {options.name}",
                    self.piped(row.texts),
                    cells=cells,
                    is_part=True,
                    shown=shown_text(row.texts) or place,
                )
            )
            if string(row.json.get("TextEntry")).lower() in ("true", "on"):
                question.changes.append(_("a row has a text field, which is dropped"))
        self.close(question, len(rows))

    def cells_of_row(self, row: Entry, question: Question, place: str) -> Cells:
        cells = {
            header: question.cells[header]
            for header in ("required", "constraint")
            if header in question.cells
        }
        return cells | {"relevant": self.rule(place, row.json.get("DisplayLogic"))}

    def write_side_by_side(self, key: str, data: Json, question: Question) -> None:
        columns = mapping(data.get("AdditionalQuestions"))
        rows = self.entries(data, "Choice")
        if not columns:
            self.refuse(question, _("it has no rows"))
            return
        changes = [
            *question.changes,
            _("columns side by side are grids one below another"),
        ]
        for number, column in columns.items():
            inner = self.side(data, number, mapping(column))
            changed = changes + self.losses(inner)
            texts = self.text_of(inner)
            label = {
                language: "<br>".join(filter(None, [text, texts.get(language, "")]))
                for language, text in question.label.items()
            }
            part = Question(
                question.place,
                "",
                "text",
                label,
                cells=dict(question.cells),
                changes=changed,
                shown=f"{question.shown} – {shown_text(texts, 60)}",
            )
            part.place = f"{question.place}#{number}"
            self.validation(inner, part)
            if string(inner.get("QuestionType")) == "TE" or not inner.get("Answers"):
                inner["Answers"] = inner.get("Answers") or {"1": {"Display": ""}}
                self.write_text_matrix(inner, part)
            else:
                self.write_matrix(f"{key}#{number}", inner, part)
        if not rows:
            self.refuse(question, _("it has no rows"))

    def write_text_matrix(self, data: Json, question: Question) -> None:
        rows, columns = self.entries(data, "Choice"), self.entries(data, "Answer")
        question.changes.append(_("the cells of a table are asked one below another"))
        type_ = "decimal" if data.get("Selector") == "CS" else question.type
        self.refuse_option_rules(columns, question.place)
        self.out.begin_grid(question, "")
        count = 0
        for row in rows:
            cells = self.cells_of_row(row, question, f"{question.place}_{row.id}")
            for column in columns:
                name = self.out.names.name_for(f"{question.place}_{row.id}_{column.id}")
                languages = dict.fromkeys([*row.texts, *column.texts])
                label = {
                    language: " – ".join(
                        filter(
                            None, [row.texts.get(language), column.texts.get(language)]
                        )
                    )
                    for language in languages
                }
                count += self.out.ask(
                    Question(
                        question.place,
                        name,
                        type_,
                        self.piped(label),
                        cells=dict(cells),
                        is_part=True,
                        shown=shown_text(label) or name,
                    )
                )
        self.close(question, count)

    def write_fields(self, key: str, data: Json, question: Question) -> None:
        """Ask a form, sliders, or numbers with a sum, field by field."""
        kind, cells = string(data.get("QuestionType")), {}
        type_ = {"TE": question.type, "CS": "decimal"}.get(kind, "range")
        setup = mapping(data.get("Configuration"))
        if kind == "CS":
            reason = _("a rule about several questions")
            self.note(question.place, _("the sum"), "refused", reason, "rule")
        elif kind == "Slider":
            low, high = (
                string(setup.get("CSSliderMin")),
                string(setup.get("CSSliderMax")),
            )
            if data.get("Selector") == "STAR":
                low, high = "0", string(setup.get("StarCount")) or "5"
            valid = NUMBER.fullmatch(low) and NUMBER.fullmatch(high)
            if not valid or float(low) >= float(high):
                low, high = "0", "100"
            decimals = string(setup.get("NumDecimals"))
            step = {"1": "0.1", "2": "0.01"}.get(decimals, "1")
            cells["parameters"] = f"start={low} end={high} step={step}"
            if labels := mapping(data.get("Labels")):
                words = ", ".join(
                    plain_text(string(mapping(label).get("Display")))[0]
                    for label in labels.values()
                )
                reason = _("words at the slider are dropped: %(words)s")
                question.changes.append(reason % {"words": words[:200]})
        self.out.begin_grid(question, "")
        count = 0
        for choice in self.entries(data, "Choice"):
            name = self.names[f"{key}/{choice.id}"]
            rules = self.cells_of_row(choice, question, f"{question.place}_{choice.id}")
            count += self.out.ask(
                Question(
                    question.place,
                    name,
                    type_,
                    self.piped(choice.texts),
                    cells={**cells, **rules},
                    is_part=True,
                    shown=shown_text(choice.texts) or name,
                )
            )
        self.close(question, count)
