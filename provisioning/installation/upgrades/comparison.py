"""Record what a database holds, and say what is different after an upgrade."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from provisioning.installation.backups.records import count_tables
from provisioning.installation.backups.records import differences as of_tables
from provisioning.installation.postgresql import run_sql

Record = dict[str, dict[str, list[str]]]

# Each row is a name and what has to be the same. What belongs to an extension is as
# its version makes it.
IN_EXTENSION = (
    "EXISTS (SELECT FROM pg_depend d WHERE d.objid = {0}.oid"
    " AND d.classid = {0}.tableoid AND d.deptype = 'e')"
)
QUERIES = {
    "sequence": """
SELECT sequencename, coalesce(last_value::text, 'unused'), increment_by, max_value
FROM pg_sequences WHERE schemaname = 'public'""",
    # With the digests of their passwords.
    "role": """
SELECT rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin,
    rolreplication, rolbypassrls, rolconnlimit, md5(coalesce(rolpassword, '')),
    array(SELECT unnest(s.setconfig) FROM pg_db_role_setting s
          WHERE s.setrole = r.oid ORDER BY 1)
FROM pg_authid r WHERE rolname !~ '^pg_'""",
    "membership": """
SELECT r.rolname || ' of ' || m.rolname, admin_option FROM pg_auth_members a
JOIN pg_roles r ON r.oid = a.roleid JOIN pg_roles m ON m.oid = a.member
WHERE m.rolname !~ '^pg_'""",
    # Version 17 gives owners the right to MAINTAIN, which was theirs before.
    "grant": f"""
SELECT format('%s on %s to %s', a.privilege_type, o.name,
        coalesce(r.rolname, 'PUBLIC')), a.is_grantable
FROM (
    SELECT c.oid::regclass::text AS name, c.relowner AS owner, c.relacl AS acl
    FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace
        AND NOT {IN_EXTENSION.format("c")}
    UNION ALL
    SELECT p.oid::regprocedure::text, p.proowner, p.proacl
    FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
        AND NOT {IN_EXTENSION.format("p")}
    UNION ALL SELECT 'schema ' || nspname, nspowner, nspacl FROM pg_namespace
        WHERE nspname = 'public'
    UNION ALL SELECT 'database ' || datname, datdba, datacl FROM pg_database
) o CROSS JOIN aclexplode(o.acl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
WHERE a.privilege_type <> 'MAINTAIN' AND a.grantee <> o.owner""",  # noqa: S608
    "default grant": """
SELECT format('%s on %s of %s to %s', a.privilege_type, d.defaclobjtype, o.rolname,
    coalesce(r.rolname, 'PUBLIC')), a.is_grantable
FROM pg_default_acl d CROSS JOIN aclexplode(d.defaclacl) a
JOIN pg_roles o ON o.oid = d.defaclrole LEFT JOIN pg_roles r ON r.oid = a.grantee
WHERE a.privilege_type <> 'MAINTAIN' AND a.grantee <> d.defaclrole""",
    "owner": f"""
SELECT c.oid::regclass, r.rolname, c.relkind, c.relpersistence
FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner
WHERE c.relnamespace = 'public'::regnamespace AND NOT {IN_EXTENSION.format("c")}""",  # noqa: S608
    "index": """
SELECT i.indexrelid::regclass, i.indrelid::regclass, i.indisvalid, i.indisunique
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE c.relnamespace = 'public'::regnamespace""",
    "constraint": """
SELECT conrelid::regclass || ' ' || conname, contype, convalidated
FROM pg_constraint WHERE connamespace = 'public'::regnamespace""",
    "trigger": """
SELECT tgrelid::regclass || ' ' || tgname, tgenabled, tgfoid::regproc
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE NOT tgisinternal AND c.relnamespace = 'public'::regnamespace""",
    "function": f"""
SELECT p.oid::regprocedure, md5(prosrc), prosecdef, proowner::regrole
FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
    AND NOT {IN_EXTENSION.format("p")}""",  # noqa: S608
    "extension": "SELECT extname, extnamespace::regnamespace FROM pg_extension",
    "database": """
SELECT datname, datdba::regrole, pg_encoding_to_char(encoding), datcollate, datctype,
    datconnlimit, array(SELECT unnest(s.setconfig) FROM pg_db_role_setting s
        WHERE s.setdatabase = d.oid ORDER BY 1)
FROM pg_database d""",
}


def record_database(run: Path, *, with_rows: bool = True) -> Record:
    """Return what a server's database holds; `with_rows` reads every row."""
    record = {
        kind: {name: rest for name, *rest in run_sql(query, run=run)}
        for kind, query in QUERIES.items()
    }
    return record | ({"table": count_tables(run)} if with_rows else {})


def differences(before: Record, after: Record) -> list[str]:
    """Return a sentence for each thing that is not as it was."""
    sentences = of_tables(before.get("table", {}), after.get("table", {}))
    for kind in QUERIES:
        old, new = before[kind], after[kind]
        for name in sorted({*old, *new}):
            if name not in new:
                sentences.append(f"{kind} {name} is missing")
            elif name not in old:
                sentences.append(f"{kind} {name} was not there")
            elif old[name] != new[name]:
                was, now = "|".join(old[name]), "|".join(new[name])
                sentences.append(f"{kind} {name} is {now}, and was {was}")
    return sentences


def described(figures: dict[str, Any], before: Record, after: Record) -> dict[str, Any]:
    """Return figures with what was compared, and the differences."""
    compared = (
        {"tables": len(after["table"]), "rows": count_rows(after)}
        if "table" in after
        else {}
    )
    return {**compared, "differences": differences(before, after), **figures}


def count_rows(record: Record) -> int:
    return sum(int(rows) for rows, _ in record["table"].values())
