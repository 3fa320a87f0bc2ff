"""Whatever case an address was typed in, its user is found."""

from django.db import migrations
from django.db.models import F
from django.db.models.functions import Lower


def lower(apps, schema_editor):
    User = apps.get_model("accounts", "User")
    User.objects.exclude(email=Lower(F("email"))).update(email=Lower(F("email")))


class Migration(migrations.Migration):
    dependencies = [("accounts", "0003_audit_is_append_only")]

    operations = [migrations.RunPython(lower, migrations.RunPython.noop)]
