"""The words on posters and letters with an open code, in three languages."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PaperWords:
    """What posters and letters say besides `start_…` of `survey.taking.messages`."""

    # At the top of a letter.
    greeting: str
    # With {name}: the district, or the state.
    run_by: str
    run_by_state: str
    scan: str
    type: str
    # Above the code.
    code: str
    children: str
    # With {n}.
    limited: str


PAPER_WORDS = {
    "en": PaperWords(
        greeting="Dear parents and families,",
        run_by="The survey is run by {name}.",
        run_by_state="The survey is run by the state.",
        scan="Point the camera of your phone at the square.",
        type="Or open this address and type the code:",
        code="Code",
        children="If you have several children at the school, answer once for each.",
        limited="The first {n} people who begin can take part.",
    ),
    "es": PaperWords(
        greeting="Estimadas familias:",
        run_by="La encuesta la realiza {name}.",
        run_by_state="La encuesta la realiza el estado.",
        scan="Apunte la cámara de su teléfono al cuadro.",
        type="O abra esta dirección y escriba el código:",
        code="Código",
        children="Si tiene varios hijos en la escuela, responda una vez por cada uno.",
        limited="Pueden participar las primeras {n} personas que comiencen.",
    ),
    "ar": PaperWords(
        greeting="إلى أولياء الأمور والعائلات الكرام،",
        run_by="تُجري الاستبيان {name}.",
        run_by_state="تُجري الولاية هذا الاستبيان.",
        scan="وجّهوا كاميرا الهاتف إلى المربع.",
        type="أو افتحوا هذا العنوان واكتبوا الرمز:",
        code="الرمز",
        children="إذا كان لديكم عدة أطفال في المدرسة، فأجيبوا مرة عن كل طفل.",
        limited="يمكن لأول {n} شخصًا يبدأون أن يشاركوا.",
    ),
}
