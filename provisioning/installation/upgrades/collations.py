"""Rebuild indexes whose texts the new system's libraries sort in another order.

An index is sorted by a collation of glibc or ICU, whose versions are those of the
distribution: with others, PostgreSQL looks for a text where it is not. pg_upgrade keeps
the files of indexes, and its new catalog says that collations are as new as the system.
So the versions by which the indexes were made are read from the old server.

Texts of this schema are sorted by code points (`C.UTF-8`, `C`), which has no version;
this is for what was added to it.
"""

from __future__ import annotations

from pathlib import Path

from provisioning.installation.postgresql import run_sql

# By database and collation; `default` is the database's own.
Versions = dict[tuple[str, str], str]

DATABASES = "SELECT datname FROM pg_database WHERE datallowconn ORDER BY 1"
NAME = "format('%I.%I', c.collnamespace::regnamespace, c.collname)"
RECORDED = f"""
SELECT 'default', datcollversion FROM pg_database
WHERE datname = current_database() AND datcollversion IS NOT NULL
UNION ALL
SELECT {NAME}, collversion FROM pg_collation c WHERE collversion IS NOT NULL"""  # noqa: S608
ACTUAL = f"""
SELECT 'default', pg_database_collation_actual_version(oid) FROM pg_database
WHERE datname = current_database()
UNION ALL
SELECT {NAME}, pg_collation_actual_version(oid) FROM pg_collation c"""  # noqa: S608
# An index of a partitioned table is that of its partitions.
INDEXES = f"""
SELECT DISTINCT i.indexrelid::regclass,
    CASE c.collprovider WHEN 'd' THEN 'default' ELSE {NAME} END
FROM pg_index i CROSS JOIN unnest(i.indcollation) AS used (oid)
JOIN pg_collation c ON c.oid = used.oid JOIN pg_class x ON x.oid = i.indexrelid
WHERE x.relkind = 'i' ORDER BY 1"""  # noqa: S608
REFRESH = f"""
SELECT format('ALTER DATABASE %I REFRESH COLLATION VERSION', datname)
FROM pg_database WHERE datname = current_database()
    AND datcollversion <> pg_database_collation_actual_version(oid) \\gexec
SELECT format('ALTER COLLATION %s REFRESH VERSION', {NAME})
FROM pg_collation c WHERE collversion <> pg_collation_actual_version(oid) \\gexec
"""  # noqa: S608


def databases(run: Path) -> list[str]:
    return [name for [name] in run_sql(DATABASES, run=run, database="postgres")]


def recorded_versions(run: Path) -> Versions:
    """Return the versions by which a server's indexes were made."""
    return _versions(run, RECORDED)


def _versions(run: Path, query: str) -> Versions:
    return {
        (database, collation): version
        for database in databases(run)
        for collation, version in run_sql(query, run=run, database=database)
    }


def reindex_changed(run: Path, recorded: Versions) -> list[str]:
    """Rebuild indexes by collations of other versions than recorded; return them."""
    actual = _versions(run, ACTUAL)
    rebuilt = []
    for database in databases(run):
        for index, collation in run_sql(INDEXES, run=run, database=database):
            version = recorded.get((database, collation))
            if version is None or version == actual.get((database, collation)):
                continue
            if f"{database} {index}" not in rebuilt:
                run_sql(f"REINDEX INDEX {index}", run=run, database=database)
                rebuilt.append(f"{database} {index}")
        run_sql(REFRESH, run=run, database=database)
    return rebuilt
