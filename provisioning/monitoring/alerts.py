"""The alerts of Groundswell: when somebody has to act, and what to do."""

from __future__ import annotations

from dataclasses import dataclass

from provisioning.monitoring import thresholds
from provisioning.monitoring.thresholds import DAY


@dataclass(frozen=True, slots=True)
class Alert:
    """A rule of Prometheus. `lasting` is how long the expression has to hold."""

    name: str
    # What the guide calls it.
    title: str
    expression: str
    # critical: now, at night too. warning: on the next working day.
    severity: str
    # In Markdown, for the guide; links are relative to docs/guides.
    action: str
    lasting: str = "0m"


ALERTS = (
    # Saving
    Alert(
        "PrimaryDown",
        "pages are not saved",
        'groundswell_up{dependency="primary"} == 0',
        "critical",
        "browsers keep their pages and send them again; [failing over](failover.md)",
        "1m",
    ),
    Alert(
        "SavesNotDurable",
        "saved pages may be lost by a crash",
        'groundswell_up{dependency="durability"} == 0',
        "critical",
        "`fsync`, `full_page_writes` or `synchronous_commit` was changed, perhaps for"
        " one role: set them to on; [why](../decisions/0081-readyz-asks-the-pool.md)",
    ),
    Alert(
        "SavesFail",
        "page saves fail",
        'sum(rate(groundswell_page_saves_total{outcome="failed"}[5m])) > 0',
        "critical",
        "a defect: the log of the respondents' pool has its stack. The way back is the"
        " version before",
        "2m",
    ),
    Alert(
        "SavesUnavailable",
        "more than 5 % of page saves are refused",
        'sum(rate(groundswell_page_saves_total{outcome="unavailable"}[5m]))'
        " > 0.05 * sum(rate(groundswell_page_saves_total[5m]))",
        "critical",
        "the database is slow or away: `/readyz`, and [what works while something is"
        " down](outages.md). Nothing is lost, browsers send again",
        "2m",
    ),
    Alert(
        "SavesSlow",
        "one save in a hundred takes more than 0.25 s",
        "histogram_quantile(0.99, sum by (le) (rate(groundswell_request_seconds_bucket"
        '{view="survey_change_page", method="POST"}[5m]))) > 0.25',
        "warning",
        "which is full: processors, the database's disk, or a pool? `provisioning/run"
        " capacity` says what a day needs",
        "10m",
    ),
    Alert(
        "RequestsFail",
        "pages answer with an error",
        'sum by (view) (increase(groundswell_errors_total{status="500"}[10m])) > 0',
        "warning",
        "each has a line with its stack in the log, under its view",
    ),
    Alert(
        "QueueNearlyFull",
        "people wait in line",
        "groundswell_listen_queue > 0.8 * groundswell_listen_backlog",
        "warning",
        "the limit of this machine is reached: respondents see that they are in line,"
        " and get in by themselves; more web hosts, or more workers",
        "1m",
    ),
    Alert(
        "PoolWaits",
        "requests wait for a connection to the database",
        "groundswell_pool_wait_seconds > 1",
        "warning",
        "PostgreSQL is slow (`provisioning/run queries`), or the pool too small",
        "2m",
    ),
    # Servers
    Alert(
        "ReplicaLags",
        "the replica is down or more than 30 s behind",
        f"groundswell_replica_lag_seconds > {thresholds.REPLICA_LAG}"
        ' or groundswell_up{dependency="replica"} == 0',
        "warning",
        "reports are old and reads go to the primary; on a fleet a standby is missing."
        " Its log, its disk and its network; [failing over](failover.md)",
        "5m",
    ),
    Alert(
        "HelperDown",
        "Redis, Memcached or RabbitMQ is down",
        'groundswell_up{dependency=~"redis|memcached|messages|rabbitmq"} == 0',
        "warning",
        "page saves go on; what does not: [outages](outages.md)",
        "5m",
    ),
    Alert(
        "RedisNearlyFull",
        "the Redis of sessions is nearly full",
        f"groundswell_redis_memory_bytes > {thresholds.REDIS_FULL}"
        " * groundswell_redis_memory_limit_bytes"
        " and groundswell_redis_memory_limit_bytes > 0",
        "critical",
        "at its limit nobody new gets in: raise `maxmemory` (`provisioning/run"
        " capacity`)",
        "5m",
    ),
    Alert(
        "WorkersMissing",
        "no worker listens to a queue",
        "groundswell_queue_consumers == 0",
        "warning",
        "rosters, exports, e-mails and roll-ups of this queue wait: `provisioning/stack"
        " status`, and the log of its workers",
        "5m",
    ),
    Alert(
        "JobsWait",
        "jobs wait and none runs",
        'groundswell_jobs_waiting{queue!="scans"} > 0 and on (instance, queue)'
        " groundswell_jobs_running == 0",
        "warning",
        "workers hang or are too few: `/engineers/` shows since when",
        f"{thresholds.JOBS_WAIT}m",
    ),
    Alert(
        "DiskNearlyFull",
        "less than a tenth of the disk is free",
        f"groundswell_disk_free_bytes < {thresholds.DISK_FREE}"
        " * groundswell_disk_bytes",
        "critical",
        "on one machine saving stops with it: old logs, old exports, a larger disk."
        " Hosts of a database need the rule of their own exporter",
        "5m",
    ),
    Alert(
        "ConnectionTableNearlyFull",
        "the kernel's table of connections is nearly full",
        "groundswell_conntrack_entries"
        f" > {thresholds.CONNECTION_TABLE_FULL} * groundswell_conntrack_limit",
        "critical",
        "in a full one the kernel drops new connections, without a word. A crowd, or"
        " somebody who opens many? Another web host, or a larger"
        " `net.netfilter.nf_conntrack_max`;"
        " [why](../decisions/0176-kernel-and-connection-tracking.md)",
        "1m",
    ),
    Alert(
        "CertificateEnds",
        "nginx's certificate ends in less than two weeks",
        "groundswell_certificate_timestamp_seconds - time()"
        f" < {thresholds.CERTIFICATE_ENDS} * {DAY}",
        "warning",
        "renew it and reload nginx; afterwards no browser gets in",
        "1h",
    ),
    Alert(
        "ClockWrong",
        "a host's clock is wrong",
        f"abs(groundswell_clock_offset_seconds) > {thresholds.CLOCK_OFFSET}",
        "warning",
        "`chronyc tracking` on that host and on the primary's; [Which clock"
        " decides](../decisions/0077-which-clock-decides.md) says what it does"
        " meanwhile",
        "5m",
    ),
    Alert(
        "NoMetrics",
        "no figures arrive",
        "absent(groundswell_up)",
        "critical",
        "all alerts are silent: is the console's pool up, and may Prometheus reach the"
        " monitoring port?",
        "5m",
    ),
    # Backups
    Alert(
        "NoBackup",
        "no backup is made",
        "time() - groundswell_backup_timestamp_seconds"
        f" > {thresholds.BACKUP_AGE} * {DAY}",
        "critical",
        "`provisioning/stack logs backup`; see [backups](backups.md)",
    ),
    Alert(
        "BackupCertificateEnds",
        "a certificate of pgBackRest ends soon",
        "groundswell_backup_certificate_timestamp_seconds - time()"
        f" < {thresholds.BACKUP_CERTIFICATE_ENDS} * {DAY}",
        "warning",
        "run the playbook (`provisioning/stack up`), which renews it, and copy the one"
        " of the repository's host there; see [backups](backups.md)",
    ),
    Alert(
        "RestoreDrill",
        "the last restore drill failed, or none runs",
        "groundswell_drill_ok == 0 or time() - groundswell_drill_timestamp_seconds"
        f" > {thresholds.DRILL_AGE} * {DAY}",
        "warning",
        "`/engineers/survey/backuprun/` says what differed; `provisioning/run"
        " drill_restore --stack` repeats it. Until it is 1, make a full backup and do"
        " not rely on the others",
    ),
    Alert(
        "NoRestorePoint",
        "no restore point of the cluster is made",
        "time() - groundswell_restore_point_timestamp_seconds"
        f" > {thresholds.RESTORE_POINT_AGE} * 60",
        "critical",
        "all nodes can be restored to the last point only: `provisioning/stack logs"
        " restore_points` on the coordinator's hosts says why, often a node that is"
        " down; afterwards `provisioning/stack restore_point` there;"
        " [points](citus.md#backups-and-points-of-all-nodes)",
        "15m",
    ),
    Alert(
        "LogNotArchived",
        "the log is not archived",
        "time() - groundswell_log_archived_timestamp_seconds"
        f" > {thresholds.ARCHIVE_DELAY}"
        " and on () sum(increase(groundswell_page_saves_total[10m])) > 0",
        "critical",
        "the repository is away or full: `log/backup/`. Saving goes on; after"
        " `backup_queue_max` of log the times from then on cannot be restored until the"
        " next backup",
    ),
    # Codes and message platforms
    Alert(
        "CodesGuessedByOne",
        "a source guesses access codes",
        'increase(groundswell_wrong_codes_total{limit="block"}[1h]) > 0',
        "warning",
        "the log names the block of addresses (*many wrong access codes from"
        " neighbouring addresses*); ask its owner: a school with the wrong stack of"
        " cards looks the same. Block it at the network if nobody there answers the"
        " survey",
    ),
    Alert(
        "CodesGuessedByMany",
        "many sources guess access codes",
        'increase(groundswell_wrong_codes_total{limit="all"}[1h]) > 0',
        "warning",
        'compare with `groundswell_logins_total{outcome="admitted"}`: on a busy day'
        " some per cent are typing errors",
    ),
    Alert(
        "CodesWrong",
        "wrong codes where logins are few",
        "sum(increase(groundswell_wrong_codes_total[1h])) > 100 + 0.2 *"
        ' sum(increase(groundswell_logins_total{outcome="admitted"}[1h]))',
        "warning",
        "as above",
    ),
    Alert(
        "MessagesDiffer",
        "what message platforms read differs from the database",
        "groundswell_messages_drift > 0",
        "warning",
        "it was repaired; look in the log for *What message platforms read was not"
        " written* and for Redis being down, then `manage.py rebuild_messages --check`"
        " (0)",
    ),
    Alert(
        "MessagesUnchecked",
        "that is not checked any more",
        f"time() - groundswell_messages_checked_timestamp_seconds > 2 * {DAY}",
        "warning",
        "is beat running? `manage.py rebuild_messages --check` by hand",
    ),
    Alert(
        "MessagesUnavailable",
        "message platforms are told to ask again",
        'sum(rate(groundswell_messages_total{outcome="unavailable"}[5m])) > 1',
        "warning",
        "is the Redis of message platforms up"
        ' (`groundswell_up{dependency="messages"}`)? After its restart a job fills it',
        "5m",
    ),
)
