"""Examples for platforms, to be copied and adapted.

Checked against the platforms' documentation of November 2026:
- Braze, Connected Content: a GET while the message is rendered; it keeps replies
  for five minutes unless `:no_cache`, and logs addresses, not headers.
- Mailchimp has no requests at the moment of sending: a script writes merge fields
  beforehand. It sends to members with the tag `survey-remind`.
- Twilio: Studio's widget Make HTTP Request sends no headers of one's own, so a
  Function asks, and Studio runs it with the widget Run Function.
"""

from __future__ import annotations

from typing import NamedTuple

from django.utils.translation import gettext as _


class Example(NamedTuple):
    platform: str
    about: str
    code: str


BRAZE = """\
{{% connected_content {address}/{{{{custom_attribute.${{survey_key}}}}}}.json
   :headers {{"Authorization": "Bearer YOUR_API_KEY"}}
   :no_cache
   :retry
   :save survey %}}
{{% if survey.send != true %}}
  {{% abort_message('no reminder') %}}
{{% endif %}}
{{% if survey.language == 'es' %}}
Quedan {{{{survey.days_left}}}} días: encuesta de {{{{survey.school}}}}
{{% else %}}
{{{{survey.days_left}}}} days left: survey of {{{{survey.school}}}}
{{% endif %}}
{{{{survey.link}}}}
"""
MAILCHIMP = """\
# Run shortly before a campaign to the segment "tagged with survey-remind".
# Needs curl and jq. contacts.csv: e-mail address and survey_key of each member.
while IFS=, read -r email key; do
  reply=$(curl --silent --fail --header "Authorization: Bearer $SURVEY_API_KEY" \\
    "{address}/$key.json") || continue
  hash=$(printf %s "$email" | tr 'A-Z' 'a-z' | md5sum | cut -d ' ' -f 1)
  member="https://$SERVER.api.mailchimp.com/3.0/lists/$LIST_ID/members/$hash"
  printf %s "$reply" |
    jq '{{merge_fields: {{SCHOOL: .school, DAYSLEFT: .days_left, SURVEY: .link}}}}' |
    curl --silent --fail --user "any:$MAILCHIMP_API_KEY" --request PATCH \\
      --header 'Content-Type: application/json' --data @- "$member" > /dev/null
  printf %s "$reply" |
    jq '{{tags: [{{name: "survey-remind",
        status: (if .send then "active" else "inactive" end)}}]}}' |
    curl --silent --fail --user "any:$MAILCHIMP_API_KEY" \\
      --header 'Content-Type: application/json' --data @- "$member/tags"
done < contacts.csv
"""
TWILIO = """\
// A Function, with SURVEY_API_KEY among its environment variables. In Studio, the
// widget Run Function passes survey_key; afterwards, Split Based On
// {{{{widgets.ask_survey.parsed.send}}}}.
exports.handler = async (context, event, callback) => {{
  const reply = await fetch(`{address}/${{event.survey_key}}.json`, {{
    headers: {{ Authorization: `Bearer ${{context.SURVEY_API_KEY}}` }},
  }});
  if (!reply.ok) return callback(`The survey answered ${{reply.status}}.`);
  return callback(null, await reply.json());
}};
"""


def examples_for(address: str) -> list[Example]:
    """Return the examples; `address` is the platform's, without a person."""
    return [
        Example(
            "Braze",
            _(
                "Import the keys of people as the custom attribute"
                " survey_key. This goes into the message body (Connected"
                " Content)."
            ),
            BRAZE.format(address=address),
        ),
        Example(
            "Mailchimp",
            _(
                "Mailchimp does not ask while it sends. This script writes"
                " merge fields and a tag beforehand; run it right before the"
                " campaign, because people who finish afterwards still get"
                " it."
            ),
            MAILCHIMP.format(address=address),
        ),
        Example(
            "Twilio",
            _("Studio can't send the header itself, so a Function asks."),
            TWILIO.format(address=address),
        ),
    ]
