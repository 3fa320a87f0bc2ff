from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

from django.core.management.base import BaseCommand, CommandParser

from survey.instrument.foreign.converted import (
    Converted,
    UnreadableQuestionnaire,
)
from survey.instrument.foreign.recognise import convert, program_of
from survey.instrument.foreign.settling import settled
from survey.instrument.xlsform import Reading

OUTCOMES = ("taken", "changed", "refused")


class Command(BaseCommand):
    help = (
        "Convert questionnaires of LimeSurvey, Qualtrics, REDCap and SurveyJS, and"
        " print what would be taken over. Nothing is stored."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", type=Path, nargs="+")
        parser.add_argument(
            "--report", action="store_true", help="print every line of the reports"
        )
        parser.add_argument(
            "--output", type=Path, help="a folder for the converted workbooks"
        )

    def handle(
        self,
        *,
        files: list[Path],
        report: bool,
        output: Path | None,
        **options: object,
    ) -> None:
        self.stdout.write(
            f"{'file':<44} {'program':<15} questions taken changed refused"
            "  rules taken  accepted  s"
        )
        totals: dict[str, Counter[str]] = {}
        for file in files:
            self.convert_file(file, totals, report=report, output=output)
        for program, total in totals.items():
            self.stdout.write(f"{program}: {shares(total)}")

    def convert_file(
        self,
        file: Path,
        totals: dict[str, Counter[str]],
        *,
        report: bool,
        output: Path | None,
    ) -> None:
        content = file.read_bytes()
        program = program_of(content) or "?"
        total = totals.setdefault(program, Counter())
        total["files"] += 1
        started = time.monotonic()
        try:
            converted = convert(content)
        except UnreadableQuestionnaire as refusal:
            self.stdout.write(f"{file.name[-44:]:<44} {program:<15} {refusal}")
            total["unreadable"] += 1
            return
        reading = settled(converted, file.stem)
        seconds = time.monotonic() - started
        counts = counts_of(converted)
        total.update(counts)
        total["accepted"] += not reading.problems
        self.stdout.write(
            f"{file.name[-44:]:<44} {program:<15} {counts['questions']:>9}"
            f" {counts['taken']:>5} {counts['changed']:>7} {counts['refused']:>7}"
            f"  {counts['rules taken']:>4}/{counts['rules']:<6}"
            f" {'no' if reading.problems else 'yes':<8} {seconds:.1f}"
        )
        self.print_details(converted, reading, report=report)
        if output:
            output.mkdir(exist_ok=True)
            (output / f"{file.stem}.xlsx").write_bytes(reading.source)

    def print_details(
        self, converted: Converted, reading: Reading, *, report: bool
    ) -> None:
        for problem in reading.problems:
            self.stdout.write(f"    {problem}")
        if report:
            for line in converted.report:
                words = (line.outcome, line.part, line.place, line.text, line.reason)
                self.stdout.write("    " + " | ".join(words))


def counts_of(converted: Converted) -> Counter[str]:
    counts: Counter[str] = Counter()
    for line in converted.report:
        if line.part == "question":
            counts["questions"] += 1
            counts[line.outcome] += 1
        elif line.part == "rule":
            counts["rules"] += 1
            counts["rules taken"] += line.outcome == "taken"
    return counts


def shares(total: Counter[str]) -> str:
    questions = max(total["questions"], 1)
    parts = [f"{name} {total[name] / questions:.0%}" for name in OUTCOMES]
    rules = max(total["rules"], 1)
    return (
        f"{total['files']} files, {total['unreadable']} unreadable,"
        f" {total['accepted']} accepted; {total['questions']} questions:"
        f" {', '.join(parts)}; {total['rules']} rules:"
        f" {total['rules taken'] / rules:.0%} taken"
    )
