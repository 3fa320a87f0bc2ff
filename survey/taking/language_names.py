"""Languages as their readers call them, and the one that a survey lacks.

The author of a survey names its languages, often in English: "Spanish". A person who
looks for their language does not read that, and a screen reader would speak it with
the sounds of Spanish.
"""

from __future__ import annotations

from functools import lru_cache

from django.utils.html import format_html
from django.utils.safestring import SafeString

from survey.instrument.definitions.schema import LanguageDefinition, SurveyDefinition
from survey.taking import messages

# The language's own name, then what it is called in English. Those of the schools of
# the United States; another one keeps the name that the author gave it.
NAMES: dict[str, tuple[str, ...]] = {
    "am": ("አማርኛ", "Amharic"),
    "ar": ("العربية", "Arabic"),
    "bn": ("বাংলা", "Bengali", "Bangla"),
    "bs": ("Bosanski", "Bosnian"),
    "ckb": ("کوردی", "Kurdish", "Central Kurdish", "Sorani"),
    "de": ("Deutsch", "German"),
    "el": ("Ελληνικά", "Greek"),
    "en": ("English",),
    "es": ("Español", "Spanish"),
    "fa": ("فارسی", "Persian", "Farsi"),
    "fil": ("Filipino",),
    "fr": ("Français", "French"),
    "gu": ("ગુજરાતી", "Gujarati"),
    "he": ("עברית", "Hebrew"),
    "hi": ("हिन्दी", "Hindi"),
    "hmn": ("Hmoob", "Hmong"),
    "hr": ("Hrvatski", "Croatian"),
    "ht": ("Kreyòl ayisyen", "Haitian Creole", "Haitian"),
    "hy": ("Հայերեն", "Armenian"),
    "it": ("Italiano", "Italian"),
    "ja": ("日本語", "Japanese"),
    "ka": ("ქართული", "Georgian"),
    "km": ("ខ្មែរ", "Khmer"),
    "ko": ("한국어", "Korean"),
    "lo": ("ລາວ", "Lao"),
    "ml": ("മലയാളം", "Malayalam"),
    "mr": ("मराठी", "Marathi"),
    "my": ("မြန်မာ", "Burmese", "Myanmar"),
    "ne": ("नेपाली", "Nepali"),
    "om": ("Oromoo", "Oromo"),
    "pa": ("ਪੰਜਾਬੀ", "Punjabi", "Panjabi"),
    "pl": ("Polski", "Polish"),
    "prs": ("دری", "Dari"),
    "ps": ("پښتو", "Pashto"),
    "pt": ("Português", "Portuguese"),
    "ro": ("Română", "Romanian"),
    "ru": ("Русский", "Russian"),
    "rw": ("Ikinyarwanda", "Kinyarwanda"),
    "sm": ("Gagana Samoa", "Samoan"),
    "so": ("Soomaali", "Somali"),
    "sq": ("Shqip", "Albanian"),
    "sr": ("Српски", "Serbian"),
    "sw": ("Kiswahili", "Swahili"),
    "ta": ("தமிழ்", "Tamil"),
    "te": ("తెలుగు", "Telugu"),
    "th": ("ไทย", "Thai"),
    "ti": ("ትግርኛ", "Tigrinya"),
    "tl": ("Tagalog",),
    "tr": ("Türkçe", "Turkish"),
    "uk": ("Українська", "Ukrainian"),
    "ur": ("اردو", "Urdu"),
    "vi": ("Tiếng Việt", "Vietnamese"),
    "zh": ("中文", "Chinese", "Mandarin"),
    "zh-hans": ("简体中文", "Simplified Chinese", "Chinese, Simplified"),
    "zh-hant": ("繁體中文", "Traditional Chinese", "Chinese, Traditional"),
}


@lru_cache(maxsize=1024)
def own_name(code: str, name: str) -> str:
    """Return a language's own name, unless the author's name says more than English."""
    names = NAMES.get(code.lower()) or NAMES.get(messages.base_of(code))
    usual = {code.casefold(), *(known.casefold() for known in names or ())}
    return names[0] if names and name.casefold() in usual else name


def languages_of(definition: SurveyDefinition) -> list[LanguageDefinition]:
    """Return a survey's languages with their own names, in the order of menus."""
    languages = definition["languages"]
    named: list[LanguageDefinition] = [
        {**language, "name": own_name(language["code"], language["name"])}
        for language in languages
    ]
    # Two kinds of one language: only the author's names tell them apart.
    is_clear = len({language["name"] for language in named}) == len(named)
    return messages.in_menu_order(named if is_clear else languages)


def missing_language(chosen: str, definition: SurveyDefinition) -> str:
    """Return a language of the login page that a survey lacks, else ""."""
    has = {messages.base_of(language["code"]) for language in definition["languages"]}
    return chosen if chosen in messages.MESSAGES and chosen not in has else ""


def missing_language_notice(
    missing: str, definition: SurveyDefinition, shown: str
) -> SafeString | str:
    """Say in the language that is missing which one is shown."""
    if not missing:
        return ""
    words = messages.MESSAGES[missing]
    names = {entry["code"]: entry["name"] for entry in languages_of(definition)}
    text = words["language_missing"].format(
        language=words["language_name"], shown=names[shown]
    )
    return format_html(
        '<p class="notice" id="language-missing" lang="{}" dir="{}">{}</p>',
        missing,
        messages.direction(missing),
        text,
    )
