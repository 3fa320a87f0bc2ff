"""Put the questions of a survey under the themes that its measures have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from survey.instrument.definitions.scales import agreement_scales
from survey.instrument.definitions.schema import Measures, SurveyDefinition, Texts

# In addresses: a theme by its name, a page by its number, and those at the end.
OF_THEME, OF_PAGE, ABOUT = "theme.", "page.", "about"


@dataclass(slots=True)
class QuestionTheme:
    """Questions that are shown together: of a theme, of a page, or about people."""

    key: str
    # Without a text, the page has a number only; of those about people, there is none.
    label: Texts
    items: list[str] = field(default_factory=list)

    @property
    def is_about(self) -> bool:
        return self.key == ABOUT

    @property
    def page_number(self) -> str:
        return self.key.removeprefix(OF_PAGE)


def question_themes(
    definition: SurveyDefinition, measures: Measures | None, counted: Collection[str]
) -> list[QuestionTheme]:
    """Return the themes of a survey with their items, in the survey's order.

    Themes are essentials and measures without one. Items without a measure belong to
    the theme that most items of their page have; pages without any follow after the
    themes. At the end are items about the people who answer: consent, and the pages
    before the first question about their school. These are the pages without an item
    of a measure, or in a survey without measures without an agreement scale.
    """
    content: Measures = measures or {"essentials": [], "measures": []}
    labels = {part["name"]: part["label"] for part in content["essentials"]}
    of_item: dict[str, str] = {}
    for measure in content["measures"]:
        theme = measure["essential"]
        if theme not in labels:
            theme = measure["name"]
            labels[theme] = measure["label"]
        of_item |= {item["name"]: theme for item in measure["items"]}
    about_school = of_item.keys() or agreement_scales(definition, None).keys()
    themes = {
        name: QuestionTheme(f"{OF_THEME}{name}", label)
        for name, label in labels.items()
    }
    pages: list[QuestionTheme] = []
    about = QuestionTheme(ABOUT, {})
    has_begun = not about_school
    for number, page in enumerate(definition["pages"], start=1):
        names = [name for block in page["blocks"] for name in block["items"]]
        has_begun = has_begun or any(name in about_school for name in names)
        count = Counter(of_item[name] for name in names if name in of_item)
        alone = QuestionTheme(f"{OF_PAGE}{number}", page["title"])
        target = themes[count.most_common(1)[0][0]] if count else alone
        for name in names:
            if name not in counted:
                continue
            is_consent = definition["items"][name]["kind"] == "acknowledge"
            if name in of_item:
                themes[of_item[name]].items.append(name)
            elif is_consent or not has_begun:
                about.items.append(name)
            else:
                target.items.append(name)
        pages.append(alone)
    return [theme for theme in (*themes.values(), *pages, about) if theme.items]
