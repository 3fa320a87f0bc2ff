"""The texts with which a schedule begins, and the words around every text.

No text says whether its reader has answered: other people read mailboxes too.
"""

from __future__ import annotations

from typing import NamedTuple

from survey.models import EmailStep

Kind = EmailStep.Kind


class Text(NamedTuple):
    subject: str
    body: str


class EmailWords(NamedTuple):
    # Under every e-mail, above the link.
    footer: str
    # The page behind that link.
    question: str
    explanation: str
    button: str
    done: str
    done_explanation: str


DEFAULT_TEXTS: dict[str, dict[str, Text]] = {
    "en": {
        Kind.INVITATION: Text(
            "{survey}: your invitation",
            """Hello {name},

{school} invites you to take this survey: {survey}.

Open this link to begin:
{link}

The link is yours alone, like a password. You can also type your access code,
{code}, at the start of the survey.

The survey is open until {closes}. You can stop and continue later.
""",
        ),
        Kind.REMINDER: Text(
            "{survey}: open until {closes}",
            """Hello {name},

This survey is open until {closes}: {survey}.

Open this link to begin or to continue:
{link}

If you have already finished, thank you: there is nothing left to do.
""",
        ),
        Kind.THANKS: Text(
            "{survey}: thank you",
            """Hello {name},

The survey {survey} is closed. Thank you to everyone who took part.

{school}
""",
        ),
    },
    # Without imperatives: they would say "tú" to pupils and "usted" to parents
    # and teachers, who get the same e-mails.
    "es": {
        Kind.INVITATION: Text(
            "{survey}: invitación",
            """Hola, {name}:

{school} invita a responder esta encuesta: {survey}.

Enlace para comenzar:
{link}

El enlace es personal, como una contraseña. También se puede escribir el código
de acceso, {code}, al comienzo de la encuesta.

La encuesta está abierta hasta el {closes}. Se puede parar y seguir más tarde.
""",
        ),
        Kind.REMINDER: Text(
            "{survey}: abierta hasta el {closes}",
            """Hola, {name}:

Esta encuesta está abierta hasta el {closes}: {survey}.

Enlace para comenzar o continuar:
{link}

A quienes ya terminaron, gracias: no queda nada por hacer.
""",
        ),
        Kind.THANKS: Text(
            "{survey}: gracias",
            """Hola, {name}:

La encuesta {survey} está cerrada. Gracias a todas las personas que participaron.

{school}
""",
        ),
    },
    "ar": {
        Kind.INVITATION: Text(
            "{survey}: دعوة للمشاركة",
            """مرحبًا {name}،

تدعوك {school} إلى الإجابة عن هذا الاستبيان: {survey}.

افتح هذا الرابط للبدء:
{link}

هذا الرابط لك وحدك، مثل كلمة السر. يمكنك أيضًا كتابة رمز الدخول في بداية الاستبيان:
{code}

الاستبيان متاح حتى {closes}. يمكنك التوقف والمتابعة لاحقًا.
""",
        ),
        Kind.REMINDER: Text(
            "{survey}: متاح حتى {closes}",
            """مرحبًا {name}،

هذا الاستبيان متاح حتى {closes}: {survey}.

افتح هذا الرابط للبدء أو المتابعة:
{link}

إذا كنت قد أنهيت الاستبيان فشكرًا لك، ولا يلزمك فعل شيء.
""",
        ),
        Kind.THANKS: Text(
            "{survey}: شكرًا",
            """مرحبًا {name}،

أُغلق الاستبيان {survey}. شكرًا لكل من شارك.

{school}
""",
        ),
    },
}

EMAIL_WORDS = {
    "en": EmailWords(
        footer="To get no more e-mails about surveys, open this link:",
        question="Stop e-mails about surveys?",
        explanation="We will send no more invitations and reminders to this address."
        " Your access code still works.",
        button="Stop e-mails",
        done="No more e-mails will come",
        done_explanation="We will send no more invitations and reminders to this"
        " address. Your access code still works.",
    ),
    "es": EmailWords(
        footer="Enlace para no recibir más correos sobre encuestas:",
        question="¿No recibir más correos sobre encuestas?",
        explanation="No enviaremos más invitaciones ni recordatorios a esta"
        " dirección. El código de acceso sigue siendo válido.",
        button="No recibir más correos",
        done="No llegarán más correos",
        done_explanation="No enviaremos más invitaciones ni recordatorios a esta"
        " dirección. El código de acceso sigue siendo válido.",
    ),
    "ar": EmailWords(
        footer="لإيقاف الرسائل المتعلقة بالاستبيانات، افتح هذا الرابط:",
        question="إيقاف الرسائل المتعلقة بالاستبيانات؟",
        explanation="لن نرسل بعد الآن دعوات أو تذكيرات إلى هذا العنوان. يبقى رمز"
        " الدخول صالحًا.",
        button="إيقاف الرسائل",
        done="لن تصلك رسائل أخرى",
        done_explanation="لن نرسل بعد الآن دعوات أو تذكيرات إلى هذا العنوان. يبقى رمز"
        " الدخول صالحًا.",
    ),
}
