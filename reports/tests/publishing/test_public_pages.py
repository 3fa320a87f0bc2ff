"""What everybody sees of published results: pages, files, embargo and withdrawal."""

from __future__ import annotations

import csv
import io
import math
import re
from datetime import timedelta

import pytest
from django.db.models import Q
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.tests.logging_in import log_in
from reports.models import (
    Calibration,
    GroupResults,
    Publication,
    PublishedPlace,
    ResultsRollUp,
    SchoolRate,
)
from reports.publishing import last_time
from reports.publishing.publications import withdraw
from reports.rates import visible_rates
from reports.scores.visible import visible_scores
from reports.scores.words import SCORE_COLUMNS, score_change
from reports.tests.console.scores.conftest import answered, scored
from reports.tests.scores.conftest import closed
from survey.taking.published import published_survey

pytestmark = pytest.mark.django_db


def page(name, *args, **query):
    # A new browser each time: nothing is remembered.
    return Client().get(reverse(name, args=args), query)


def rows_of(response):
    return list(csv.DictReader(io.StringIO(response.content.decode("utf-8-sig"))))


ADDRESSES = {
    "published_state": lambda staff: (),
    "published_hidden": lambda staff: (),
    "published_district": lambda staff: (staff.riverside.pk,),
    "published_school": lambda staff: (staff.lincoln.pk,),
    "published_scores": lambda staff: (),
    "published_dictionary": lambda staff: (),
    "published_answers": lambda staff: (),
    "published_answers_of_district": lambda staff: (staff.riverside.pk,),
    "published_answers_of_school": lambda staff: (staff.lincoln.pk,),
}


def responses(staff, fall):
    return {name: page(name, fall.pk, *args(staff)) for name, args in ADDRESSES.items()}


class TestPages:
    def test_a_parent_finds_the_page_of_a_school(self, staff, fall, publish):
        publish(fall)
        listed = page("published_list")
        assert reverse("published_state", args=[fall.pk]) in listed.text
        response = page("published_state", fall.pk, q="linc")
        address = reverse("published_school", args=[fall.pk, staff.lincoln.pk])
        assert address in response.text
        text = page("published_school", fall.pk, staff.lincoln.pk).text
        assert "60 of 60 finished the survey: the response rate is 100 %." in text
        assert "Safe school" in text
        assert "points of 99" in text
        assert "Riverside" in text
        assert "Question &lt;1&gt;" in text

    def test_a_page_is_in_the_languages_of_the_survey(self, staff, fall, publish):
        publish(fall)
        text = page("published_school", fall.pk, staff.lincoln.pk, language="es").text
        assert "Escuela segura" in text
        assert 'lang="es"' in text
        assert "Cada número resume las respuestas" in text
        assert "Each number sums up the answers" not in text
        accepted = Client().get(
            reverse("published_school", args=[fall.pk, staff.lincoln.pk]),
            headers={"accept-language": "es-MX,en;q=0.5"},
        )
        assert "Escuela segura" in accepted.text
        assert accepted.headers["Vary"] == "Accept-Language"

    def test_pages_in_arabic_are_arabic_from_right_to_left(self, staff, fall, publish):
        publish(fall)
        text = page("published_school", fall.pk, staff.lincoln.pk, language="ar").text
        assert '<html lang="ar" dir="rtl">' in text
        assert "أكمل الاستبيان 60 من أصل 60: معدل الاستجابة 100 %." in text
        assert "مدرسة آمنة" in text
        assert "نقطة من 99" in text
        assert "How to read this page" not in text
        listed = Client().get(
            reverse("published_list"), headers={"accept-language": "ar,en;q=0.5"}
        )
        assert '<html lang="ar" dir="rtl">' in listed.text
        assert "نتائج الاستبيان" in listed.text

    def test_a_school_without_a_report_has_a_clear_page(self, staff, fall, publish):
        publish(fall)
        response = page("published_school", fall.pk, staff.washington.pk)
        assert response.status_code == 404
        assert "only if enough people took part" in response.text
        assert "Washington" not in response.text
        state = page("published_state", fall.pk, q="washington").text
        assert "No school with a report has this name" in state
        assert "1 school has no report" in state

    def test_all_that_is_published_of_a_school_is_listed(self, staff, fall, publish):
        assert (
            "no published results" in page("published_of_school", staff.lincoln.pk).text
        )
        publish(fall)
        text = page("published_of_school", staff.lincoln.pk).text
        assert reverse("published_school", args=[fall.pk, staff.lincoln.pk]) in text

    def test_no_cookies_and_no_scripts(self, staff, fall, publish):
        publish(fall)
        client = Client()
        client.force_login(staff.state)
        for name, args in ADDRESSES.items():
            response = client.get(reverse(name, args=[fall.pk, *args(staff)]))
            assert response.status_code == 200
            assert not response.cookies
            assert "Cookie" not in response.headers.get("Vary", "")
            assert "<script" not in response.text
            assert "csrf" not in response.text
            assert response.headers["Cache-Control"].startswith("s-maxage=20")

    def test_the_digest_is_the_etag(self, staff, fall, publish):
        publication = publish(fall)
        for name, response in responses(staff, fall).items():
            etag = response.headers["ETag"]
            assert publication.digest in etag, name
            repeated = Client().get(
                response.wsgi_request.path, headers={"if-none-match": etag}
            )
            assert repeated.status_code == 304

    def test_a_page_costs_one_statement(
        self, staff, fall, publish, django_assert_num_queries
    ):
        publish(fall)
        # The survey's texts stay in memory.
        page("published_state", fall.pk)
        for count, address in (
            (1, ("published_list",)),
            (1, ("published_hidden_in_all",)),
            (1, ("published_hidden", fall.pk)),
            (5, ("published_state", fall.pk)),
            (4, ("published_district", fall.pk, staff.riverside.pk)),
            (3, ("published_school", fall.pk, staff.lincoln.pk)),
            (1, ("published_answers_of_school", fall.pk, staff.lincoln.pk)),
            (2, ("published_scores", fall.pk)),
            (1, ("published_of_school", staff.lincoln.pk)),
        ):
            with django_assert_num_queries(count):
                page(*address)

    @pytest.mark.parametrize("key", [0, 2**63 - 1, 2**70])
    def test_keys_of_nothing_are_unknown(self, staff, fall, publish, key):
        publish(fall)
        assert page("published_state", key).status_code == 404
        assert page("published_school", fall.pk, key).status_code == 404
        assert page("published_answers_of_school", key, 1).status_code == 404


CHANGED = "Changed by more than chance"
EARLIER = 'class="earlier"'


class TestLastTime:
    """A place is compared with what is public of it in earlier results."""

    @pytest.fixture
    def spring(self, staff, fall, publish):
        spring = closed(fall.published, "spring-2027")
        answered(spring, staff.lincoln, 60, 7, shift=2.5)
        publish(scored(spring))
        return spring

    def test_changed_questions_are_named(self, staff, fall, spring, publish):
        address = ("published_school", spring.pk, staff.lincoln.pk)
        assert CHANGED not in page(*address).text
        publish(fall)
        later = page(*address).text
        assert CHANGED in later
        questions = later[later.index('class="question-highlights"') :]
        changes = re.findall(r"<strong>([+−]\d+)</strong>", questions)
        assert 1 <= len(changes) <= 3 and all(each[0] == "+" for each in changes)
        # The earlier ones do not tell the future, and other places have no page.
        assert CHANGED not in page("published_school", fall.pk, staff.lincoln.pk).text

    @pytest.mark.parametrize("is_protected", [True, False])
    def test_what_is_not_public_is_not_compared(
        self, staff, fall, spring, publish, monkeypatch, is_protected
    ):
        if not is_protected:
            monkeypatch.setattr(last_time, "public_condition", lambda path: Q())
        address = ("published_school", spring.pk, staff.lincoln.pk)
        tomorrow = timezone.now() + timedelta(days=1)
        embargoed = publish(fall, tomorrow)
        assert (CHANGED in page(*address).text) is not is_protected
        withdraw(embargoed, because="An error.", by=staff.state)
        assert (CHANGED in page(*address).text) is not is_protected

    def test_a_question_that_was_hidden_is_not_compared(
        self, staff, fall, spring, publish
    ):
        rows = GroupResults.objects.filter(
            administration=fall, level="school", place_id=staff.lincoln.pk, attribute=""
        )
        items = published_survey(fall.published_id).definition["items"]
        assert rows.update(hidden_items=[*items]) == 1
        publish(fall)
        text = page("published_school", spring.pk, staff.lincoln.pk).text
        assert CHANGED not in text
        assert "no earlier figures of these questions" in text

    def test_scores_have_the_dot_of_last_time(self, staff, fall, spring, publish):
        address = ("published_school", spring.pk, staff.lincoln.pk)
        assert EARLIER not in page(*address).text
        publish(fall)
        text = page(*address).text
        places = [("school", staff.lincoln.pk)]
        [before] = visible_scores(fall, places).values()
        [now] = visible_scores(spring, places).values()
        for name in ("trust", "noise", "safe"):
            words = score_change(now[name], before[name]).words
            assert f"Change since last time: {words}" in text
        # Of the theme, its two measures and the legend.
        assert text.count(EARLIER) == 4
        assert EARLIER not in page("published_school", fall.pk, staff.lincoln.pk).text

    def test_a_score_that_was_hidden_has_no_dot(self, staff, fall, spring, publish):
        rows = GroupResults.objects.filter(administration=fall, level="school")
        rows.filter(place_id=staff.lincoln.pk).update(hidden_items=["q5"])
        publish(fall)
        text = page("published_school", spring.pk, staff.lincoln.pk).text
        # Trust and the legend: noise was hidden, and the theme with it.
        assert text.count(EARLIER) == text.count("Change since last time") + 1 == 2

    @pytest.mark.parametrize("is_same_scale", [True, False])
    def test_scores_on_another_scale_are_not_compared(
        self, staff, fall, spring, publish, is_same_scale
    ):
        if not is_same_scale:
            # Calculated again after the results of spring were published.
            Calibration.objects.filter(administration=fall).update(scale_mean=0.25)
        publish(fall)
        text = page("published_school", spring.pk, staff.lincoln.pk).text
        assert ("Change since last time" in text) is is_same_scale

    def test_scores_of_another_grade_span_are_not_compared(
        self, staff, fall, spring, publish
    ):
        publish(fall)
        address = ("published_school", spring.pk, staff.lincoln.pk)
        assert "Change since last time" in page(*address).text
        before = PublishedPlace.objects.get(
            publication__administration=fall, level="school", place_id=staff.lincoln.pk
        )
        summary = {**before.summary, "span": "elementary"}
        # Not from the cache either, which has the page of before.
        PublishedPlace.objects.filter(pk=before.pk).update(summary=summary)
        assert "Change since last time" not in page(*address).text


class TestHiddenNumbers:
    def test_every_page_links_to_what_is_hidden(self, staff, fall, publish):
        in_all = reverse("published_hidden_in_all")
        assert in_all in page("published_list").text
        publish(fall)
        address = reverse("published_hidden", args=[fall.pk])
        for name, args in ADDRESSES.items():
            response = page(name, fall.pk, *args(staff))
            is_page = response.headers["Content-Type"].startswith("text/html")
            if is_page and name != "published_hidden":
                assert f'href="{address}"' in response.text, name
        for name, args in (
            ("published_list", ()),
            ("published_of_school", (staff.lincoln.pk,)),
            ("published_state", (0,)),
        ):
            assert f'href="{in_all}"' in page(name, *args).text, name
        preview = log_in(Client(), staff.state).get(
            reverse("publishing_preview", args=[fall.pk])
        )
        assert reverse("results_hidden", args=[fall.pk]) in preview.text

    def test_it_is_explained_in_the_languages_of_the_page(self, staff, fall, publish):
        minimum = publish(fall).frame["minimum_group"]
        text = page("published_hidden", fall.pk).text
        assert f"Results are shown where at least {minimum} people answered." in text
        assert "of the schools that have a report" in text
        assert f'href="{reverse("published_state", args=[fall.pk])}"' in text
        spanish = page("published_hidden", fall.pk, language="es").text
        assert "Qué números se ocultan" in spanish
        assert f"respondieron al menos {minimum} personas" in spanish
        assert f"{reverse('published_state', args=[fall.pk])}?language=es" in spanish
        assert 'dir="rtl"' in page("published_hidden", fall.pk, language="ar").text

    def test_the_page_about_all_has_the_least_minimum(self, staff, fall, publish):
        assert "at least 10 people" in page("published_hidden_in_all").text
        publication = publish(fall)
        frame = {**publication.frame, "minimum_group": 4}
        Publication.objects.filter(pk=publication.pk).update(frame=frame)
        assert "at least 4 people" in page("published_hidden_in_all").text

    def test_places_say_from_how_many_people_on_results_are_shown(
        self, staff, fall, publish
    ):
        publication = publish(fall)
        frame = {**publication.frame, "minimum_group": 7}
        Publication.objects.filter(pk=publication.pk).update(frame=frame)
        text = page("published_school", fall.pk, staff.lincoln.pk).text
        assert "Results are shown where at least 7 people answered." in text
        assert "never shown" not in text

    def test_what_was_withdrawn_has_no_page(self, staff, fall, publish):
        publication = publish(fall)
        withdraw(publication, because="Wrong wave.", by=staff.state)
        assert page("published_hidden", fall.pk).status_code == 410
        assert page("published_hidden", 0).status_code == 404
        assert page("published_hidden_in_all").status_code == 200


class TestCharts:
    def test_scores_are_strips_a_sentence_a_table_and_a_file(
        self, staff, fall, publish
    ):
        publish(fall)
        shown = page("published_school", fall.pk, staff.lincoln.pk)
        [[essential, [trust, _noise]]] = shown.context["page"].essentials
        [lincoln, district, state] = trust.places
        assert lincoln.error.startswith("±")
        table = shown.text.split('id="measure-trust"')[1]
        table = table[: table.index("</table>")]
        for line in (lincoln, district, state):
            assert f'<th scope="row">{line.name}</th>' in table
            assert f'<td class="number">{line.text}' in table
            assert f"<td>{line.words}</td>" in table
        assert trust.sentence in shown.text
        rows = rows_of(page("published_scores", fall.pk))
        in_file = {row["name"]: row["trust"] for row in rows}
        assert in_file["Lincoln"] == lincoln.text
        assert in_file["Riverside"] == district.text
        assert essential.places[0].score

    def test_a_school_that_is_called_like_its_district_keeps_its_own_figures(
        self, staff, fall, publish
    ):
        answered(fall, staff.washington, 60, 5, shift=-1.0)
        scored(fall)
        publication = publish(fall)
        publication.places.filter(level="school", place_id=staff.lincoln.pk).update(
            name="Riverside"
        )
        shown = page("published_school", fall.pk, staff.lincoln.pk).context["page"]
        names = ["Riverside", "Riverside (district)", "All schools"]
        [[essential, _measures]] = shown.essentials
        assert [line.name for line in essential.places] == names
        answers = shown.place.answers["items"]["q1"]
        [first, *_others] = [
            chart for at in shown.charts for _, charts in at.blocks for chart in charts
        ]
        assert [row.place for row in first.rows] == names
        assert first.rows[0].answered == answers["answered"]


class TestNames:
    """Names come from rosters, and may be written by anybody in a district."""

    def named(self, publication, school, name):
        rows = publication.places.filter(level="school", place_id=school.pk)
        rows.update(name=name, search=name.upper())

    def test_a_name_keeps_its_direction_and_the_text_its_own(
        self, staff, fall, publish
    ):
        publication = publish(fall)
        arabic = "مدرسة النور (1)"
        self.named(publication, staff.lincoln, arabic)
        english = page("published_school", fall.pk, staff.lincoln.pk).text
        assert f"<h1><bdi>{arabic}</bdi></h1>" in english
        assert f'<bdi class="bar-place">\u2068{arabic}\u2069</bdi>' in english
        assert '<bdi class="bar-place">Riverside</bdi>' in english
        translated = page(
            "published_school", fall.pk, staff.lincoln.pk, language="ar"
        ).text
        assert f'<bdi class="bar-place">{arabic}</bdi>' in translated
        assert '<bdi class="bar-place">\u2068Riverside\u2069</bdi>' in translated
        assert "\u2068Riverside\u2069: " in translated

    def test_a_name_cannot_turn_the_text_after_it_around(self, staff, fall, publish):
        publication = publish(fall)
        self.named(publication, staff.lincoln, "A\u202elocs\u2069\u2066 high")
        for shown in (
            page("published_school", fall.pk, staff.lincoln.pk),
            page("published_district", fall.pk, staff.riverside.pk),
            page("published_state", fall.pk, q="high"),
            page("published_of_school", staff.lincoln.pk),
        ):
            assert "Alocs high" in shown.text
            assert "\u202e" not in shown.text

    def test_markup_in_names_and_addresses_is_text(self, staff, fall, publish):
        publication = publish(fall)
        evil = "<script>alert(1)</script>\"'&%s"
        self.named(publication, staff.lincoln, evil)
        for shown in (
            page("published_school", fall.pk, staff.lincoln.pk),
            page("published_district", fall.pk, staff.riverside.pk),
            page("published_state", fall.pk, q=evil),
            page("published_of_school", staff.lincoln.pk),
            page("published_list", language='"><script>x'),
        ):
            assert shown.status_code == 200
            assert "<script" not in shown.text
        response = page("published_state", fall.pk, q="<SCRIPT>")
        assert "&lt;script&gt;alert(1)" in response.text
        # Links carry a language that there is, and nothing else.
        listed = page("published_list", language="es&x=1")
        assert "x=1" not in listed.text


class TestFiles:
    def test_scores_of_all_places(self, staff, fall, publish):
        publish(fall)
        rows = rows_of(page("published_scores", fall.pk))
        assert [row["level"] for row in rows] == [
            *("state", "district", "district", "school", "school")
        ]
        lincoln = next(row for row in rows if row["name"] == staff.lincoln.name)
        assert lincoln["finished"] == "60"
        assert lincoln["district"] == staff.riverside.code
        assert 1 <= int(lincoln["trust"]) <= 99
        assert float(lincoln["trust standard error"]) > 0

    def test_answers_of_a_school(self, staff, fall, publish):
        publish(fall)
        rows = rows_of(page("published_answers_of_school", fall.pk, staff.lincoln.pk))
        q1 = [row for row in rows if row["item"] == "q1"]
        assert [row["answer"] for row in q1] == ["1", "2", "3", "4", "dk"]
        assert sum(int(row["people"]) for row in q1) == int(q1[0]["answered"])

    def test_the_dictionary_names_every_column_and_value(self, staff, fall, publish):
        publish(fall)
        names = {row["name"] for row in rows_of(page("published_dictionary", fall.pk))}
        header = page("published_scores", fall.pk).content.decode("utf-8-sig")
        columns = header.splitlines()[0].split(",")
        of_scores = {
            f"{name}{suffix}"
            for name in ("safe", "trust", "noise")
            for suffix in SCORE_COLUMNS
        }
        assert set(columns) <= names | of_scores
        assert {f"MEASURE{suffix}" for suffix in SCORE_COLUMNS} <= names
        answers = rows_of(page("published_answers", fall.pk))
        assert set(answers[0]) <= names
        assert {row["item"] for row in answers} <= names
        assert {f"{row['item']} {row['answer']}" for row in answers} <= names


class TestEssentials:
    """In Riverside, Lincoln shows noise alone, and Washington trust alone."""

    @pytest.fixture
    def divided(self, staff, fall):
        SchoolRate.objects.filter(school=staff.washington).update(finished=20)
        rows = GroupResults.objects.filter(administration=fall, level="school")
        for school, item in ((staff.lincoln, "q2"), (staff.washington, "q5")):
            rows.filter(place_id=school.pk).update(hidden_items=[item])
        return fall

    def test_an_essential_is_the_mean_of_the_measures_on_its_page(
        self, staff, divided, publish
    ):
        publish(divided)
        rows = rows_of(page("published_scores", divided.pk))
        riverside, lakeside, state = (
            next(row for row in rows if row["level"] == level and row["name"] == name)
            for level, name in (
                ("district", staff.riverside.name),
                ("district", staff.lakeside.name),
                ("state", ""),
            )
        )
        for row in (riverside, lakeside, state):
            mean = (int(row["trust"]) + 100 - int(row["noise"])) / 2
            assert int(row["safe"]) == math.floor(mean + 0.5)
        schools = {row["name"]: row for row in rows if row["level"] == "school"}
        assert schools["Lincoln"]["safe"] == schools["Washington"]["safe"] == "*"
        assert riverside["trust"] == schools["Washington"]["trust"]
        assert riverside["noise"] == schools["Lincoln"]["noise"]
        # The people of one measure are not those of the other.
        errors = [
            float(riverside[f"{name} mean standard error"])
            for name in ("trust", "noise")
        ]
        error = float(riverside["safe mean standard error"])
        assert error == pytest.approx(math.hypot(*errors) / 2, abs=0.1)
        text = page("published_district", divided.pk, staff.riverside.pk).text
        assert "No score" not in text
        assert "the mean of the themes" not in text


class TestReading:
    STAR, ERROR = "* Hidden, because", "With ±, a number"

    def test_what_50_means_is_said_once_before_the_statistics(
        self, staff, fall, publish
    ):
        publish(fall)
        text = page("published_school", fall.pk, staff.lincoln.pk).text
        reading = text[text.index('id="reading"') :]
        average = f"50 is the average of “{fall.title} (about "
        assert average in text[: text.index('id="reading"')]
        assert average not in reading
        order = ["A theme is the mean", "Methods", "standard deviation"]
        places = [reading.index(words) for words in order]
        assert places == sorted(places)

    def test_notes_explain_only_signs_on_the_page(self, staff, fall, publish):
        rows = GroupResults.objects.filter(administration=fall, level="school")
        rows.filter(place_id=staff.lincoln.pk).update(hidden_items=["q2"])
        publish(fall)
        hidden = page("published_school", fall.pk, staff.lincoln.pk).text
        assert self.STAR in hidden
        shown = page("published_school", fall.pk, staff.roosevelt.pk).text
        assert self.STAR not in shown and self.ERROR in shown


class TestProtection:
    def hide(self, staff, fall):
        rows = GroupResults.objects.filter(administration=fall, level="school")
        rows.filter(place_id=staff.lincoln.pk).update(hidden_items=["q2"])

    def test_hidden_cells_are_stars_in_pages_and_files(self, staff, fall, publish):
        self.hide(staff, fall)
        publish(fall)
        rows = rows_of(page("published_answers_of_school", fall.pk, staff.lincoln.pk))
        [hidden] = [row for row in rows if row["item"] == "q2"]
        assert set(hidden.values()) == {"q2", "*"}
        scores = rows_of(page("published_scores", fall.pk))
        lincoln = next(row for row in scores if row["name"] == staff.lincoln.name)
        assert lincoln["trust"] == lincoln["safe"] == "*"
        assert lincoln["trust standard error"] == "*"
        text = page("published_school", fall.pk, staff.lincoln.pk).text
        assert "Hidden, because too few people answered." in text

    def test_unhidden_there_would_be_figures(self, staff, fall, publish):
        publish(fall)
        rows = rows_of(page("published_answers_of_school", fall.pk, staff.lincoln.pk))
        assert len([row for row in rows if row["item"] == "q2"]) == 5

    def test_schools_without_a_report_are_in_no_file(self, staff, fall, publish):
        publish(fall)
        for name, response in responses(staff, fall).items():
            assert "Washington" not in response.text, name
        answers = page("published_answers_of_school", fall.pk, staff.washington.pk)
        assert answers.status_code == 404

    def test_without_the_threshold_they_would_be(
        self, staff, fall, publish, monkeypatch
    ):
        is_reached = property(lambda line: True)
        monkeypatch.setattr(visible_rates.SchoolRateLine, "is_reached", is_reached)
        publish(fall)
        assert "Washington" in page("published_scores", fall.pk).text

    def test_a_recount_changes_no_page(self, staff, fall, publish):
        publish(fall)
        before = responses(staff, fall)
        answered(fall, staff.lincoln, 30, 9, shift=2.0)
        scored(fall)
        after = responses(staff, fall)
        for name in ADDRESSES:
            assert after[name].content == before[name].content
            assert after[name].headers["ETag"] == before[name].headers["ETag"]


class TestEmbargo:
    def test_nothing_tells_of_embargoed_results(self, staff, fall, publish):
        publish(fall, timezone.now() + timedelta(hours=1))
        nothing = Publication.objects.count() and responses(staff, fall)
        listed = page("published_list").text
        assert "No results have been published yet" in listed
        assert fall.title not in listed
        assert (
            "no published results" in page("published_of_school", staff.lincoln.pk).text
        )
        for name, response in nothing.items():
            assert response.status_code == 404, name
            assert "ETag" not in response.headers
            assert response.headers["Cache-Control"] == "no-cache"
            # The same as for what never was.
            never = page(name, 10**6, *ADDRESSES[name](staff))
            assert never.content == response.content

    def test_after_the_embargo_everybody_reads_them(self, staff, fall, publish):
        publication = publish(fall, timezone.now() + timedelta(hours=1))
        Publication.objects.filter(pk=publication.pk).update(
            embargo_until=timezone.now() - timedelta(seconds=1)
        )
        for response in responses(staff, fall).values():
            assert response.status_code == 200


class TestWithdrawal:
    def test_withdrawn_results_are_gone_at_once(self, staff, fall, publish):
        publication = publish(fall)
        etag = page("published_state", fall.pk).headers["ETag"]
        withdraw(publication, because="Wrong wave.", by=staff.state)
        for name, response in responses(staff, fall).items():
            assert response.status_code == 410, name
            assert "These results were withdrawn" in response.text
            assert "Wrong wave" not in response.text
            assert response.headers["Cache-Control"] == "no-cache"
        repeated = Client().get(
            reverse("published_state", args=[fall.pk]),
            headers={"if-none-match": etag},
        )
        assert repeated.status_code == 410
        assert fall.title not in page("published_list").text

    def test_what_was_withdrawn_before_its_embargo_never_was(
        self, staff, fall, publish
    ):
        publication = publish(fall, timezone.now() + timedelta(hours=1))
        withdraw(publication, because="Too early.", by=staff.state)
        assert page("published_state", fall.pk).status_code == 404

    def test_an_embargo_after_a_withdrawal_does_not_show(self, staff, fall, publish):
        withdraw(publish(fall), because="Wrong.", by=staff.state)
        before = responses(staff, fall)
        later = publish(fall, timezone.now() + timedelta(hours=1))
        after = responses(staff, fall)
        for name, response in before.items():
            assert (response.status_code, after[name].status_code) == (410, 410)
            assert response.content == after[name].content
        withdraw(later, because="Too early.", by=staff.state)
        assert page("published_state", fall.pk).status_code == 410

    def test_published_again_the_same_address_works(self, staff, fall, publish):
        withdraw(publish(fall), because="Wrong.", by=staff.state)
        publish(fall)
        assert page("published_state", fall.pk).status_code == 200


class TestCodedShares:
    @pytest.fixture
    def agreed(self, staff, new_survey):
        """Let everybody at Lincoln give the same answer to each question."""
        administration = closed(new_survey, "agreed")
        answered(administration, staff.lincoln, 60, 1, shift=50, skipped=0)
        answered(administration, staff.roosevelt, 60, 3)
        return scored(administration)

    def shown(self, staff, administration):
        """Return cells of the first question in the table, and in the file."""
        pk, school = administration.pk, staff.lincoln.pk
        text = page("published_school", pk, school).text
        section = text[text.index('id="item-q1"') :]
        row = section[section.index('<th scope="row"><bdi>Lincoln') :]
        row = row.replace("\u00a0", " ")
        cells = re.findall(r'<td class="number">(.*?)</td>', row)
        lines = rows_of(page("published_answers_of_school", pk, school))
        first = [line for line in lines if line["item"] == "q1"]
        return cells[:5], [(line["people"], line["percent"]) for line in first]

    def test_pages_and_files_have_bounds(self, staff, agreed, publish):
        publication = publish(agreed)
        cells, lines = self.shown(staff, agreed)
        assert cells == [*["under 5 %"] * 3, "over 95 %", "under 5 %"]
        assert lines == [*[("<3", "<5")] * 3, (">57", ">95"), ("<3", "<5")]
        # Nor is the number in what is stored.
        school = publication.places.get(level="school", place_id=staff.lincoln.pk)
        assert school.answers["items"]["q1"]["values"] == {}
        text = page("published_school", agreed.pk, staff.lincoln.pk, language="es").text
        text = text.replace("\u00a0", " ")
        assert "más del 95 %" in text and "menos del 5 %" in text
        assert "<5 is less than 5" in page("published_dictionary", agreed.pk).text

    @pytest.mark.usefixtures("exact_shares")
    def test_without_coding_they_tell_everybodys_answer(self, staff, agreed, publish):
        publish(agreed)
        cells, lines = self.shown(staff, agreed)
        assert cells[3] == '100 % <span class="hint">(60)</span>'
        assert ("60", "100.0") in lines

    def test_a_publication_keeps_its_bounds(self, staff, agreed, publish):
        publish(agreed)
        before = self.shown(staff, agreed)
        ResultsRollUp.objects.update(coding_threshold=20)
        assert self.shown(staff, agreed) == before
