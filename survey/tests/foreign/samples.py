"""Small questionnaires of other programs, as those programs write them."""

from __future__ import annotations

import json
from typing import Any
from xml.sax.saxutils import escape

Rows = list[dict[str, str]]


def lss(**tables: Rows) -> bytes:
    """Write an .lss file with these tables."""
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>\n<document>',
        "<LimeSurveyDocType>Survey</LimeSurveyDocType><DBVersion>178</DBVersion>",
    ]
    for table, rows in tables.items():
        cells = "".join(
            "<row>"
            + "".join(f"<{key}>{escape(text)}</{key}>" for key, text in row.items())
            + "</row>"
            for row in rows
        )
        parts.append(f"<{table}><rows>{cells}</rows></{table}>")
    return "\n".join([*parts, "</document>"]).encode()


def lime_question(
    qid: str, type_: str, title: str, text: str, **more: str
) -> dict[str, str]:
    row = {
        "qid": qid,
        "parent_qid": "0",
        "gid": "7",
        "type": type_,
        "title": title,
        "question": text,
        "question_order": qid,
        "language": "en",
    }
    return {**row, **more}


def school_lss() -> bytes:
    """Return a survey of two languages with a grid, choices and conditions."""
    questions = [
        lime_question("1", "L", "pet", "Do you have a <b>pet</b>?", other="Y"),
        lime_question("2", "N", "many", "How many?", relevance='pet.NAOK == "A1"'),
        lime_question("3", "F", "mood", "How do you feel?", mandatory="Y"),
        lime_question("4", "R", "rank", "Rank the pets"),
        lime_question("5", "M", "food", "What do they eat?"),
        lime_question("6", "T", "why", "Why?", relevance="rand(1, 2) == 1"),
        lime_question("7", "S", "hay", "Hay?", relevance='food_HAY.NAOK == "Y"'),
    ]
    spanish = {"1": "¿Tienes una mascota?", "2": "¿Cuántas?"}
    translated = [
        {**question, "language": "es", "question": spanish[question["qid"]]}
        for question in questions
        if question["qid"] in spanish
    ]
    rows = [
        ("31", "3", "S1", "At home"),
        ("32", "3", "S2", "At school"),
        ("51", "5", "HAY", "Hay"),
        ("52", "5", "OATS", "Oats"),
    ]
    answers = [
        ("1", "A1", "Yes"),
        ("1", "A2", "No"),
        ("3", "1", "Bad"),
        ("3", "2", "Good"),
    ]
    return lss(
        surveys=[{"sid": "99", "language": "en", "additional_languages": "es"}],
        surveys_languagesettings=[
            {
                "surveyls_language": "en",
                "surveyls_title": "Pets",
                "surveyls_welcometext": "<p>Hello.</p><p>Please answer.</p>",
                "surveyls_endtext": "Thank you",
            }
        ],
        groups=[
            {"gid": "7", "group_name": "Animals", "group_order": "0", "language": "en"}
        ],
        questions=questions + translated,
        subquestions=[
            lime_question(qid, "T", code, text, parent_qid=parent)
            for qid, parent, code, text in rows
        ],
        answers=[
            {
                "qid": qid,
                "code": code,
                "answer": text,
                "language": "en",
                "scale_id": "0",
            }
            for qid, code, text in answers
        ],
        question_attributes=[
            {"qid": "2", "attribute": "max_num_value_n", "value": "20"},
            {"qid": "5", "attribute": "max_answers", "value": "2"},
        ],
    )


TSV_HEADERS = ["class", "type/scale", "name", "relevance"]
TSV_HEADERS += ["text", "help", "language", "mandatory"]


def tsv(rows: list[list[str]]) -> bytes:
    lines = ["\t".join(cells) for cells in [TSV_HEADERS, *rows]]
    return ("\ufeff" + "\r\n".join(lines)).encode()


def school_tsv() -> bytes:
    return tsv(
        [
            ["S", "", "language", "", "en"],
            ["SL", "", "surveyls_title", "", "Pets", "", "en"],
            ["G", "G0", "Animals", "1", "", "", "en"],
            ["Q", "L", "pet", "1", "Do you have a pet?", "", "en", "Y"],
            ["A", "0", "A1", "", "Yes", "", "en"],
            ["A", "0", "A2", "", "No", "", "en"],
            ["Q", "S", "name", 'pet.NAOK == "A1"', "Its name?", "", "en", "N"],
        ]
    )


def qsf_question(
    qid: str, tag: str, kind: str, selector: str, text: str, **more: Any
) -> Any:
    payload = {
        "QuestionID": qid,
        "DataExportTag": tag,
        "QuestionType": kind,
        "Selector": selector,
        "QuestionText": text,
        **more,
    }
    return {"Element": "SQ", "PrimaryAttribute": qid, "Payload": payload}


def choices(*labels: str) -> dict[str, dict[str, str]]:
    return {str(n): {"Display": label} for n, label in enumerate(labels, start=1)}


def selected(qid: str, choice: str, **more: str) -> dict[str, str]:
    locator = f"q://{qid}/SelectableChoice/{choice}"
    return {
        "LogicType": "Question",
        "QuestionID": qid,
        "LeftOperand": locator,
        "Operator": "Selected",
        "Description": f"If {qid} {choice} Is Selected",
        **more,
    }


def logic(*expressions: dict[str, str]) -> dict[str, Any]:
    group = {str(n): expression for n, expression in enumerate(expressions)}
    return {"0": {**group, "Type": "If"}, "Type": "BooleanExpression"}


def qsf(questions: list[Any], flow: list[Any] | None = None, **more: Any) -> bytes:
    ids = [question["PrimaryAttribute"] for question in questions]
    block = {
        "Type": "Default",
        "ID": "BL_1",
        "Description": "Animals",
        "BlockElements": [{"Type": "Question", "QuestionID": qid} for qid in ids],
    }
    steps = flow if flow is not None else [{"Type": "Block", "ID": "BL_1"}]
    return json.dumps(
        {
            "SurveyEntry": {
                "SurveyID": "SV_1",
                "SurveyName": "Pets",
                "SurveyLanguage": "EN",
            },
            "SurveyElements": [
                {"Element": "BL", "Payload": [block, *more.get("blocks", [])]},
                {"Element": "FL", "Payload": {"Type": "Root", "Flow": steps}},
                *questions,
            ],
        }
    ).encode()


def school_qsf() -> bytes:
    required = {"Settings": {"ForceResponse": "ON", "Type": "None"}}
    number = {
        "Settings": {
            "Type": "ContentType",
            "ContentType": "ValidNumber",
            "ValidNumber": {"Min": "0", "Max": "20", "NumDecimals": "0"},
        }
    }
    return qsf(
        [
            qsf_question(
                "QID1",
                "pet",
                "MC",
                "SAVR",
                "Do you have a <b>pet</b>?",
                Choices=choices("Yes", "No"),
                RecodeValues={"1": "1", "2": "0"},
                Validation=required,
                Language={"ES": {"QuestionText": "¿Tienes una mascota?"}},
            ),
            qsf_question(
                "QID2",
                "many",
                "TE",
                "SL",
                "How many?",
                Validation=number,
                DisplayLogic=logic(selected("QID1", "1")),
            ),
            qsf_question(
                "QID3",
                "mood",
                "Matrix",
                "Likert",
                "How do you feel?",
                SubSelector="SingleAnswer",
                Choices=choices("At home", "At school"),
                Answers=choices("Bad", "Good"),
            ),
            qsf_question(
                "QID4", "rank", "RO", "DND", "Rank", Choices=choices("a", "b")
            ),
            qsf_question(
                "QID5",
                "why",
                "TE",
                "ML",
                "Why?",
                DisplayLogic=logic(
                    {"LogicType": "DeviceType", "Description": "If mobile"}
                ),
            ),
            qsf_question(
                "QID6",
                "sad",
                "TE",
                "ML",
                "Why sad, ${q://QID2/ChoiceTextEntryValue}?",
                DisplayLogic=logic(selected("QID3", "2/1")),
            ),
        ]
    )


REDCAP_HEADERS = (
    '"Variable / Field Name","Form Name","Section Header","Field Type","Field Label",'
    '"Choices, Calculations, OR Slider Labels","Field Note",'
    '"Text Validation Type OR Show Slider Number","Text Validation Min",'
    '"Text Validation Max","Identifier?","Branching Logic (Show field only if...)",'
    '"Required Field?"'
)
REDCAP_API_HEADERS = (
    "field_name,form_name,section_header,field_type,field_label,"
    "select_choices_or_calculations,field_note,"
    "text_validation_type_or_show_slider_number,text_validation_min,"
    "text_validation_max,identifier,branching_logic,required_field"
)
REDCAP_ROWS = [
    "record_id,pets,,text,Record,,,,,,,,",
    'pet,pets,Animals,yesno,"Do you have a <b>pet</b>?",,,,,,,,y',
    "many,pets,,text,How many?,,,integer,0,20,,[pet] = '1',",
    'food,pets,,checkbox,What do they eat?,"1, Hay | 2, Oats",,,,,,,',
    "hay,pets,,notes,Which hay?,,,,,,,[food(1)] = '1' and [many] > 1,",
    "photo,pets,,file,A picture,,,,,,,,",
    "odd,pets,,text,Odd?,,,,,,,\"datediff([many], 'today', 'd') > 1\",",
]


def dictionary(headers: str = REDCAP_HEADERS, rows: list[str] = REDCAP_ROWS) -> bytes:
    return "\r\n".join([headers, *rows]).encode()


def school_json() -> dict[str, Any]:
    """Return a survey of SurveyJS."""
    return {
        "title": {"default": "Pets", "es": "Mascotas"},
        "pages": [
            {
                "name": "animals",
                "elements": [
                    {
                        "type": "radiogroup",
                        "name": "pet",
                        "title": {"default": "A pet?", "es": "¿Una mascota?"},
                        "isRequired": True,
                        "choices": ["yes", {"value": "no", "text": "No"}],
                    },
                    {
                        "type": "text",
                        "name": "many",
                        "title": "How many?",
                        "inputType": "number",
                        "max": 20,
                        "visibleIf": "{pet} = 'yes'",
                    },
                    {
                        "type": "checkbox",
                        "name": "food",
                        "title": "Food?",
                        "choices": ["hay", "oats"],
                    },
                    {
                        "type": "comment",
                        "name": "hay",
                        "title": "Why, {many}?",
                        "visibleIf": "{food} contains 'hay' and {many} > 1",
                    },
                    {
                        "type": "matrix",
                        "name": "mood",
                        "title": "How do you feel?",
                        "columns": ["bad", "good"],
                        "rows": ["home", "school"],
                    },
                    {"type": "ranking", "name": "rank", "choices": ["a", "b"]},
                    {
                        "type": "text",
                        "name": "odd",
                        "title": "Odd?",
                        "visibleIf": "isOdd({many})",
                    },
                ],
            }
        ],
    }
