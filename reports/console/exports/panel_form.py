"""The form for an export in which several waves of the same people are joined."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, cast

from django import forms
from django.db import DEFAULT_DB_ALIAS
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from accounts.permissions import Permissions
from reports.answers.selection import Selection
from reports.console.exports.forms import ExportForm, ExportSize
from reports.exports.panel_people import count_people_in_several, refusal
from reports.exports.release_mask import released_keys
from reports.exports.requests import project_named, refusal_by_project
from reports.models.exports import PANEL_FORMATS, Export
from reports.models.panels import PanelProject
from survey.models import Administration

# With more people, counting those in several waves would keep the page waiting.
MOST_COUNTED = 200_000


class PanelForm(ExportForm):
    is_panel = True
    fewest_rounds = 2
    # The field that errors about the project belong to.
    project_field = "project"

    project = forms.CharField(
        label=gettext_lazy("Research project"),
        required=False,
        max_length=100,
        help_text=gettext_lazy(
            "Your files of one project have the same survey rounds, and the same ID"
            " for the same person. With one more season, choose a new project: its"
            " file has all seasons, with new IDs. Without a project, the IDs are those"
            " of this file only."
        ),
    )

    def __init__(
        self, *args: Any, permissions: Permissions, user: User, **kwargs: Any
    ) -> None:
        super().__init__(*args, permissions=permissions, **kwargs)
        self.user = user
        for name in ("role", "identities", "reason"):
            self.fields.pop(name, None)
        kinds = cast("forms.ChoiceField", self.fields["format"])
        kinds.choices = list(PANEL_FORMATS.items())
        self._offer_administrations()

    def _offer_administrations(self) -> None:
        field = self._model_field("administrations")
        field.help_text = _(
            "Choose the seasons of one survey. A person who took part in three of"
            " them has three rows, with the same random ID."
        )
        known = list(field.queryset or ())
        offered = [
            administration for administration in known if not refusal(administration)
        ]
        # Shown with the reason; `clean` refuses them as well.
        self.refused = [
            message for administration in known if (message := refusal(administration))
        ]
        field.choices = [
            (administration.pk, field.label_from_instance(administration))
            for administration in offered
        ]
        self.is_empty = len(offered) < self.fewest_rounds
        self.initial["administrations"] = _with_other_waves(
            offered, self.initial.get("administrations", ())
        )

    def clean(self) -> dict[str, object]:
        given = super().clean()
        chosen = self.chosen()
        for administration in chosen:
            if message := refusal(administration):
                self.add_error("administrations", message)
        if 0 < len(chosen) < self.fewest_rounds:
            self.add_error("administrations", _("Choose at least two survey rounds."))
        project = None if self.errors else self._project(given)
        self.choices["is_panel"] = True
        if project is not None:
            # `request_export` looks again, with the project locked.
            export = Export(**self.choices)
            if message := refusal_by_project(project, export, self.chosen()):
                self.add_error(self.project_field, message)
        return given

    def _project(self, given: dict[str, object]) -> PanelProject | None:
        """Return the user's project of this name; an approved one has its own page."""
        name = str(given.get("project", ""))
        project = project_named(name, self.user) if name else None
        if project is not None and project.is_approved:
            self.add_error(
                "project",
                _("%(project)s is an approved project. Make its files on its page.")
                % {"project": project},
            )
            return None
        return project

    def size(self) -> ExportSize | None:
        size = super().size()
        if size is not None and size.respondents <= MOST_COUNTED:
            places = self._places(self.cleaned_data)
            finished_only = bool(self.cleaned_data.get("finished_only"))
            chosen = self.chosen()
            keys = {
                administration.pk: released_keys(
                    administration,
                    DEFAULT_DB_ALIAS,
                    places,
                    finished_only=finished_only,
                )
                for administration in chosen
            }
            size.joined = count_people_in_several(Selection(chosen, places, keys=keys))
        return size


def _with_other_waves(
    offered: Sequence[Administration], keys: Collection[str]
) -> list[int]:
    """Return the chosen ones; of a single one, all waves for the same audience."""

    def audience(administration: Administration) -> tuple[str, int | None, str]:
        survey = administration.published.survey
        return survey.name, survey.district_id, administration.role

    chosen = [
        administration for administration in offered if str(administration.pk) in keys
    ]
    if len(chosen) == 1:
        chosen = [
            administration
            for administration in offered
            if audience(administration) == audience(chosen[0])
        ]
    return [administration.pk for administration in chosen]


class ProjectForm(PanelForm):
    """The form for a file of an approved project, which may have one survey round."""

    fewest_rounds = 1
    project_field = "administrations"

    def __init__(self, *args: Any, project: PanelProject, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.approved = project
        self._model_field("administrations").help_text = _(
            "The first file decides which survey rounds the project has: each later"
            " file, and the key table, has exactly these. Further rounds need a new"
            " project."
        )
        del self.fields["project"]

    def _project(self, given: dict[str, object]) -> PanelProject:
        return self.approved
