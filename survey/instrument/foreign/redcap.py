"""Convert data dictionaries of REDCap, CSV files."""

from __future__ import annotations

import csv
import io
import re
from itertools import groupby

from django.utils.translation import gettext as _

from survey.instrument.foreign.conditions import (
    DATE,
    NUMBER,
    Grammar,
    Node,
    Parser,
    Translator,
    Untranslatable,
    Variable,
    both,
    not_here,
)
from survey.instrument.foreign.converted import Converted, UnreadableQuestionnaire
from survey.instrument.foreign.names import Taken, option_value
from survey.instrument.foreign.sheets import (
    Question,
    SheetWriter,
)
from survey.instrument.foreign.texts import Texts, quote_answers, shown_text

Row = dict[str, str]
LANGUAGE = "en"
MOST_ROWS = 20_000
# The API names the columns so, the web page in words.
HEADERS = {
    "variablefieldname": "field_name",
    "fieldname": "field_name",
    "formname": "form_name",
    "sectionheader": "section_header",
    "fieldtype": "field_type",
    "fieldlabel": "field_label",
    "choicescalculationsorsliderlabels": "choices",
    "choicesorcalculations": "choices",
    "selectchoicesorcalculations": "choices",
    "fieldnote": "field_note",
    "textvalidationtypeorshowslidernumber": "validation",
    "textvalidationtype": "validation",
    "textvalidationmin": "minimum",
    "textvalidationmax": "maximum",
    "identifier": "identifier",
    "branchinglogicshowfieldonlyif": "branching_logic",
    "branchinglogic": "branching_logic",
    "requiredfield": "required",
    "customalignment": "alignment",
    "questionnumbersurveysonly": "question_number",
    "questionnumber": "question_number",
    "matrixgroupname": "matrix_group",
    "matrixranking": "matrix_ranking",
    "fieldannotation": "annotation",
}
# How R writes a blank cell.
BLANK_OF_R = "NA"
NEEDED = ("field_name", "form_name", "field_type", "field_label")
PIPE = re.compile(r"\[([a-z]\w*)\]")
TAG = re.compile(r"@[A-Z][A-Z-]*(?:\s*=\s*(?:'[^']*'|\"[^\"]*\"|[^\s]+))?")
EMAIL = r"regex(., '[^@ ]+@[^@ ]+\.[^@ ]+')"
YES_NO: list[tuple[str, Texts]] = [("1", {LANGUAGE: "Yes"}), ("0", {LANGUAGE: "No"})]
TRUE_FALSE: list[tuple[str, Texts]] = [
    ("1", {LANGUAGE: "True"}),
    ("0", {LANGUAGE: "False"}),
]
ONE = frozenset(["radio", "dropdown", "yesno", "truefalse"])


def convert(text: str) -> Converted:
    return DictionaryConverter(read_rows(text)).convert()


def column_of(header: str) -> str:
    return HEADERS.get(
        re.sub(r"[^a-z]", "", re.sub(r"_x\w{4}_", "", header.lower())), ""
    )


def delimiter_of(line: str) -> str:
    return max(",;\t", key=line.count)


def read_rows(text: str) -> list[Row]:
    first = text.split("\n", 1)[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter_of(first))
    rows: list[Row] = []
    try:
        headers = [column_of(header) for header in next(reader, [])]
        for name in NEEDED:
            if name not in headers:
                raise UnreadableQuestionnaire(
                    _("The data dictionary of REDCap has no column %(name)s.")
                    % {"name": name}
                )
        for cells in reader:
            row = {key: cell.strip() for key, cell in zip(headers, cells, strict=False)}
            if any(row.values()):
                rows.append(row)
            if len(rows) > MOST_ROWS:
                raise UnreadableQuestionnaire(
                    _("The file has more than %(most)s rows.")
                    % {"most": f"{MOST_ROWS:,}"}
                )
    except csv.Error as error:
        raise UnreadableQuestionnaire(
            _("The file cannot be read beyond line %(line)s: %(reason)s.")
            % {"line": reader.line_num, "reason": str(error)}
        ) from error
    if any(row.get("branching_logic") == BLANK_OF_R for row in rows):
        rows = [
            {key: "" if cell == BLANK_OF_R else cell for key, cell in row.items()}
            for row in rows
        ]
    return rows


def choices_of(text: str) -> list[tuple[str, Texts]]:
    """Read `1, Yes | 0, No`."""
    choices: list[tuple[str, Texts]] = []
    for part in re.split(r"\||\\n(?=\s*\w+\s*,)", text):
        code, comma, label = part.strip().partition(",")
        if code.strip():
            words = label.strip() if comma else code.strip()
            choices.append((code.strip(), {LANGUAGE: words}))
    return choices


class BranchingLogic(Translator):
    """Translate REDCap's branching logic and simple calculations."""

    checked = frozenset(["1"])
    unchecked = frozenset(["0"])
    grammar = Grammar(
        re.compile(
            r"""(?P<space>\s+)|(?P<text>'[^']*'|"[^"]*")
            |(?P<variable>\[[^\[\]]*\](?:\[[^\[\]]*\])*)
            |(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z]\w*)
            |(?P<operator><>|!=|<=|>=|[=<>()+\-*/^,])""",
            re.VERBOSE,
        ),
        {"and": "and", "or": "or", "<>": "!=", "not": "not"},
    )

    def __init__(self) -> None:
        self.variables: dict[str, Variable] = {}

    def variable(self, text: str) -> Variable:
        match = re.fullmatch(r"\[\s*(\w+)\s*(?:\(\s*([\w.-]+)\s*\))?\s*\]", text)
        known = self.variables.get(match[1].lower()) if match else None
        if match is None:
            raise not_here(text)
        if known is None:
            raise Untranslatable(
                _("there is no question %(name)s") % {"name": match[1]}
            )
        if match[2] is None:
            return known
        value = known.values.get(match[2])
        if known.kind != "many" or value is None:
            raise Untranslatable(
                _("%(name)s has no option %(value)s")
                % {"name": known.name, "value": match[2]}
            )
        return Variable(known.name, "flag", value)

    def calculation(self, source: str) -> str:
        return self.computed(Parser(self.grammar, source).parse())

    def computed(self, node: Node) -> str:
        if node[0] == "call" and node[1].lower() == "if" and len(node[2]) == 3:
            condition, *results = node[2]
            parts = [self.truth(condition), *map(self.computed, results)]
            return f"if({', '.join(parts)})"
        if node[0] == "text" and node[1].lower() in ("", "nan"):
            return "''"
        read: dict[str, None] = {}
        written = self.value(node, read)
        if not read:
            return written
        # REDCap computes nothing before all is answered.
        answered = " and ".join(f"${{{name}}} != ''" for name in read)
        return f"if({answered}, {written}, '')"

    def value(self, node: Node, read: dict[str, None]) -> str:
        kind = node[0]
        if kind == "number" or (kind == "text" and NUMBER.fullmatch(node[1])):
            return str(node[1])
        if kind == "variable":
            variable = self.variable(node[1])
            if variable.kind == "flag":
                return f"if({self.selected(variable)}, 1, 0)"
            numbers = all(NUMBER.fullmatch(code) for code in variable.values)
            if variable.kind not in ("number", "one") or not numbers:
                raise not_here(variable.name)
            read[variable.name] = None
            return f"${{{variable.name}}}"
        if kind in ("+", "-", "*", "/"):
            left, right = self.value(node[1], read), self.value(node[2], read)
            return f"({left} {'div' if kind == '/' else kind} {right})"
        if kind == "^" and node[2][0] == "number" and node[2][1] in ("2", "3"):
            base = self.value(node[1], read)
            return f"({' * '.join([base] * int(node[2][1]))})"
        if kind == "call" and node[1].lower() == "round" and len(node[2]) == 2:
            places = node[2][1]
            if places[0] == "number":
                return f"round({self.value(node[2][0], read)}, {places[1]})"
        raise not_here(f"{node[1]}()" if kind == "call" else str(kind))


class DictionaryConverter:
    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.out = SheetWriter([LANGUAGE])
        self.note = self.out.note
        self.logic = BranchingLogic()
        self.names: list[str] = []

    def convert(self) -> Converted:
        forms = list(dict.fromkeys(row.get("form_name", "") for row in self.rows))
        title = self.title_of(forms[0]) if len(forms) == 1 else ""
        self.out.settings({LANGUAGE: title} if title else {})
        reason = _("the language is not named in the file: taken as English")
        self.note("", "English", "changed", reason, "setting")
        for row in self.rows:
            self.register(row)
        indexes = range(len(self.rows))
        for form, members in groupby(
            indexes, lambda i: self.rows[i].get("form_name", "")
        ):
            self.write_form(form, list(members))
        return self.out.converted

    def title_of(self, form: str) -> str:
        return form.replace("_", " ").strip().capitalize()

    def register(self, row: Row) -> None:
        code, kind = row.get("field_name", ""), row.get("field_type", "").lower()
        name = self.out.names.name_for(code)
        self.names.append(name)
        values: dict[str, str] = {}
        if kind in ONE or kind == "checkbox":
            used = Taken()
            values = {
                choice: option_value(choice, used)
                for choice, _label in self.choices(row)
            }
            variable = Variable(
                name, "many" if kind == "checkbox" else "one", "", values
            )
        elif kind in ("slider", "calc") or self.type_of(row) in ("integer", "decimal"):
            variable = Variable(name, "number")
        else:
            is_date = self.type_of(row) == "date"
            variable = Variable(name, "date" if is_date else "text")
        if kind not in ("descriptive", "file", "sql"):
            self.logic.variables.setdefault(code.lower(), variable)

    def choices(self, row: Row) -> list[tuple[str, Texts]]:
        kind = row.get("field_type", "").lower()
        if kind in ("yesno", "truefalse"):
            return YES_NO if kind == "yesno" else TRUE_FALSE
        return choices_of(row.get("choices", ""))

    def type_of(self, row: Row) -> str:
        kind = row.get("validation", "").lower()
        if kind in ("integer", "int"):
            return "integer"
        if kind.startswith(("number", "float")):
            return "decimal"
        if kind.startswith("datetime"):
            return "dateTime"
        if kind.startswith("date"):
            return "date"
        return "time" if kind.startswith("time") else "text"

    def piped(self, text: str) -> Texts:
        def name_of(match: re.Match[str]) -> str | None:
            variable = self.logic.variables.get(match[1])
            # Brackets around other words are text.
            if variable is None:
                return ""
            return variable.name if variable.kind in ("text", "number") else None

        return quote_answers({LANGUAGE: text}, PIPE, name_of)

    def rule(self, place: str, source: str) -> str:
        if not source:
            return ""
        return self.out.rule(place, source, lambda: self.logic.condition(source))

    def write_form(self, form: str, indexes: list[int]) -> None:
        """Write a form; each section of it is a page."""
        label = {LANGUAGE: self.title_of(form)}
        self.out.begin(form, label, name=form)
        is_open = False
        for group, members in groupby(indexes, self.matrix_of):
            rows = list(members)
            header = self.rows[rows[0]].get("section_header", "")
            heading = self.piped(header) if header else {}
            if not is_open or (header and not group):
                if is_open:
                    self.out.end()
                part = "group" if header and not group else None
                self.out.begin(
                    shown_text(heading) or form,
                    {} if group else heading,
                    "field-list",
                    name=f"{form}_page",
                    part=part,  # type: ignore[arg-type]
                )
                is_open = True
            if group:
                self.write_matrix(group, rows, heading)
                continue
            for index in rows:
                header = self.rows[index].get("section_header", "")
                if index != rows[0] and header:
                    self.out.end()
                    heading = self.piped(header)
                    self.out.begin(
                        shown_text(heading), heading, "field-list", name=f"{form}_page"
                    )
                self.write_field(index)
        if is_open:
            self.out.end()
        self.out.end()

    def matrix_of(self, index: int) -> str:
        row = self.rows[index]
        is_choice = row.get("field_type", "").lower() in ("radio", "checkbox")
        return row.get("matrix_group", "") if is_choice else ""

    def write_matrix(self, group: str, rows: list[int], heading: Texts) -> None:
        lists = {
            (self.rows[i].get("choices", ""), self.rows[i].get("field_type", ""))
            for i in rows
        }
        if len(lists) > 1:
            reason = _("its rows have different options: they are single questions")
            self.note(group, group, "changed", reason, "group")
            for index in rows:
                self.write_field(index)
            return
        self.out.begin(group, heading, "table-list", name=group)
        for index in rows:
            self.write_field(index)
        self.out.end()

    def write_field(self, index: int) -> None:
        row = self.rows[index]
        code, kind = row.get("field_name", ""), row.get("field_type", "").lower()
        changes: list[str] = []
        label = self.piped(row.get("field_label", ""))
        note = self.piped(row.get("field_note", ""))
        question = Question(
            code,
            self.names[index],
            "text",
            label,
            note,
            changes=changes,
            shown=shown_text(label) or code,
        )
        question.cells["relevant"] = self.rule(code, row.get("branching_logic", ""))
        if row.get("required", "").lower() in ("y", "yes", "1"):
            question.cells["required"] = "yes"
        if row.get("identifier", "").lower() in ("y", "yes", "1"):
            self.out.refuse_setting(code, "Identifier")
        if row.get("matrix_ranking", "").lower() in ("y", "yes", "1"):
            changes.append(_("an option may be chosen in several rows"))
        if index == 0 and kind == "text" and "id" in code.lower():
            reason = _("the record's number is not asked: people have access codes")
            self.note(code, question.shown, "refused", reason)
            return
        if self.annotation(row, question) and kind != "calc":
            reason = _("it is hidden there: nobody answers it")
            self.note(code, question.shown, "refused", reason)
        elif kind in ONE or kind == "checkbox":
            self.write_choice(row, kind, question)
        elif kind in ("text", "notes"):
            self.write_text(row, kind, question)
        elif kind == "slider":
            self.write_slider(row, question)
        elif kind == "descriptive":
            question.type, question.hint = "note", {}
            question.cells = {"relevant": question.cells["relevant"]}
            self.out.ask(question)
        elif kind == "calc":
            self.write_calculation(row, question)
        else:
            reasons = {
                "file": _("respondents cannot send files"),
                "sql": _("its options come from a database"),
            }
            reason = reasons.get(kind) or (
                _("questions of the type %(type)s are unknown") % {"type": kind[:40]}
            )
            self.note(code, question.shown, "refused", reason)

    def annotation(self, row: Row, question: Question) -> bool:
        """Read action tags; return whether the field is hidden."""
        text = row.get("annotation", "")
        if not text:
            return False
        left = []
        for match in TAG.finditer(text):
            tag, _equals, value = match[0].partition("=")
            tag, value = tag.strip(), value.strip().strip("'\"")
            if tag == "@DEFAULT" and value and "[" not in value:
                question.cells["default"] = value
            elif tag == "@READONLY":
                question.cells["read_only"] = "yes"
            elif tag == "@CHARLIMIT" and value.isdecimal():
                question.cells["constraint"] = f"string-length(.) <= {value}"
            else:
                left.append(match[0])
        if rest := TAG.sub("", text).strip():
            reason = _("notes of authors are not kept")
            self.out.refuse_setting(question.place, rest, reason)
        if left:
            reason = _("not taken over: %(names)s") % {"names": "; ".join(left)[:300]}
            question.changes.append(reason)
        return "@HIDDEN" in re.findall(r"@[A-Z-]+", text)

    def write_choice(self, row: Row, kind: str, question: Question) -> None:
        options = self.out.options(question.place, self.choices(row), question.place)
        if options is None:
            reason = _("its options are not taken over")
            self.note(question.place, question.shown, "refused", reason)
            return
        command = "select_multiple" if kind == "checkbox" else "select_one"
        question.type = f"{command} {options.name}"
        if kind == "dropdown":
            question.cells["appearance"] = "minimal"
        if default := question.cells.get("default"):
            codes = default.split(",") if kind == "checkbox" else [default]
            values = [options.values.get(code.strip(), "") for code in codes]
            question.cells["default"] = " ".join(filter(None, values))
        self.out.ask(question)

    def write_text(self, row: Row, kind: str, question: Question) -> None:
        question.type = self.type_of(row) if kind == "text" else "text"
        cells, validation = question.cells, row.get("validation", "").lower()
        if kind == "notes":
            cells["appearance"] = "multiline"
        if question.type in ("integer", "decimal", "date"):
            cells["constraint"] = self.limits(row, question)
        elif validation in ("email",):
            cells["constraint"] = both(cells.get("constraint", ""), EMAIL)
            question.changes.append(_("e-mail addresses are checked by a simpler rule"))
        elif validation and question.type == "text":
            reason = _("its format is not checked: %(name)s") % {"name": validation}
            question.changes.append(reason)
        if question.type not in ("integer", "decimal", "date"):
            for name in ("minimum", "maximum"):
                if value := row.get(name):
                    reason = not_here(name).args[0]
                    self.note(question.place, value[:200], "refused", reason, "rule")
        self.out.ask(question)

    def limits(self, row: Row, question: Question) -> str:
        limits = []
        for name, operator in (("minimum", ">="), ("maximum", "<=")):
            value = row.get(name, "")
            if question.type == "date" and DATE.fullmatch(value):
                limits.append(f". {operator} date('{value}')")
            elif question.type != "date" and NUMBER.fullmatch(value):
                limits.append(f". {operator} {value}")
            elif value == "today" and question.type == "date":
                limits.append(f". {operator} today()")
            elif value:
                reason = not_here(value).args[0]
                self.note(
                    question.place, f"{name}: {value}"[:200], "refused", reason, "rule"
                )
        return both(*limits)

    def write_slider(self, row: Row, question: Question) -> None:
        low, high = row.get("minimum") or "0", row.get("maximum") or "100"
        valid = NUMBER.fullmatch(low) and NUMBER.fullmatch(high)
        if not valid or float(low) >= float(high):
            low, high = "0", "100"
        question.type = "range"
        question.cells["parameters"] = f"start={low} end={high} step=1"
        if words := row.get("choices"):
            reason = _("words at the slider are dropped: %(words)s")
            question.changes.append(reason % {"words": words[:200]})
        self.out.ask(question)

    def write_calculation(self, row: Row, question: Question) -> None:
        source = row.get("choices", "")
        written = self.out.rule(
            question.place,
            source,
            lambda: self.logic.calculation(source),
            _("calculation"),
        )
        if not written:
            reason = _("what it computes is not taken over")
            self.note(question.place, question.shown, "refused", reason)
            return
        relevant = question.cells["relevant"]
        question.type, question.label, question.hint = "calculate", {}, {}
        question.cells = {"calculation": written, "relevant": relevant}
        question.changes.append(_("it is computed, and not shown"))
        self.out.ask(question)
