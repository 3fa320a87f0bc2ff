"""The guide for people on call names each finding of the doctor, and no other one."""

from __future__ import annotations

import re

from provisioning.commands import ROOT

GUIDE = ROOT / "docs/guides/on-call.md"
DOCTOR = ROOT / "provisioning/installation/doctor"


def findings() -> set[str]:
    text = "".join(path.read_text() for path in DOCTOR.glob("*.py"))
    return set(re.findall(r'Finding\(\s*"([a-z_]+\.[a-z_]+)"', text))


def named() -> set[str]:
    symptoms = GUIDE.read_text().partition("## Symptoms")[2].partition("\n## ")[0]
    return set(re.findall(r"`([a-z_]+\.(?:[a-z_]+|\*))`", symptoms))


def explains(name: str, finding: str) -> bool:
    return finding.startswith(name[:-1]) if name.endswith("*") else name == finding


def test_each_finding_belongs_to_a_symptom():
    names = named()
    assert len(findings()) > 50
    assert not {
        each for each in findings() if not any(explains(name, each) for name in names)
    }


def test_symptoms_name_findings_that_exist():
    known = findings()
    assert not {
        name for name in named() if not any(explains(name, each) for each in known)
    }
