"""Say the rules of a survey in words, for people who do not write them."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from survey.instrument.definitions.expressions import to_text
from survey.instrument.definitions.schema import Expr, ItemDefinition, SurveyDefinition
from survey.instrument.xlsform.writing import as_text
from survey.taking.rendering import Localizer

_COMPARISONS = {
    "=": gettext_lazy("{} is {}"),
    "!=": gettext_lazy("{} is not {}"),
    "<": gettext_lazy("{} is less than {}"),
    "<=": gettext_lazy("{} is at most {}"),
    ">": gettext_lazy("{} is more than {}"),
    ">=": gettext_lazy("{} is at least {}"),
    "selected": gettext_lazy("{} includes {}"),
}
_JOINS = {"and": gettext_lazy(" and "), "or": gettext_lazy(" or ")}


class NoWords(Exception):
    """The expression computes something; it is shown as its author wrote it."""


class RuleWords:
    """`numbers` has the number of each question that people answer."""

    def __init__(
        self,
        definition: SurveyDefinition,
        localizer: Localizer,
        numbers: dict[str, int],
    ) -> None:
        self.definition = definition
        self.localizer = localizer
        self.numbers = numbers

    def rules_of(self, name: str) -> Iterator[str]:
        """Yield a sentence for each rule of an item."""
        item = self.definition["items"][name]
        required = item.get("required")
        if required is True:
            yield _("An answer is required.")
        elif required:
            yield _("An answer is required if %(condition)s.") % {
                "condition": self.condition(required, name)
            }
        if (relevant := item.get("relevant")) is not None:
            yield _("Shown only if %(condition)s.") % {
                "condition": self.condition(relevant, name)
            }
        if (constraint := item.get("constraint")) is not None:
            yield _("Accepted only if %(condition)s.") % {
                "condition": self.condition(constraint, name)
            }
        if (choice_filter := item.get("choice_filter")) is not None:
            yield _("Options are shown where %(choice_filter)s.") % {
                "choice_filter": as_text(choice_filter)
            }
        if scale := item.get("range"):
            yield (
                _("From %(start)s to %(end)s in steps of %(step)s.")
                % {"start": scale["start"], "end": scale["end"], "step": scale["step"]}
            )
        if item.get("randomize"):
            yield _("The order of the options differs for each person.")
        if item.get("read_only"):
            yield _("Cannot be changed.")

    def condition(self, expr: Expr, of_item: str) -> str:
        try:
            return self._say(expr, of_item)
        except NoWords:
            return as_text(expr)

    def _say(self, expr: Expr, of_item: str, *, is_inner: bool = False) -> str:
        if not isinstance(expr, list):
            raise NoWords
        operation, *arguments = expr
        if operation in _JOINS:
            parts = [self._say(part, of_item, is_inner=True) for part in arguments]
            joined = _JOINS[operation].join(parts)
            return f"({joined})" if is_inner else joined
        if operation == "not":
            return _("it is not true that %(condition)s") % {
                "condition": self._say(arguments[0], of_item)
            }
        if operation not in _COMPARISONS:
            raise NoWords
        left, right = arguments
        item = self._item(left)
        return _COMPARISONS[operation].format(
            self._question(left, of_item), self._value(right, item, of_item)
        )

    def _item(self, expr: Expr) -> ItemDefinition | None:
        if isinstance(expr, list) and expr[0] == "$":
            return self.definition["items"].get(expr[1])
        return None

    def _question(self, expr: Expr, of_item: str) -> str:
        if self._item(expr) is None or not isinstance(expr, list):
            raise NoWords
        if expr[1] == of_item:
            return _("the answer")
        if expr[1] not in self.numbers:
            raise NoWords
        return _("the answer to question %(number)s") % {
            "number": self.numbers[expr[1]]
        }

    def _value(self, expr: Expr, item: ItemDefinition | None, of_item: str) -> str:
        if isinstance(expr, bool):
            raise NoWords
        if isinstance(expr, list):
            return self._question(expr, of_item)
        text = expr if isinstance(expr, str) else to_text(float(expr))
        name = item.get("option_set", "") if item is not None else ""
        for option in self.definition["option_sets"].get(name, []):
            if option["value"] == text:
                return f"“{self.localizer.plain(option['label'])}”"
        return f"“{text}”" if isinstance(expr, str) and text else text or _("empty")
