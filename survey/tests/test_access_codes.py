"""Access codes, their digests and keys, and the command that writes them."""

from __future__ import annotations

import csv
import stat

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import AuditEntry, School, User
from provisioning.ansible.plugins.filter.digest_keys import digest_keys
from survey.models import CardSet, Identity
from survey.people import access_codes
from survey.people.access_codes import (
    ALPHABET,
    CodeKeyMissing,
    check_access_code_keys,
    code_for,
    code_of,
    count_symbols,
    digest_for,
    digests,
    find_impossible_symbol,
    format_code,
    normalise,
)
from survey.people.new_codes import reissue
from survey.tests.conftest import enrol

ids = st.integers(1, 2**63 - 1)
issues = st.integers(1, 32767)


def test_a_printed_code_is_recognised_when_typed(maya, browser):
    card = format_code(code_of(maya))
    assert len(card) == 14 and card[4] == card[9] == "-"

    typed = normalise(f" {card.lower().replace('-', ' ')}\n")

    assert typed == code_of(maya)
    assert bytes(maya.code_digest) in digests(typed)


@given(ids, issues, st.data())
def test_separators_case_and_wide_letters_are_ignored(id_, issue, data):
    code = code_for(id_, issue)
    noise = st.text(
        "  \t\u00a0\u2009-\u2010\u2013\u2014\u2212\u30fc\u200b\u00ad\u3000"
        "_.,:;/'\"`´‘’“”«»·•\uff0d\uff3f\uff0e|~+\u0301",
        max_size=2,
    )
    wide = st.sampled_from([str, str.lower, lambda s: chr(ord(s) + 0xFEE0)])
    mistaken = {"L": ["L", "I", "1", "l", "i"]}

    typed = data.draw(noise)
    for symbol in code:
        letter = data.draw(st.sampled_from(mistaken.get(symbol, [symbol])))
        typed += data.draw(wide)(letter) + data.draw(noise)

    assert normalise(typed) == code


@pytest.mark.parametrize(
    ("typed", "impossible"),
    [
        ("ABCD-EFGH-KLM0", ("0", 13, 12)),
        ("oBCD-EFGH-KLMN", ("O", 0, 1)),
        ("«AB–J", ("J", 4, 3)),
        ("ABCD-EFGH-KLMЖ", ("Ж", 13, 12)),
        ("AB\u00a0\uff2f", ("O", 3, 3)),
        ("ABCD-EFGH-K1I2", None),
        ("ABCD_ÉFGH.KLM\u0662", None),
        ("", None),
    ],
)
def test_the_first_symbol_that_no_code_has_is_named(typed, impossible):
    mistake = find_impossible_symbol(typed)
    assert (mistake and (mistake.symbol, mistake.at, mistake.number)) == impossible


@given(st.text(max_size=100))
def test_a_text_of_twelve_possible_symbols_is_a_code(typed):
    is_code = count_symbols(typed) == 12 and find_impossible_symbol(typed) is None
    assert (normalise(typed) is not None) == (is_code and len(typed) <= 64)


@given(st.text(alphabet="ABNZ29abnzoji01- \t\x1f", max_size=16))
def test_a_code_typed_as_on_a_card_is_read_like_all_others(typed):
    assert normalise(typed) == normalise(f"{typed}\u00ad")


@given(st.text(max_size=100))
def test_any_text_normalises_to_a_code_or_none(typed):
    code = normalise(typed)
    assert code is None or (len(code) == 12 and set(code) <= set(ALPHABET))


@pytest.mark.parametrize(
    "typed",
    ["", "ABCD-EFGH-KLM", "ABCD-EFGH-KLMNP", "ABCD-EFGH-KLM0", "ABCD-EFGH-KLMO"]
    + ["ABCD-EFGH-KLMJ", "ABCD-EFGH-KLM\ud800", "А" * 12, "A" * 10_000],
)
def test_ambiguous_texts_are_refused(typed):
    assert normalise(typed) is None


def test_codes_differ_by_person_issue_and_key():
    made = [
        code_for(person, issue, version)
        for person in range(1, 3000)
        for issue in (1, 2)
        for version in (1, 2)
    ]
    assert len(set(made)) == len(made)
    assert len({digest_for(made[0], version) for version in (1, 2)}) == 2


def test_every_symbol_is_equally_likely():
    count = dict.fromkeys(ALPHABET, 0)
    people = 20_000
    for person in range(people):
        for symbol in code_for(person, 1):
            count[symbol] += 1

    # 30 degrees of freedom: 70 is passed once in 20,000 fair trials, and
    # these codes are the same each time.
    assert chi_square(count) < 70


def test_a_plain_remainder_would_favour_eight_symbols(monkeypatch):
    monkeypatch.setattr(access_codes, "_UNUSABLE_BYTES", b"")
    count = dict.fromkeys(ALPHABET, 0)
    for person in range(20_000):
        for symbol in code_for(person, 1):
            count[symbol] += 1

    assert chi_square(count) > 70


def chi_square(count):
    expected = sum(count.values()) / len(count)
    return sum((n - expected) ** 2 / expected for n in count.values())


def test_a_second_block_is_used_when_the_first_is_too_short(monkeypatch):
    real = access_codes.hmac.digest

    def unlucky(key, message, name):
        return b"\xff" * 32 if message.endswith(b"/0") else real(key, message, name)

    monkeypatch.setattr(access_codes.hmac, "digest", unlucky)
    code = code_for(4711, 1)
    assert len(code) == 12 and set(code) <= set(ALPHABET)


def test_digests_depend_on_the_key(settings, maya):
    code = code_of(maya)
    stored = bytes(maya.code_digest)
    settings.ACCESS_CODE_KEYS = {2: "another installation's key"}
    assert stored not in digests(code)


def test_codes_under_older_keys_are_recognised(settings, maya):
    code = code_of(maya)
    settings.ACCESS_CODE_KEYS = {
        **settings.ACCESS_CODE_KEYS,
        3: "a third key for tests",
    }

    assert code_of(maya) == code
    assert digests(code)[1] == bytes(maya.code_digest)
    assert access_codes.current_version() == 3


def test_missing_keys_raise_an_error(settings):
    settings.ACCESS_CODE_KEYS = {}
    for attempt in (lambda: code_for(1, 1), lambda: digests("A" * 12)):
        with pytest.raises(CodeKeyMissing):
            attempt()
    with pytest.raises(CodeKeyMissing, match="version 7"):
        digest_for("A" * 12, 7)


def test_the_keys_of_the_respondents_pool_recognise_codes_and_spell_none(
    settings, maya, browser, monkeypatch
):
    """Its keys as the playbook derives them. Printed cards stay valid."""
    code, stored = code_of(maya), bytes(maya.code_digest)
    pairs = [f"{number}={key}" for number, key in settings.ACCESS_CODE_KEYS.items()]
    derived = digest_keys(",".join(pairs))
    settings.ACCESS_CODE_DIGEST_KEYS = {
        int(number): key
        for number, key in (pair.split("=") for pair in derived.split(","))
    }
    settings.ACCESS_CODE_KEYS = {}

    assert stored in digests(code)
    assert browser.post("/", {"code": code}).status_code == 302
    with pytest.raises(CodeKeyMissing):
        code_of(maya)
    # Used as keys for spelling, they lead to other codes.
    settings.ACCESS_CODE_KEYS = settings.ACCESS_CODE_DIGEST_KEYS
    assert code_of(maya) != code
    stolen = bytes.fromhex(settings.ACCESS_CODE_DIGEST_KEYS[maya.code_key_version])
    monkeypatch.setattr(access_codes, "_subkey", lambda master, purpose: stolen)
    assert code_of(maya) != code


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, ["survey.E001"]),
        ({40000: "long enough to be a key"}, ["survey.E002"]),
        ({1: "short"}, ["survey.E003"]),
        ({1: "long enough to be a key"}, []),
    ],
)
def test_the_deploy_check_refuses_bad_keys(settings, keys, expected):
    settings.ACCESS_CODE_KEYS = keys
    assert [message.id for message in check_access_code_keys()] == expected


def test_a_reissued_code_replaces_the_old_one(maya, django_assert_num_queries):
    old = code_of(maya)
    with django_assert_num_queries(1):
        new = reissue(respondent=maya)

    maya.refresh_from_db()
    assert (maya.issue, code_of(maya)) == (2, new)
    assert bytes(maya.code_digest) in digests(new)
    assert bytes(maya.code_digest) not in digests(old)


def test_simultaneous_reissues_leave_one_valid_code(maya):
    stale = type(maya).objects.get(pk=maya.pk)
    reissue(respondent=maya)
    code = reissue(respondent=stale)

    maya.refresh_from_db()
    assert maya.issue == 3
    assert code_of(maya) == code


# The command -------------------------------------------------------------------


@pytest.fixture
def with_names(administration, maya, noor, lincoln, roosevelt):
    for respondent, school, name in (
        (maya, lincoln, "Maya"),
        (noor, roosevelt, "Noor"),
    ):
        Identity.objects.create(
            respondent=respondent,
            administration=administration,
            district=school.district,
            external_id="00123",
            given_name=name,
            family_name="=HYPERLINK(1)",
        )
    return administration


def csv_rows(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def run(tmp_path, *args):
    path = tmp_path / "codes.csv"
    call_command(
        "access_codes",
        "--administration",
        "students-2027",
        "--output",
        str(path),
        *args,
    )
    return csv_rows(path)


def test_the_command_writes_codes_names_and_links(with_names, maya, tmp_path):
    lines = run(tmp_path, "--base-url", "https://survey.example.org/")

    assert [line["given name"] for line in lines] == ["Noor", "Maya"]
    card = lines[1]
    assert card["code"] == format_code(code_of(maya))
    assert card["link"] == f"https://survey.example.org/#{card['code']}"
    assert (card["school"], card["grade"], card["ID"]) == ("Lincoln", "07", "00123")
    assert card["family name"] == "'=HYPERLINK(1)"
    assert stat.S_IMODE((tmp_path / "codes.csv").stat().st_mode) == 0o600


def test_the_command_is_audited(with_names, lincoln, tmp_path):
    run(tmp_path)
    run(tmp_path, "--school", "lincoln", "--force")
    whole, of_school = AuditEntry.objects.filter(action="download cards").order_by("pk")
    assert (whole.by, whole.after, whole.district_id) == (
        "access_codes",
        {"people": 2},
        None,
    )
    assert (of_school.after, of_school.school_id) == (
        {"people": 1, "school": "lincoln"},
        lincoln.pk,
    )


def test_replaced_codes_mark_card_sets_outdated(with_names, maya, lincoln, tmp_path):
    mine, unrelated = (
        CardSet.objects.create(
            administration=with_names,
            school=school,
            file_name=f"cards/{school.pk}",
            by=by,
        )
        for by in [User.objects.create_user("chen@example.org")]
        for school in (lincoln, School.objects.get(name="Roosevelt"))
    )
    run(tmp_path, "--reissue", "00123", "--district", "riverside")
    mine.refresh_from_db()
    unrelated.refresh_from_db()
    assert mine.outdated_at is not None
    assert unrelated.outdated_at is None
    [entry] = AuditEntry.objects.filter(action="reissue access codes")
    assert (entry.by, entry.school_id) == ("access_codes", lincoln.pk)


def test_people_without_identity_have_codes(maya, tmp_path):
    [line] = run(tmp_path)
    assert line["ID"] == line["given name"] == ""
    assert line["code"] == format_code(code_of(maya))


def test_codes_of_a_single_school(with_names, tmp_path):
    everybody = run(tmp_path)
    assert len(everybody) == 2
    lines = run(tmp_path, "--school", "LINCOLN", "--force")
    assert [line["school"] for line in lines] == ["Lincoln"]


def test_ambiguous_school_names_are_refused(with_names, roosevelt, tmp_path):
    roosevelt.name = "Lincoln"
    roosevelt.save(update_fields=["name"])
    with pytest.raises(CommandError, match="More than one school"):
        run(tmp_path, "--school", "Lincoln")
    lines = run(tmp_path, "--school", "Lincoln", "--district", "riverside")
    assert [line["given name"] for line in lines] == ["Maya"]


def test_withdrawn_people_are_left_out(with_names, maya, tmp_path):
    type(maya).objects.filter(pk=maya.pk).update(withdrawn_at="2027-01-01T00:00Z")
    assert [line["given name"] for line in run(tmp_path)] == ["Noor"]


def test_reissuing_one_code(with_names, maya, noor, tmp_path):
    with pytest.raises(CommandError, match="More than one person"):
        run(tmp_path, "--reissue", "00123")
    before = bytes(noor.code_digest)

    [line] = run(tmp_path, "--reissue", "00123", "--district", "riverside")

    maya.refresh_from_db()
    noor.refresh_from_db()
    assert maya.issue == 2
    assert bytes(maya.code_digest) in digests(normalise(line["code"]))
    assert (noor.issue, bytes(noor.code_digest)) == (1, before)


def test_reissuing_all_codes(with_names, maya, noor, tmp_path):
    lines = run(tmp_path, "--reissue-all")

    for respondent, line in ((noor, lines[0]), (maya, lines[1])):
        respondent.refresh_from_db()
        assert respondent.issue == 2
        assert bytes(respondent.code_digest) in digests(normalise(line["code"]))


def test_files_are_overwritten_only_with_force(with_names, maya, tmp_path):
    (tmp_path / "codes.csv").write_text("something of mine")
    with pytest.raises(CommandError, match="--force"):
        run(tmp_path, "--reissue-all")

    assert (tmp_path / "codes.csv").read_text() == "something of mine"
    maya.refresh_from_db()
    assert maya.issue == 1
    assert [path.name for path in tmp_path.iterdir()] == ["codes.csv"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--school", "Nowhere"], "No school is called Nowhere"),
        (["--reissue", "777"], "No person has the ID 777"),
        (["--base-url", "survey.example.org"], "--base-url"),
        (["--base-url", "https://example.org/?code="], "neither"),
    ],
)
def test_invalid_arguments_are_reported_in_one_line(
    with_names, tmp_path, arguments, message
):
    with pytest.raises(CommandError, match=message):
        run(tmp_path, *arguments)
    assert not list(tmp_path.iterdir())


def test_the_number_of_statements_does_not_depend_on_the_people(
    with_names, administration, lincoln, tmp_path, django_assert_num_queries
):
    # The administration, its schools, one for each of the two schools, and five
    # for the audit.
    with django_assert_num_queries(9):
        run(tmp_path)
    for number in range(3):
        enrol(administration, lincoln, attributes={"n": number})
    with django_assert_num_queries(9):
        assert len(run(tmp_path, "--force")) == 5
