from __future__ import annotations

import copy
import json
import re
import shutil
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test.signals import template_rendered

from survey.taking import messages, rendering
from survey.taking.rendering import outline, render_page

AGREE = ["Strongly disagree", "Disagree", "Agree", "Strongly agree"]
ACUERDO = ["Muy en desacuerdo", "En desacuerdo", "De acuerdo", "Muy de acuerdo"]
GAADI = ["أعارض بشدة", "أعارض", "أوافق", "أوافق بشدة"]
SUBJECTS = [
    ("art", "Art and music", "Arte y música", "الفن والموسيقى"),
    ("sport", "Sport", "Deporte", "الرياضة"),
    ("maths", "Mathematics", "Matemáticas", "الرياضيات"),
    ("other", "Something else", "Otra cosa", "شيء آخر"),
]


def texts(english: str, spanish: str = "", arabic: str = "") -> dict[str, str]:
    given = {"en": english, "es": spanish, "ar": arabic}
    return {code: text for code, text in given.items() if text}


def option(value: str, *labels: str, **attributes: str) -> dict[str, Any]:
    return {"value": value, "label": texts(*labels), "attributes": attributes}


# (name, blocks, items) of each page.
PAGES: list[tuple[str, list[dict[str, Any]], dict[str, dict[str, Any]]]] = [
    (
        "about_you",
        [{"label": {}, "grid": False}],
        {
            "welcome": {
                "kind": "note",
                "label": texts(
                    "This survey asks about your school.\nThere are no wrong "
                    "answers, and nobody at school sees what you say.",
                    "Esta encuesta pregunta por tu escuela.\nNo hay respuestas "
                    "equivocadas y nadie de la escuela ve lo que dices.",
                    "هذا الاستبيان عن مدرستك.\nلا توجد إجابات خاطئة، ولا أحد في "
                    "المدرسة يرى ما تقوله.",
                ),
            },
            "nickname": {
                "kind": "text",
                "label": texts(
                    "What should we call you?",
                    "¿Cómo quieres que te llamemos?",
                    "ما الاسم الذي تحب أن نناديك به؟",
                ),
                "hint": texts(
                    "A made-up name is fine.",
                    "Puede ser un nombre inventado.",
                    "يمكنك استخدام اسم من خيالك.",
                ),
                "guidance": texts(
                    "The name is only used on the pages of this survey.",
                    "El nombre solo se usa en las páginas de esta encuesta.",
                    "لا يُستخدم الاسم إلا في صفحات هذا الاستبيان.",
                ),
            },
            "grade": {
                "kind": "select_one",
                "option_set": "grades",
                "required": True,
                "required_message": texts("Please choose your grade."),
                "label": texts(
                    "Hello ${nickname}, which grade are you in?",
                    "Hola, ${nickname}. ¿En qué grado estás?",
                    "مرحبًا ${nickname}، في أي صف أنت؟",
                ),
            },
            "safe": {
                "kind": "select_one",
                "option_set": "agree",
                "appearance": ["likert"],
                "label": texts(
                    "I feel safe on my way to school.",
                    "Me siento seguro de camino a la escuela.",
                    "أشعر بالأمان في طريقي إلى المدرسة.",
                ),
            },
        },
    ),
    (
        "belonging",
        [
            {
                "label": texts(
                    "How much do you agree with each of these?",
                    "¿Qué tan de acuerdo estás con cada frase?",
                    "إلى أي درجة توافق على كل من هذه الجمل؟",
                ),
                "grid": True,
            }
        ],
        {
            "listened": {
                "kind": "select_one",
                "option_set": "agree",
                "label": texts(
                    "Adults at my school listen when I have something to say.",
                    "Los adultos de mi escuela me escuchan cuando quiero decir algo.",
                    "يستمع الكبار في مدرستي عندما يكون لدي ما أقوله.",
                ),
            },
            "friends": {
                "kind": "select_one",
                "option_set": "agree",
                "required": True,
                "hint": texts("Friends in other classes count, too."),
                "label": texts(
                    "I have friends at school.",
                    "Tengo amigos en la escuela.",
                    "لدي أصدقاء في المدرسة.",
                ),
            },
            "belong": {
                "kind": "select_one",
                "option_set": "agree",
                "label": texts(
                    "I feel that I belong here.",
                    "Siento que este es mi lugar.",
                    "أشعر بأنني أنتمي إلى هذا المكان.",
                ),
            },
        },
    ),
    (
        "days",
        [{"label": texts("Your days", "Tus días", "أيامك"), "grid": False}],
        {
            "subjects": {
                "kind": "select_multiple",
                "option_set": "subjects",
                "randomize": True,
                "hint": texts(
                    "You can choose more than one.",
                    "Puedes elegir más de una.",
                    "يمكنك اختيار أكثر من إجابة.",
                ),
                "label": texts(
                    "Which lessons do you look forward to?",
                    "¿Qué clases esperas con ganas?",
                    "ما الدروس التي تنتظرها بشوق؟",
                ),
            },
            "subjects_other": {
                "kind": "text",
                "relevant": ["selected", ["$", "subjects"], "other"],
                "label": texts("What else?", "¿Qué más?", "ماذا أيضًا؟"),
                "local": ["relevant"],
            },
            "school": {
                "kind": "select_one",
                "option_set": "schools",
                "appearance": ["minimal"],
                "choice_filter": ["=", ["col", "region"], ["$", "grade"]],
                "label": texts(
                    "Which club do you go to?",
                    "¿A qué club vas?",
                    "إلى أي نادٍ تذهب؟",
                ),
            },
            "minutes": {
                "kind": "integer",
                "constraint": ["<", ["$", "minutes"], 300],
                "constraint_message": texts(
                    "Less than 300 minutes, please.",
                    "Menos de 300 minutos, por favor.",
                    "أقل من 300 دقيقة من فضلك.",
                ),
                "label": texts(
                    "How many minutes does your way to school take?",
                    "¿Cuántos minutos tardas en llegar a la escuela?",
                    "كم دقيقة يستغرق طريقك إلى المدرسة؟",
                ),
                "local": ["constraint"],
            },
            "distance": {
                "kind": "decimal",
                "required": [">", ["$", "minutes"], 60],
                "label": texts(
                    "How many miles is it?",
                    "¿Cuántas millas son?",
                    "كم ميلًا تبلغ المسافة؟",
                ),
            },
        },
    ),
    (
        "more",
        [{"label": {}, "grid": False}],
        {
            "mood": {
                "kind": "range",
                "range": {"start": "0", "end": "10", "step": "1"},
                "label": texts(
                    "How was this week, from 0 to 10?",
                    "¿Cómo fue esta semana, de 0 a 10?",
                    "كيف كان هذا الأسبوع من 0 إلى 10؟",
                ),
            },
            "born": {
                "kind": "date",
                "label": texts(
                    "When did you come to this school?",
                    "¿Cuándo llegaste a esta escuela?",
                    "متى جئت إلى هذه المدرسة؟",
                ),
            },
            "wakes": {
                "kind": "time",
                "label": texts(
                    "When do you wake up?",
                    "¿A qué hora te despiertas?",
                    "متى تستيقظ؟",
                ),
            },
            "trip": {
                "kind": "datetime",
                "label": texts(
                    "When was your last school trip?",
                    "¿Cuándo fue tu última excursión?",
                    "متى كانت آخر رحلة مدرسية لك؟",
                ),
            },
            "wish": {
                "kind": "text",
                "appearance": ["multiline"],
                "label": texts(
                    "What would make your school better?",
                    "¿Qué haría mejor tu escuela?",
                    "ما الذي يجعل مدرستك أفضل؟",
                ),
            },
            "fixed": {
                "kind": "text",
                "read_only": True,
                "default": "Lincoln",
                "label": texts("Your school", "Tu escuela", "مدرستك"),
            },
            "promise": {
                "kind": "acknowledge",
                "label": texts(
                    "I answered for myself.",
                    "Respondí por mí mismo.",
                    "أجبت بنفسي.",
                ),
            },
            "total": {
                "kind": "calculate",
                "calculation": ["+", ["$", "minutes"], 1],
            },
            "source": {"kind": "hidden", "default": "card"},
        },
    ),
    (
        "likely",
        [
            {
                "label": texts(
                    "How likely is each of these, from 0 to 10?",
                    "¿Qué tan probable es cada cosa, de 0 a 10?",
                    "ما مدى احتمال كل من هذه من 0 إلى 10؟",
                ),
                "grid": True,
            },
        ],
        {
            f"likely_{n}": {
                "kind": "select_one",
                "option_set": "eleven",
                "label": texts(*labels),
            }
            for n, labels in enumerate(
                [
                    (
                        "I would tell a friend to come here.",
                        "Diría a un amigo que venga aquí.",
                        "سأنصح صديقًا بالمجيء إلى هنا.",
                    ),
                    (
                        "I will be here next year.",
                        "Estaré aquí el próximo año.",
                        "سأكون هنا في العام القادم.",
                    ),
                ]
            )
        },
    ),
]


def every_kind() -> dict[str, Any]:
    """Return a compiled definition with every kind of item."""
    items: dict[str, Any] = {}
    pages = []
    titles = [
        texts("About you", "Sobre ti", "عنك"),
        texts("Belonging", "Pertenencia", "الانتماء"),
        {},
        texts("A few more things", "Algunas cosas más", "أشياء أخرى"),
        texts("What comes next"),
    ]
    for page, ((name, page_blocks, page_items), title) in enumerate(
        zip(copy.deepcopy(PAGES), titles, strict=True), start=1
    ):
        for item_name, item in page_items.items():
            items[item_name] = {"id": len(items) + 1, "page": page, **item}
        pages.append(
            {
                "name": name,
                "title": title,
                "blocks": [{**page_blocks[0], "items": list(page_items)}],
            }
        )
    return {
        "format": 1,
        "name": "climate_students",
        "version": "1",
        "title": texts("Our school", "Nuestra escuela", "مدرستنا"),
        "languages": [
            {"code": "en", "name": "English", "direction": "ltr"},
            {"code": "es", "name": "Español", "direction": "ltr"},
            {"code": "ar", "name": "العربية", "direction": "rtl"},
        ],
        "option_sets": {
            "agree": [
                option(str(n), *labels)
                for n, labels in enumerate(
                    zip(AGREE, ACUERDO, GAADI, strict=True), start=1
                )
            ],
            "grades": [option(str(n), f"{n}", f"{n}", f"{n}") for n in range(4, 8)],
            "subjects": [option(*subject) for subject in SUBJECTS],
            "schools": [
                option("chess", "Chess", "Ajedrez", "الشطرنج", region="4"),
                option("choir", "Choir", "Coro", "الكورال", region="5"),
            ],
            "eleven": [option(str(n), str(n), str(n), str(n)) for n in range(11)],
        },
        "pages": pages,
        "items": items,
        "order": list(items),
    }


class Elements(HTMLParser):
    """The elements of a page, in order, with their attributes and texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += [data.strip()] if data.strip() else []

    def all(self, tag: str = "", **wanted: str) -> list[dict[str, str | None]]:
        return [
            attributes
            for name, attributes in self.elements
            if tag in ("", name)
            and all(attributes.get(key) == value for key, value in wanted.items())
        ]


@pytest.fixture
def definition() -> dict[str, Any]:
    return every_kind()


@pytest.fixture
def rendered() -> Iterator[set[str]]:
    """Record the names of the templates that are rendered."""
    names: set[str] = set()

    def note(sender: Any, template: Any, **_: Any) -> None:
        names.add(template.name)

    template_rendered.connect(note)
    yield names
    template_rendered.disconnect(note)


def page_of(definition: dict[str, Any], item: str, language: str = "en") -> str:
    return render_page(definition, language, definition["items"][item]["page"])


def test_every_control_has_an_accessible_name(definition):
    shown = {}
    for n in range(1, 6):
        page = Elements(render_page(definition, "en", n))
        ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
        assert len(ids) == len(set(ids))
        for item in page.all(**{}):
            if "data-item" not in item:
                continue
            name = item["data-item"]
            shown[name] = item["data-kind"]
            assert item["id"] == f"item-{name}"
        for _, attrs in page.elements:
            for pointer in ("for", "aria-labelledby", "aria-describedby"):
                for target in (attrs.get(pointer) or "").split():
                    assert target in ids, (target, attrs)
    assert shown == {
        name: item["kind"]
        for name, item in definition["items"].items()
        if item["kind"] not in ("calculate", "hidden")
    }


@pytest.mark.parametrize(
    ("item", "tag", "attributes"),
    [
        ("nickname", "input", {"type": "text", "maxlength": "5000"}),
        ("wish", "textarea", {"maxlength": "5000"}),
        ("minutes", "input", {"type": "text", "inputmode": "numeric"}),
        ("distance", "input", {"type": "text", "inputmode": "decimal"}),
        ("mood", "input", {"type": "range", "min": "0", "max": "10", "step": "1"}),
        ("born", "input", {"type": "date"}),
        ("wakes", "input", {"type": "time"}),
        ("trip", "input", {"type": "datetime-local"}),
        ("school", "select", {}),
        ("grade", "input", {"type": "radio", "value": "7"}),
        ("subjects", "input", {"type": "checkbox", "value": "sport"}),
        ("promise", "input", {"type": "checkbox", "value": "OK"}),
    ],
)
def test_each_kind_has_its_input(definition, item, tag, attributes):
    page = Elements(page_of(definition, item))
    assert page.all(tag, name=item, **attributes)


def test_single_inputs_have_a_label_and_groups_a_legend(definition):
    for n in range(1, 6):
        page = Elements(render_page(definition, "en", n))
        labelled = {attrs["for"] for attrs in page.all("label") if "for" in attrs}
        for _, attrs in page.elements:
            if (attrs.get("id") or "").endswith("-input"):
                assert attrs["id"] in labelled
        assert len(page.all("fieldset")) == len(page.all("legend"))


def test_radios_and_checkboxes_of_an_item_are_in_one_fieldset(definition):
    html = page_of(definition, "grade")
    fieldset = re.search(r'<fieldset[^>]*data-item="grade".*?</fieldset>', html, re.S)
    assert fieldset
    assert fieldset[0].count('type="radio"') == 4
    assert html.count('name="grade"') == 4


def test_grid_rows_are_radio_groups_and_columns_are_hidden_from_screen_readers(
    definition,
):
    page = Elements(page_of(definition, "listened"))
    (grid,) = page.all("div", role="group")
    (stem,) = page.all("p", id=grid["aria-labelledby"])
    assert stem["class"] == "stem"
    assert grid["class"] == "grid table cols-4"
    assert page.all("div", **{"class": "grid-head", "aria-hidden": "true"})
    assert len(page.all("fieldset", role="radiogroup")) == 3
    for label in AGREE:
        # Once in the head, and once at each radio button.
        assert page.words.count(label) == 4


@pytest.mark.parametrize(
    ("labels", "is_long"),
    [
        (["Never", "Rarely", "Sometimes", "Often", "Almost always"], False),
        (["Muy insatisfecho", "Insatisfecho", "Satisfecho"], False),
        (["Muy insatisfecho", "Insatisfecho", "Satisfecho", "Muy satisfecho"], True),
        ([f"{n}" for n in range(10)], False),
    ],
)
def test_a_scale_of_long_words_is_marked_for_phones(definition, labels, is_long):
    options = [option(str(n), label) for n, label in enumerate(labels)]
    definition["option_sets"]["agree"][:] = options
    (grid,) = Elements(page_of(definition, "listened")).all("div", role="group")
    assert ("long-words" in grid["class"].split()) == is_long


@pytest.mark.parametrize(
    "spoil",
    [
        lambda items, sets: items["belong"].update(randomize=True),
        lambda items, sets: items["belong"].update(option_set="grades"),
        lambda items, sets: sets["agree"].extend(
            option(str(n), str(n)) for n in range(5, 14)
        ),
    ],
    ids=["shuffled", "other options", "too many options"],
)
def test_a_grid_without_common_options_is_shown_as_cards(definition, spoil):
    assert "grid-head" in page_of(definition, "belong")
    spoil(definition["items"], definition["option_sets"])
    html = page_of(definition, "belong")
    assert "grid-head" not in html
    assert html.count('role="radiogroup"') == 3


def test_texts_are_escaped(definition):
    evil = "<script>alert(\"x\")</script> & 'more'"
    definition["items"]["nickname"].update(
        label=texts(evil), hint=texts(evil), guidance=texts(evil)
    )
    definition["option_sets"]["grades"].append(option('"><b>', evil))
    definition["pages"][0]["title"] = texts(evil)
    html = page_of(definition, "nickname")
    assert "<script" not in html
    assert "<b>" not in html
    assert html.count("&lt;script&gt;") == 5
    assert evil in Elements(html).words
    assert Elements(html).all("input", value='"><b>')


def test_line_breaks_are_kept(definition):
    assert "your school.<br>There are no wrong" in page_of(definition, "welcome")


def test_piped_answers_are_left_for_the_browser(definition):
    html = page_of(definition, "grade")
    assert 'Hello <span class="pipe" data-pipe="nickname"></span>,' in html
    assert "${" not in html


def test_a_piped_name_cannot_break_out_of_its_attribute(definition):
    definition["items"]["grade"]["label"] = texts('${a"onclick="b}')
    page = Elements(page_of(definition, "grade"))
    assert page.all("span", **{"data-pipe": 'a"onclick="b'})
    assert not any("onclick" in attrs for _, attrs in page.elements)


def test_labels_of_options_leave_piped_answers_for_the_browser(definition):
    definition["option_sets"]["agree"][0]["label"] = texts("Like <b>${nickname}</b>")
    html = page_of(definition, "listened")
    place = '<span class="pipe" data-pipe="nickname"></span>'
    rows = re.findall(r'type="radio" name="\w+" value="1"', html)
    # Once in each row, and once in the head of the grid.
    assert html.count(f"Like &lt;b&gt;{place}&lt;/b&gt;") == len(rows) + 1 > 2
    assert "${" not in html
    sets = outline(definition, "en")["option_sets"]
    assert sets["agree"][0]["label"] == "Like <b>${nickname}</b>"


def test_an_arabic_page_is_right_to_left(definition):
    page = Elements(page_of(definition, "nickname", "ar"))
    (section,) = page.all("section")
    assert (section["lang"], section["dir"]) == ("ar", "rtl")
    assert "ما الاسم الذي تحب أن نناديك به؟" in page.words


def test_an_untranslated_text_is_marked_with_its_language(definition):
    page = Elements(page_of(definition, "friends", "ar"))
    (hint,) = page.all(id="friends-hint")
    assert (hint["lang"], hint["dir"]) == ("en", "ltr")
    (label,) = page.all(id="friends-label")
    assert "lang" not in label
    assert "Friends in other classes count, too." in page.words


def test_messages_fall_back_to_english_and_are_marked(definition):
    definition["languages"].append(
        {"code": "so", "name": "Soomaali", "direction": "ltr"}
    )
    page = Elements(page_of(definition, "friends", "so"))
    (mark,) = page.all("span", **{"class": "required-mark"})
    assert mark["lang"] == "en"
    assert messages.messages_in("en")["required_mark"] in page.words
    (mark,) = Elements(page_of(definition, "friends", "es")).all(
        "span", **{"class": "required-mark"}
    )
    assert "lang" not in mark


def test_a_page_without_a_title_is_called_by_its_number(definition):
    assert "Page 3" in Elements(render_page(definition, "en", 3)).words
    assert "Página 3" in Elements(render_page(definition, "es", 3)).words


def test_required_items_are_marked_and_conditional_ones_are_hidden(definition):
    (grade,) = Elements(page_of(definition, "grade")).all("fieldset", id="item-grade")
    assert grade["aria-required"] == "true"
    mark = r'required-mark"( hidden)?>'
    assert re.search(mark, page_of(definition, "grade"))[1] is None
    assert re.search(mark, page_of(definition, "distance"))[1] == " hidden"
    assert not re.search(mark, render_page(definition, "en", 4))


def test_hints_and_errors_describe_their_input(definition):
    (nickname,) = Elements(page_of(definition, "nickname")).all(id="nickname-input")
    assert nickname["aria-describedby"] == "nickname-hint nickname-error"
    (subjects,) = Elements(page_of(definition, "subjects")).all(id="item-subjects")
    assert subjects["aria-describedby"] == "subjects-hint subjects-error"


def test_a_multiple_choice_says_so_unless_it_has_a_hint(definition):
    choose_any = messages.messages_in("en")["choose_any"]
    assert choose_any not in Elements(page_of(definition, "subjects")).words
    del definition["items"]["subjects"]["hint"]
    page = Elements(page_of(definition, "subjects"))
    assert choose_any in page.words
    (subjects,) = page.all(id="item-subjects")
    assert subjects["aria-describedby"] == "subjects-how subjects-error"


def test_read_only_items_cannot_be_changed(definition):
    (fixed,) = Elements(page_of(definition, "fixed")).all(id="fixed-input")
    assert "readonly" in fixed
    definition["items"]["grade"]["read_only"] = True
    (grade,) = Elements(page_of(definition, "grade")).all(id="item-grade")
    assert "disabled" in grade


def test_a_range_starts_unanswered_and_can_be_cleared(definition):
    html = page_of(definition, "mood")
    (slider,) = Elements(html).all("input", type="range")
    assert "untouched" in slider["class"].split()
    assert slider["aria-valuetext"] == messages.messages_in("en")["not_answered"]
    assert re.search(r'<button type="button" class="clear".* hidden', html)


def test_a_long_list_is_a_menu_unless_something_is_piped_into_it(definition):
    many = [option(str(n), f"Town {n}") for n in range(40)]
    definition["option_sets"]["grades"] = many
    assert Elements(page_of(definition, "grade")).all("select", name="grade")
    many[3]["label"] = texts("Like ${nickname}")
    assert not Elements(page_of(definition, "grade")).all("select", name="grade")
    assert 'data-pipe="nickname"' in page_of(definition, "grade")


def test_an_unknown_page_or_language_is_an_error(definition):
    with pytest.raises(KeyError):
        render_page(definition, "fr", 1)
    with pytest.raises(KeyError):
        outline(definition, "fr")
    for n in (-1, 0, 6):
        with pytest.raises(IndexError):
            render_page(definition, "en", n)


def test_the_renderer_digest_covers_every_template_of_a_page(definition, rendered):
    """A change of an unlisted template would not change the address."""
    for n in range(1, 6):
        render_page(definition, "en", n)
    assert rendered == set(rendering.PAGE_TEMPLATES)


def test_changing_any_source_of_a_page_changes_the_renderer(monkeypatch, tmp_path):
    before = rendering.renderer_version()
    assert before == rendering.RENDERER
    for name in rendering.PAGE_TEMPLATES:
        rest = tuple(each for each in rendering.PAGE_TEMPLATES if each != name)
        monkeypatch.setattr(rendering, "PAGE_TEMPLATES", rest)
        assert rendering.renderer_version() != before
    monkeypatch.undo()
    for attribute in ("SOURCE", "LOCALE"):
        source = getattr(messages, attribute)
        changed = tmp_path / source.name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, changed)
        for path in [changed, *changed.rglob("*.mo")]:
            if path.is_file():
                path.write_bytes(path.read_bytes() + b" ")
        monkeypatch.setattr(messages, attribute, changed)
        assert rendering.renderer_version() != before
        monkeypatch.undo()


def test_rendering_is_repeatable_and_changes_no_definition(definition):
    before = copy.deepcopy(definition)
    first = [render_page(definition, "ar", n) for n in range(1, 6)]
    assert first == [render_page(definition, "ar", n) for n in range(1, 6)]
    assert definition == before


def test_a_page_needs_neither_inline_style_nor_inline_script(definition):
    for n in range(1, 6):
        for tag, attrs in Elements(render_page(definition, "en", n)).elements:
            assert tag not in ("script", "style", "img", "link")
            assert not any(key == "style" or key.startswith("on") for key in attrs)


def test_a_page_is_rendered_in_a_few_milliseconds(definition):
    def seconds_a_page() -> float:
        start = time.process_time()
        for n in range(1, 6):
            render_page(definition, "en", n)
        return (time.process_time() - start) / 5

    # The best of several runs, because other processes slow some of them.
    assert min(seconds_a_page() for _ in range(20)) < 0.005


def test_the_outline_has_the_rules_and_texts_of_one_language(definition):
    made = json.loads(json.dumps(outline(definition, "es")))
    assert made["order"] == definition["order"]
    assert made["pages"][3] == {
        "name": "more",
        "title": "Algunas cosas más",
        "items": [
            name for name, item in definition["items"].items() if item["page"] == 4
        ],
    }
    assert made["items"]["minutes"] == {
        "page": 3,
        "kind": "integer",
        "constraint": ["<", ["$", "minutes"], 300],
        "constraint_message": "Menos de 300 minutos, por favor.",
        "local": ["constraint"],
    }
    assert made["option_sets"]["schools"][0] == {
        "value": "chess",
        "label": "Ajedrez",
        "attributes": {"region": "4"},
    }


def test_the_outline_fills_gaps_from_the_first_language(definition):
    made = outline(definition, "ar")
    assert made["items"]["grade"]["required_message"] == "Please choose your grade."
    assert made["pages"][4]["title"] == "What comes next"
    assert made["pages"][2]["title"] == ""


def test_the_outline_contains_no_row_ids(definition):
    assert any("id" in item for item in definition["items"].values())
    for item in outline(definition, "en")["items"].values():
        assert not {"id", "label", "hint", "guidance"} & set(item)
