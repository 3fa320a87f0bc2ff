"""Show how an e-mail will look: previews, and test e-mails to staff themselves.

Neither holds anybody's access code or unsubscribe link: they hold examples.
"""

from __future__ import annotations

from typing import NamedTuple

from django.conf import settings
from django.core.mail import EmailMessage
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import User
from survey.fieldwork.emails.claims import Recipient
from survey.fieldwork.emails.default_texts import EMAIL_WORDS
from survey.fieldwork.emails.delivery import Mailer, ServerProblem
from survey.fieldwork.emails.messages import (
    SAMPLE_CODE,
    texts_of,
    with_footer,
    write_text,
)
from survey.fieldwork.emails.shared_addresses import find_shared_addresses
from survey.fieldwork.emails.templates import words_for
from survey.models import (
    Administration,
    EmailDelivery,
    EmailStep,
    EmailTemplate,
    Job,
    Respondent,
)
from survey.work.job_turns import refuse_many
from survey.work.jobs import JobRefused, Progress, job, start


class Sample(NamedTuple):
    language: str
    to: str
    subject: str
    body: str


def sample_person(
    language: str, address: str, administration: Administration
) -> Recipient:
    """Return a made-up person of the district, or of the state, that asks."""
    district = administration.district
    zone = district.time_zone if district else ""
    return Recipient(0, 1, 0, language, address, "Maya", "Lincoln School", zone)


def person_of(respondent: Respondent) -> Recipient:
    """Return a person as the sender would read them; 0 is nobody's key. 1 statement."""
    identity = respondent.identity
    shared = find_shared_addresses(respondent.administration_id, [identity.email])
    return Recipient(
        0,
        1,
        0,
        respondent.language,
        identity.email,
        identity.given_name,
        respondent.school.name,
        respondent.school.district.time_zone,
        shared.get(respondent.pk),
    )


def write_sample(
    step: EmailStep, administration: Administration, person: Recipient
) -> Sample:
    """Return the text of a step for a person, with an example of a code."""
    texts = texts_of(step, administration)
    language, text = write_text(texts, person, SAMPLE_CODE)
    footer = EMAIL_WORDS[words_for(language)].footer
    link = f"{settings.PUBLIC_ADDRESS}{reverse('unsubscribe', args=['example'])}"
    body = with_footer(text.body, footer, link, texts.signature)
    return Sample(language, person.address, text.subject, body)


def order_test_email(template: EmailTemplate, by: User) -> Job:
    """Raises TooManyJobs."""
    refuse_many(by)
    return start(send_test_email, subject_id=template.pk, by=by)


def latest_test_email(template: EmailTemplate, by: User) -> Job | None:
    jobs = Job.objects.filter(kind=send_test_email.name, subject_id=template.pk, by=by)
    return jobs.order_by("-pk").first()


@job("emails.test", stoppable=False)
def send_test_email(job: Job, progress: Progress) -> None:
    templates = EmailTemplate.objects.select_related(
        "step__schedule__administration__published__survey",
        "step__schedule__administration__district",
    )
    template = templates.filter(pk=job.subject_id or 0).first()
    if template is None or job.by is None:
        raise JobRefused(_("This text was deleted in the meantime."))
    administration = template.step.schedule.administration
    person = sample_person(template.language, job.by.email, administration)
    sample = write_sample(template.step, administration, person)
    mailer = Mailer()
    problem = mailer.open()
    state = None
    if problem is ServerProblem.NONE:
        message = EmailMessage(f"[Test] {sample.subject}", sample.body, to=[sample.to])
        state = mailer.send(message).state
        mailer.close()
    if state != EmailDelivery.State.SENT:
        raise JobRefused(
            _("The mail server did not take the test e-mail. Ask your engineers.")
        )
    progress.begin_step(_("A test e-mail was sent to %(to)s.") % {"to": sample.to})
