"""What a report requires of a run, and when a run may be repeated."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from provisioning.prove.fault_injection import __main__ as command
from provisioning.prove.fault_injection.controls import ControlResult
from provisioning.prove.fault_injection.faults import Fault, PrimaryLoss
from provisioning.prove.fault_injection.report import InjectedFault, Report, RunOptions
from provisioning.prove.fault_injection.run import TooSlow
from provisioning.prove.fault_injection.start import arguments
from provisioning.prove.fault_injection.verdict import FORBIDDEN, Finding, Verdict

OPTIONS = RunOptions(
    seed=1,
    faults=[],
    saves=100,
    minutes=1,
    rate=100,
    window=2,
    calm=1,
    warm=1,
    respondents=10,
    slower=1.1,
    prevented={},
)
CONTROL = ControlResult("a row deleted", "lost", 1, 0, 1.0, True)


def injected(**changes):
    """Return an injected fault; changes are to it, or to the fault."""
    kinds = {
        name: changes.pop(name)
        for name in ("helper", "unharmed", "name")
        if name in changes
    }
    fault = Fault(**{"name": "x", "description": "", "inject": None, **kinds})
    return InjectedFault(fault, **{"recovered": 0.0, **changes})


def good_report():
    return Report(
        1,
        OPTIONS,
        Verdict([], acknowledged=100, attempts=120),
        [injected(name=f"fault {n}", recovered=1.0) for n in range(10)],
        controls=[CONTROL],
    )


def test_a_good_run_is_green(capsys):
    report = good_report()
    report.print()
    assert report.status == 0
    output = capsys.readouterr().out
    assert "Every requirement holds" in output
    assert output.splitlines()[-1].startswith('{"seed": 1, "N": 100, "K": 10,')


@pytest.mark.parametrize("count", FORBIDDEN)
def test_one_forbidden_finding_fails_the_run(count):
    report = good_report()
    report.verdict = Verdict([Finding(count, 1, 1)], 100, 120)
    assert report.status == 1
    assert report.shortcomings() == [f"{count} 1"]


def test_a_recovered_save_is_no_failure():
    report = good_report()
    report.verdict = Verdict([Finding("recovered", 1, 1)], 100, 120)
    assert report.status == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda report: setattr(report, "verdict", None),
        lambda report: setattr(report, "failure", "a driver died"),
        lambda report: [setattr(fault, "missed", "x") for fault in report.faults[:2]],
    ],
    ids=["no final read", "dead drivers", "eight of ten faults"],
)
def test_a_run_that_proves_nothing_is_void_and_not_green(change, capsys):
    report = good_report()
    change(report)
    assert report.status == 2
    report.print()
    assert "Void: " in capsys.readouterr().out


def test_nine_of_ten_faults_are_enough():
    report = good_report()
    report.faults[0].missed = "it was not running"
    assert report.status == 0


@pytest.mark.parametrize(
    "fault",
    [
        injected(recovered=None),
        injected(recovered=10.1),
        injected(unharmed=True, failures=Counter({"cut": 1})),
    ],
)
def test_a_late_recovery_or_a_failed_deployment_fails_the_run(fault):
    report = good_report()
    report.faults.append(fault)
    assert report.status == 1


def test_a_save_that_was_resent_at_once_is_no_failure():
    report = good_report()
    failures = Counter({"resent": 3})
    report.faults.append(injected(unharmed=True, failures=failures))
    assert report.status == 0


@pytest.mark.parametrize(("ratio", "status"), [(1.09, 0), (1.2, 1)])
def test_saves_have_to_be_fast_without_a_helper(ratio, status):
    report = good_report()
    report.faults.append(injected(helper="redis", ratio=ratio))
    assert report.status == status


def test_too_few_saves_fail_the_run():
    report = good_report()
    report.verdict = Verdict([], acknowledged=99, attempts=120)
    assert report.status == 1


def test_a_control_that_finds_nothing_fails_the_run():
    report = good_report()
    report.controls.append(replace(CONTROL, findings=0, as_required=False))
    assert report.status == 1


@pytest.mark.parametrize(
    ("promise", "lost", "recovered", "status"),
    [
        ("A2", 0, 20.0, 0),
        ("A2", 1, 20.0, 1),
        ("A1", 3, 20.0, 0),
        ("A2", 0, 61.0, 1),
        ("A1", 0, None, 1),
    ],
)
def test_the_loss_of_the_primary_is_judged_by_its_promise(
    promise, lost, recovered, status
):
    report = good_report()
    report.primary_loss = PrimaryLoss(
        promise, began=1.0, recovered=recovered, lost=lost
    )
    assert report.status == status


def test_only_saves_acknowledged_by_the_old_primary_are_excused():
    loss = PrimaryLoss("A1", began=100.0, ended=110.0)
    lost = [Finding("lost", 1, 1, moment) for moment in (99.0, 105.0, 111.0)]
    assert [loss.explains(finding) for finding in lost] == [False, True, False]
    assert not loss.explains(Finding("crossed", 1, 1))


# Repeating a run


def slow(report):
    report.faults.append(injected(recovered=30.0))


def lossy(report):
    report.verdict = Verdict([Finding("lost", 1, 1)], 100, 120)


def void(report):
    for fault in report.faults[:2]:
        fault.missed = "it was not running"


def objecting(report):
    report.controls.append(replace(CONTROL, findings=0, as_required=False))


def unread(report):
    report.verdict = None


@pytest.mark.parametrize(
    ("changes", "may_repeat"),
    [
        ([], False),
        ([slow], True),
        ([void], True),
        ([lossy], False),
        ([slow, lossy], False),
        ([void, lossy], False),
        ([unread], False),
        ([objecting], False),
        ([slow, objecting], False),
    ],
)
def test_only_a_run_without_wrong_answers_may_be_repeated(changes, may_repeat):
    report = good_report()
    for change in changes:
        change(report)
    assert report.may_repeat() == may_repeat


@pytest.mark.parametrize("count", FORBIDDEN)
def test_each_kind_of_wrong_answer_fails_at_once(count):
    report = good_report()
    slow(report)
    report.verdict = Verdict([Finding(count, 1, 1)], 100, 120)
    assert not report.may_repeat()


def test_a_repeated_run_is_not_repeated_again():
    report = good_report()
    slow(report)
    report.is_repeated = True
    assert not report.may_repeat()
    assert report.status == 1


@pytest.fixture
def runs(monkeypatch):
    """Change each run's report instead of running; a change is used once."""
    runs = []

    def run_once(options, seed):
        report = good_report()
        runs.pop(0)(report)
        return report

    monkeypatch.setattr(command, "_run_once", run_once)
    return runs


def too_slow_to_begin(report):
    raise TooSlow("The stack serves too few saves before any fault: 3 a second")


@pytest.mark.parametrize("first", [slow, void, too_slow_to_begin])
def test_a_quick_run_that_is_too_slow_is_repeated_once(runs, capsys, first):
    runs += [first, lambda report: None]
    report = command.run_faults(arguments(["--quick"]), 1)
    assert runs == []
    assert (report.is_repeated, report.status) == (True, 0)
    assert "it is repeated once" in capsys.readouterr().out


def test_a_second_slow_run_fails(runs):
    runs += [slow, slow, lossy]
    report = command.run_faults(arguments(["--quick"]), 1)
    assert runs == [lossy]
    assert report.status == 1


def test_a_second_run_that_is_too_slow_to_begin_is_refused(runs):
    runs += [slow, too_slow_to_begin]
    with pytest.raises(TooSlow):
        command.run_faults(arguments(["--quick"]), 1)


@pytest.mark.parametrize("first", [lossy, unread])
def test_a_quick_run_with_wrong_answers_is_not_repeated(runs, first):
    runs += [first, slow]
    report = command.run_faults(arguments(["--quick"]), 1)
    assert runs == [slow]
    assert not report.is_repeated
    assert report.status > 0


@pytest.mark.parametrize("options", [[], ["--only=redis-down"]])
def test_a_long_run_is_never_repeated(runs, options):
    runs += [slow, slow]
    report = command.run_faults(arguments(options), 1)
    assert runs == [slow]
    assert report.status == 1
