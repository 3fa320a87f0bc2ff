"""The file of a report can be read by a screen reader, and reads nothing else."""

from __future__ import annotations

import io
import re
import subprocess
import zlib
from base64 import b64encode
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.conf import settings
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.html import format_html
from fontTools.ttLib import TTFont
from PIL import Image
from weasyprint.urls import FatalURLFetchingError

from reports.school_report.pdf import NoPdf, pdf_files
from reports.school_report.pdf_process import BASE, PNG, StaticFileFetcher
from survey.instrument import translations

PAGE = """<!doctype html><html lang="es"><head><title>Informe de Lincoln</title>
<link rel="stylesheet" href="css/school_report_print.css">{head}</head>
<body><h1>Lincoln</h1><h2>Confianza</h2>{body}</body></html>"""
TABLE = """<table><thead><tr><th scope="col">Lugar</th><th scope="col">Puntos</th></tr>
</thead><tbody><tr><th scope="row">Lincoln</th><td>62</td></tr></tbody></table>"""


def objects(content: bytes) -> str:
    """Return the objects of a PDF as text, with those of its object streams."""
    parts = []
    for stream in re.finditer(rb"stream\r?\n(.*?)endstream", content, re.S):
        try:
            parts.append(zlib.decompress(stream[1]))
        except zlib.error:
            parts.append(stream[1])
    bare = re.sub(rb"stream\r?\n.*?endstream", b"", content, flags=re.S)
    return (bare + b"\n".join(parts)).decode("latin-1")


def strip(title: str) -> str:
    return format_html(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 16" width="200"'
        ' height="16"><title>{}</title><rect width="40" height="12"/></svg>',
        title,
    )


def test_a_file_is_tagged_titled_and_has_bookmarks():
    html = PAGE.format(head="", body=TABLE + strip("Lincoln: 62, strong"))
    content = objects(pdf_files({"a": html})["a"])
    assert "/MarkInfo" in content and "/Marked true" in content
    assert "/StructTreeRoot" in content
    assert "/Lang (es)" in content
    assert "/DisplayDocTitle true" in content
    assert "(Informe de Lincoln)" in content
    assert "pdfuaid:part" in content
    for tag in ("H1", "H2", "Table", "THead", "TH", "TD", "Figure"):
        assert re.search(rf"/S /{tag}\b", content), tag
    assert "/Alt (Lincoln: 62, strong)" in content
    assert re.search(r"/Headers \[\(.*?\) ?\(.*?\)", content)
    assert "/Outlines" in content and "/Title (Confianza)" in content
    # The product's font, as a part of the file.
    assert "+Report" in content and "/FontFile" in content


def test_a_file_in_arabic_has_its_bookmarks_and_the_font_all_letters():
    page = PAGE.replace('lang="es"', 'lang="ar" dir="rtl"').replace(
        "Confianza", "الثقة"
    )
    content = objects(pdf_files({"a": page.format(head="", body=TABLE)})["a"])
    assert "/Lang (ar)" in content and "+Report" in content
    assert f"/Title <feff{'الثقة'.encode('utf-16-be').hex()}>" in content
    [catalog] = translations.report_files()
    letters = {ord(letter) for letter in catalog.read_text() if letter > " "}
    for name in ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf"):
        with TTFont(settings.BASE_DIR / "static" / "fonts" / name) as font:
            assert letters <= font.getBestCmap().keys()


def test_a_figure_without_a_text_has_none():
    """Shows that the test above would notice."""
    svg = strip("x").replace("<title>x</title>", "")
    content = objects(pdf_files({"a": PAGE.format(head="", body=svg)})["a"])
    assert "/S /Figure" in content and "/Alt" not in content


@pytest.mark.parametrize(
    "address",
    [
        "https://example.org/x.png",
        "http://169.254.169.254/latest/meta-data",
        "file:///etc/passwd",
        f"file://{settings.BASE_DIR}/static/img/mark.svg",
        "data:text/plain,x",
        "data:image/svg+xml;base64,PHN2Zy8+",
        "data:image/png;base64,no picture",
        "ftp://example.org/x",
        f"{BASE}../manage.py",
        f"{BASE}css/../../manage.py",
        f"{BASE}%2e%2e/manage.py",
        f"{BASE}/etc/passwd",
        f"{BASE}img/mark.svg",
        "https://static.invalid.example.org/css/base.css",
    ],
)
def test_only_static_files_are_read(address):
    fetcher = StaticFileFetcher(settings.BASE_DIR / "static")
    for ask in (fetcher.fetch, fetcher, fetcher.open):
        with pytest.raises((FatalURLFetchingError, ValueError)):
            ask(address)
    css = fetcher.fetch(f"{BASE}css/school_report_print.css")
    assert b"@page" in css.read()
    assert css.content_type == "text/css"


@pytest.mark.parametrize(
    "part",
    [
        '<img alt="x" src="{}">',
        '<link rel="stylesheet" href="{}">',
        '<style>@import url("{}");</style>',
        '<style>body {{ background: url("{}") }}</style>',
        '<style>@font-face {{ font-family: x; src: url("{}") }} p {{ font-family: x }}'
        "</style><p>x</p>",
        '<object data="{}"></object>',
        '<link rel="attachment" href="{}">',
    ],
)
def test_no_document_reaches_a_file(part, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    html = PAGE.format(head="", body=part.format(secret.as_uri()))
    with pytest.raises(NoPdf):
        pdf_files({"a": html})


def test_without_the_protection_a_file_is_read(tmp_path):
    from weasyprint import HTML

    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    html = f'<link rel="attachment" href="{secret.as_uri()}"><p>x</p>'
    content = HTML(string=html).write_pdf()
    assert "secret" in objects(content)


def test_no_drawing_shows_an_image(tmp_path):
    from weasyprint import HTML

    image = tmp_path / "image.png"
    Image.new("RGB", (9, 9)).save(image)
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">'
        f'<image href="{image.as_uri()}" width="9" height="9"/></svg>'
    )
    content = objects(pdf_files({"a": PAGE.format(head="", body=svg)})["a"])
    assert "/Subtype /Image" not in content
    # Without the protection, it does.
    assert "/Subtype /Image" in objects(HTML(string=svg).write_pdf())


def test_the_process_has_no_secrets(monkeypatch):
    seen = {}

    def start(command, **options):
        seen.update(options["env"])
        raise OSError

    monkeypatch.setenv("GROUNDSWELL_SECRET_KEY", "secret")
    monkeypatch.setattr("reports.school_report.pdf.subprocess.Popen", start)
    with pytest.raises(NoPdf):
        pdf_files({"a": ""})
    assert set(seen) == {"PATH", "LANG"}


def test_two_processes_make_many_documents():
    pages = {name: PAGE.format(head="", body=name) for name in ("a", "b", "c")}
    files = pdf_files(pages)
    assert list(files) == ["a", "b", "c"]
    assert all(content.startswith(b"%PDF") for content in files.values())


@pytest.mark.parametrize("bad", ["a", "b"])
def test_one_that_fails_ends_both_processes(bad, monkeypatch, caplog):
    started = []
    popen = subprocess.Popen

    def start(command, **options):
        started.append(popen(command, **options))
        return started[-1]

    monkeypatch.setattr("reports.school_report.pdf.subprocess.Popen", start)
    # The document is a folder, which cannot be read.
    monkeypatch.setattr(
        Path,
        "write_text",
        lambda path, text: path.mkdir() if path.stem == bad else path.write_bytes(b""),
    )
    with pytest.raises(NoPdf):
        pdf_files({"a": "", "b": ""})
    assert len(started) == 2
    assert all(process.returncode is not None for process in started)
    assert "IsADirectoryError" in caplog.text


def test_a_document_that_takes_too_long_is_given_up():
    with pytest.raises(NoPdf):
        pdf_files({"a": PAGE.format(head="", body="")}, seconds=0.05)


def test_the_template_names_only_static_files():
    source = Path(settings.BASE_DIR, "templates/reports/school_report_print.html")
    address, logo = re.findall(r'(?:href|src)="([^"]*)"', source.read_text())
    assert Path(settings.BASE_DIR, "static", address).exists()
    # A picture in the document.
    assert logo == "{{ brand.logo }}"


def picture() -> str:
    content = io.BytesIO()
    Image.new("RGB", (9, 9)).save(content, "PNG")
    return f"{PNG}{b64encode(content.getvalue()).decode()}"


def test_a_logo_in_the_document_is_shown():
    image = f'<img src="{picture()}" alt="State of Ohio">'
    content = objects(pdf_files({"a": PAGE.format(head="", body=image)})["a"])
    assert "/Subtype /Image" in content and "/Alt (State of Ohio)" in content


def text(words: str) -> SimpleNamespace:
    return SimpleNamespace(html=words, attributes="")


def long_report() -> SimpleNamespace:
    """Return a report with long texts, and as much that stands out as is named."""
    theme = SimpleNamespace(
        **{"score": 35, "text": "35", "band": "débil", "tone": 2},
        **{"is_doubtful": True, "words": "débil, pero podría ser neutro"},
        interval="Entre 20 y 50",
    )
    label = text("Un lugar tranquilo y justo")
    part = SimpleNamespace(
        **{"label": label, "own_line": theme, "is_positive": True},
        description=text("Las personas se conocen y se extrañan cuando faltan."),
        picture=strip("35"),
        sentence="35 puntos de 99: débil, pero podría ser neutro. Riverside: 39",
        change=SimpleNamespace(
            points="−10", words="−10, demasiado incierto para hablar de un cambio"
        ),
        trend=[1, 2],
        around=[SimpleNamespace(name=name, text="44") for name in ("Todas", "Norte")],
        items=[(text("En la escuela se alegran cuando me va bien."), False)] * 6,
        last_time=SimpleNamespace(name="Mi escuela y yo, mayo de 2025"),
    )
    question = SimpleNamespace(
        stem=text("Piensa en la mayoría de tus maestros. ¿Qué tan de acuerdo estás?"),
        chart=SimpleNamespace(
            label=text("Alguien se da cuenta cuando falto."), name="q"
        ),
        good_answers="“De acuerdo” o “Muy de acuerdo”",
        words="El 31 % respondió “De acuerdo” o “Muy de acuerdo”",
        **{
            "share": SimpleNamespace(words="31 %"),
            "change": SimpleNamespace(text="−34"),
        },
    )
    named = {"strongest": [question] * 3, "weakest": [question] * 3}
    return SimpleNamespace(
        **{"frame_language": "es", "direction": "ltr", "last_time": True},
        **{"is_of_people": True, "benchmarks": ["Mi escuela y yo, mayo de 2025"]},
        school=SimpleNamespace(
            name="Riverside High School", district=SimpleNamespace(name="Riverside")
        ),
        administration=SimpleNamespace(title="Mi escuela y yo, mayo de 2026"),
        rate_sentence="Terminaron 27 de 36 (75 %); un informe necesita 18.",
        line=SimpleNamespace(rate_words="75 %"),
        bands=[(n, "40–59", "neutro") for n in range(1, 6)],
        overview=SimpleNamespace(
            sentence="0 de 4 temas son fuertes. 2 no están calificados.",
            legend=[(strip("Punto"), "Riverside High School")] * 3,
            **{"has_uncertain_change": True, "themes": [part] * 4},
            **{"strongest": [part] * 2, "weakest": [part] * 2, "changed": [part]},
        ),
        highlights=SimpleNamespace(
            **{"questions": [question], "scope": "Se comparan 31 preguntas."},
            **{"changed": [question] * 3, "compared": "Mi escuela y yo, mayo de 2025"},
            **{"has_directions": True, "has_changes": True, **named},
        ),
        essentials=[(part, [part] * 3), (part, [part]), (part, [part])],
        other_measures=[part],
    )


def test_a_long_report_in_spanish_has_two_pages():
    with translation.override("es"):
        html = render_to_string(
            "reports/school_report_print.html", {"report": long_report()}
        )
    content = objects(pdf_files({"a": html})["a"])
    assert len(re.findall(r"/Type /Page\b", content)) == 2
