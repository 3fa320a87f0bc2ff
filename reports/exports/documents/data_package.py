"""Write a data package (https://datapackage.org/, version 2), in JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

from reports.exports.documents.described_file import DescribedFile
from reports.exports.typed.columns import Column, Storage

PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
TYPES = {
    Storage.NUMBER: "number",
    Storage.DAY: "date",
    Storage.TIME: "time",
    Storage.MOMENT: "datetime",
    Storage.TEXT: "string",
}
MEDIA_TYPES = {
    ".csv": "text/csv",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".parquet": "application/vnd.apache.parquet",
}
BINARY = "application/octet-stream"


def document(file: DescribedFile) -> bytes:
    suffix = file.export.suffix
    resource = {
        "name": "responses",
        "path": file.name,
        "format": suffix[1:],
        "mediatype": MEDIA_TYPES.get(suffix, BINARY),
        "bytes": file.size,
        "hash": f"sha256:{file.sha256}",
        "schema": {"fields": [_field(column, file) for column in file.columns]},
    }
    if suffix == ".csv":
        resource["encoding"] = "utf-8"
    package: dict[str, object] = {
        "$schema": PROFILE,
        "name": file.export.stem,
        "title": file.title,
        "resources": [resource],
    }
    if file.consent_texts:
        # A property of our own, which the specification allows.
        package["consent"] = [
            {"field": name, **asdict(text)} for name, text in file.consent_texts
        ]
    return json.dumps(package, ensure_ascii=False, indent=1).encode()


def _field(column: Column, file: DescribedFile) -> Mapping[str, object]:
    about = column.about
    field: dict[str, object] = {
        "name": column.name,
        "type": TYPES[column.storage],
        "title": about.label,
    }
    missing = [
        {"value": str(code), "label": reason} for code, reason in about.missing.items()
    ]
    if not file.export.is_typed:
        # "*" is what is left out, and no code.
        for entry in missing:
            if entry["value"] == str(about.masked):
                entry["value"] = "*"
        missing.append({"value": "", "label": "Blank"})
    if missing:
        field["missingValues"] = missing
    if about.values and not file.is_long:
        is_number = column.storage is Storage.NUMBER
        field["categories"] = [
            {"value": float(value) if is_number else value, "label": label}
            for value, label in about.values.items()
        ]
        field["categoriesOrdered"] = about.level == "ordinal"
    return field
