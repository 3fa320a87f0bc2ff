"""From when on something is wrong: for the alerts and for `provisioning/doctor`."""

from __future__ import annotations

DAY = 86_400

# Shares.
DISK_FREE = 0.1
CONNECTION_TABLE_FULL = 0.8
REDIS_FULL = 0.9
# Seconds.
CLOCK_OFFSET = 5
REPLICA_LAG = 30
ARCHIVE_DELAY = 600
# Minutes.
JOBS_WAIT = 15
# Of four points, see `backup_point_minutes` of the role `backup`.
RESTORE_POINT_AGE = 60
# Days.
CERTIFICATE_ENDS = 14
BACKUP_CERTIFICATE_ENDS = 30
BACKUP_AGE = 2
DRILL_AGE = 9
