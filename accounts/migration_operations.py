"""Migration operations that Django does not have."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import router
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import AddConstraint, CreateModel
from django.db.migrations.operations.base import Operation, OperationCategory
from django.db.migrations.state import ProjectState


class CreateModels(Operation):
    """Create all models of an app, which may refer to each other.

    Django makes the classes of all related models again after each CreateModel:
    3,700 classes for 80 models. Here they are made once, after the last one.
    """

    category = OperationCategory.ADDITION

    def __init__(self, models: Sequence[CreateModel]) -> None:
        self.models = models

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        # It is made again, with all models, when the first table is created.
        state.__dict__.pop("apps", None)
        for model in self.models:
            model.state_forwards(app_label, state)

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        for model in self.models:
            model.database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        for model in reversed(self.models):
            model.database_backwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        return f"Create {len(self.models)} models"


class AddUnvalidatedConstraint(AddConstraint):
    """Add a check for new rows to a table that serves; PostgreSQL reads no row.

    A later migration validates the others, by `VALIDATE CONSTRAINT`, beside saves. In
    the same transaction, the lock of this operation would hold them up.
    """

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        model = to_state.apps.get_model(app_label, self.model_name)
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
        elif self.allow_migrate_model(schema_editor.connection.alias, model):
            statement = self.constraint.create_sql(model, schema_editor)
            schema_editor.execute(f"{statement} NOT VALID", params=None)


class RunStatements(Operation):
    """Run SQL that each database has of its own. Django refuses to unapply it."""

    category = OperationCategory.SQL
    reduces_to_sql = True
    reversible = False

    def __init__(
        self, *, postgresql: Sequence[str] = (), sqlite: Sequence[str] = ()
    ) -> None:
        self.statements = {"postgresql": postgresql, "sqlite": sqlite}

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        pass

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        connection = schema_editor.connection
        if router.allow_migrate(connection.alias, app_label):
            for statement in self.statements[connection.vendor]:
                # Without parameters, so that no % is taken for one.
                schema_editor.execute(statement, params=None)

    def describe(self) -> str:
        return "Run SQL of the database"
