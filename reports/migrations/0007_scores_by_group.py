"""Scores of groups are stored only where they are shown: another format."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    oldest_release = "1.0.0"

    dependencies = [("reports", "0006_benchmarks_by_span")]

    operations = [
        migrations.AlterField(
            "scoring",
            "format",
            models.PositiveSmallIntegerField(db_default=1, default=4),
        ),
    ]
