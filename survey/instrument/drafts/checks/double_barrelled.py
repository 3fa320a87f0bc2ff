"""Find "and" and "or" that join two ideas in one question.

They also join what is one idea ("back and forth", "paper and pencil"), mostly nouns.
So only three kinds are reported: two adjectives that judge ("clear and fair"), two
groups of people ("teachers and administrators") and two verbs ("help and support me").
"""

from __future__ import annotations

import re

ENGLISH_ADJECTIVES = (
    "accessible|accurate|available|boring|calm|caring|challenging|clean|clear|comfortable"
    "|confident|convenient|courteous|difficult|easy|effective|efficient|engaging|enjoyable"
    "|fair|friendly|fun|happy|healthy|helpful|honest|important|interesting|kind|meaningful"
    "|modern|motivated|open|orderly|polite|positive|prepared|professional|proud|quiet"
    "|relevant|respected|respectful|responsive|safe|satisfied|supported|supportive|timely"
    "|transparent|trusted|trustworthy|understanding|useful|valued|welcome|welcoming"
    "|well-kept|well-maintained"
)
ENGLISH_PEOPLE = (
    "teachers|students|parents|families|administrators|principals?|leaders|staff"
    "|counselors|classmates|friends|adults|colleagues|children|guardians|coaches"
    "|nurses|aides|secretaries|community"
)
# Verbs that are hardly ever nouns, and those that mostly are.
ENGLISH_VERBS = (
    "am|is|are|has|have|do|does|can|could|will|would|know|knows|feel|feels|think|thinks"
    "|like|likes|enjoy|enjoys|learn|learns|understand|understands|listen|listens|explain"
    "|explains|encourage|encourages|provide|provides|give|gives|make|makes|get|gets|keep"
    "|keeps|believe|believes|want|wants|try|tries|treat|treats|receive|receives"
    "|communicate|communicates|ask|asks|tell|tells|solve|solves|recognize|recognizes"
    "|include|includes|follow|follows|enforce|enforces|expect|expects|improve|improves"
    "|read|write|speak|speaks|go|goes|find|finds|set|sets|become|share|shares|appreciate"
    "|appreciates|involve|involves|inform|informs|celebrate|celebrates"
)
ENGLISH_NOUN_VERBS = (
    "help|helps|support|supports|care|cares|respect|respects|trust|trusts|work|works"
    "|value|values|challenge|challenges|praise|praises|plan|plans|talk|talks"
    "|guide|guides|teach|teaches|welcome|welcomes|study|play|use"
)
ENGLISH_SUBJECTS = "i|we|you|they|he|she|it"
ENGLISH_OBJECTS = (
    "me|us|you|him|her|them|my|our|your|their|the|each|all|every|about|with"
)
ENGLISH_JOINED = re.compile(
    rf"\b(?:(?:{ENGLISH_ADJECTIVES}),? (?:and|or) (?:\w+ly |more )?"
    rf"(?:{ENGLISH_ADJECTIVES})"
    rf"|(?:{ENGLISH_PEOPLE}) (?:and|or) (?:other |school |my |the )?"
    rf"(?:{ENGLISH_PEOPLE})"
    rf"|(?:and|or) (?:(?:{ENGLISH_SUBJECTS}) )?(?:\w+ly )?(?:{ENGLISH_VERBS})"
    rf"|(?:and|or) (?:{ENGLISH_NOUN_VERBS}) (?:{ENGLISH_OBJECTS}))\b",
    re.IGNORECASE,
)
# What two groups do with each other is one idea; so are choices and conditions.
ENGLISH_ONE_IDEA = re.compile(
    r"\b(?:each other|one another|together|between|among|whether|for example|such as"
    r"|e\.g\.|if|when|yes or no|all|how [\w-]+ or)\b|\(",
    re.IGNORECASE,
)

SPANISH_ADJECTIVES = (
    "accesibles?|aburrid[oa]s?|adecuad[oa]s?|agradables?|alegres?|amables?|amigables?"
    "|atent[oa]s?|capaz|capaces|clar[oa]s?|cómod[oa]s?|confiables?|difícil(?:es)?"
    "|divertid[oa]s?|eficaz|eficaces|eficientes?|escuchad[oa]s?|fácil(?:es)?|feliz|felices"
    "|honest[oa]s?|importantes?|interesantes?|just[oa]s?|limpi[oa]s?|motivad[oa]s?"
    "|modern[oa]s?|ordenad[oa]s?|orgullos[oa]s?|positiv[oa]s?|preparad[oa]s?"
    "|respetad[oa]s?|respetuos[oa]s?|satisfech[oa]s?|segur[oa]s?|tranquil[oa]s?"
    "|transparentes?|útil(?:es)?|valorad[oa]s?|bienvenid[oa]s?|apoyad[oa]s?"
)
SPANISH_PEOPLE = (
    "maestr[oa]s|docentes|profesor(?:es|as)|estudiantes|alumn[oa]s|padres|madres|familias"
    "|director(?:es|as)?|directiv[oa]s|administradores|personal|consejer[oa]s|compañer[oa]s"
    "|amig[oa]s|adultos|colegas|niños"
)
SPANISH_VERBS = (
    "aprendo|aprenden|entiendo|entienden|escuchan?|explican?|ayudan|apoyan|respetan"
    "|tratan|tienen|tengo|puedo|pueden|saben|siento|sienten|quieren|quiero|hacen|hago"
    "|reciben|recibo|dan|doy|animan|responden|respondo|informan|comunican|resuelven"
    "|comparten|conozco|conocen|valoran|cumplen|son|soy|están|estoy|disfruto|disfrutan"
)
SPANISH_JOINED = re.compile(
    rf"\b(?:(?:{SPANISH_ADJECTIVES}),? (?:y|e|o|u) (?:más |muy )?"
    rf"(?:{SPANISH_ADJECTIVES})"
    rf"|(?:{SPANISH_PEOPLE}) (?:y|e|o|u) (?:los |las |el |la |otros |mis )?"
    rf"(?:{SPANISH_PEOPLE})"
    rf"|(?:y|e|o|u) (?:no )?(?:me|te|se|nos|le|les) \w+(?:a|e|o|an|en|as|es|amos|emos)"
    rf"|(?:y|e|o|u) (?:no )?(?:{SPANISH_VERBS}))\b",
    re.IGNORECASE,
)
SPANISH_ONE_IDEA = re.compile(
    r"\b(?:entre|entre sí|juntos|juntas|unos? a otros?|por ejemplo|como por|si|cuando"
    r"|mutuamente|conjunto|todos|todas|qué tan \w+ o)\b|\(",
    re.IGNORECASE,
)
# "Un maestro o una maestra", "hijo o hija": one person, in both genders.
SPANISH_BOTH_GENDERS = re.compile(
    r"\b(\w{2,})(?:o|os|e|es|or|ores)? (?:o|y|/) (?:(?:un|una|la|las|el|los|su) )?"
    r"\1(?:a|as|ora|oras)\b",
    re.IGNORECASE,
)


def english_joined_ideas(sentence: str) -> str:
    return _joined(sentence, ENGLISH_JOINED, ENGLISH_ONE_IDEA)


def spanish_joined_ideas(sentence: str) -> str:
    one_gender = SPANISH_BOTH_GENDERS.sub(r"\1", sentence)
    return _joined(one_gender, SPANISH_JOINED, SPANISH_ONE_IDEA)


def _joined(sentence: str, joined: re.Pattern[str], one_idea: re.Pattern[str]) -> str:
    match = joined.search(sentence)
    if match is None or one_idea.search(sentence):
        return ""
    before = sentence[: match.start()].split()
    # Verbs are matched from "and" on: the word before shows what it joins.
    if before and re.match(r"(?:and|or|y|e|o|u)\b", match[0], re.IGNORECASE):
        return f"{before[-1]} {match[0]}"
    return match[0]
