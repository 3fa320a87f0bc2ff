"""Find people in more than one school by the beginning of a name or an e-mail address.

Three b-trees cost an import a few microseconds a row; trigrams, which would find the
middle of a name too, cost a hundred. The whole ID is found by the unique constraint.
Without the indexes, SQLite looks at everybody: it serves a single school.
"""

from django.db import migrations

from accounts.folded_text import postgresql_fold
from accounts.migration_operations import RunStatements

# Names without accents, apostrophes and hyphens.
COLUMNS = {
    "people_by_family_name": (
        f"(administration_id, ({postgresql_fold('family_name')}) text_pattern_ops)"
    ),
    "people_by_given_name": (
        f"(administration_id, ({postgresql_fold('given_name')}) text_pattern_ops)"
    ),
    "people_by_email": (
        "(administration_id, upper(email) text_pattern_ops) WHERE email <> ''"
    ),
}


class Migration(migrations.Migration):
    replaces = [
        ("survey", "0015_find_people"),
        ("survey", "0058_find_names_without_accents"),
    ]

    dependencies = [("survey", "0004_functions_of_roles")]

    operations = [
        RunStatements(
            postgresql=[
                f"CREATE INDEX {name} ON survey_identity {columns}"
                for name, columns in COLUMNS.items()
            ]
        )
    ]
