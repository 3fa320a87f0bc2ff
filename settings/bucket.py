"""Read where private files lie in object storage (S3), if they do."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

FORM = "s3://KEY:SECRET@HOST/BUCKET?region=REGION"
# Only the machine itself may be spoken to without TLS: a test's server.
LOOPBACK = ("127.0.0.1", "localhost")
# "none" for servers that have no encryption of their own.
ENCRYPTIONS = {"AES256", "aws:kms", "none"}


def storage_of_bucket(address: str) -> dict[str, Any]:
    """Return Django's description of the storage `s3://KEY:SECRET@HOST/BUCKET`.

    Options follow "?": `region`, `encryption` (AES256, aws:kms or none) and `plain=yes`
    for HTTP on loopback. Raises ImproperlyConfigured, without the secret in its text.
    """
    parts = urlsplit(address)
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    bucket = parts.path.strip("/")
    unknown = set(options) - {"region", "encryption", "plain"}
    encryption = options.get("encryption", "AES256")
    is_plain = options.get("plain") == "yes"
    try:
        place = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
    except ValueError:
        place = None
    if not (
        parts.scheme == "s3" and place and bucket and parts.username and parts.password
    ):
        raise ImproperlyConfigured(
            f"GROUNDSWELL_FILES_BUCKET is not like {FORM}, with / in a secret as %2F"
        )
    if unknown or encryption not in ENCRYPTIONS:
        wrong = ", ".join(sorted(unknown)) or f"encryption={encryption}"
        raise ImproperlyConfigured(f"GROUNDSWELL_FILES_BUCKET can't have {wrong}")
    if is_plain and parts.hostname not in LOOPBACK:
        raise ImproperlyConfigured(
            "GROUNDSWELL_FILES_BUCKET: files with names go to another host by TLS only"
        )
    parameters = {} if encryption == "none" else {"ServerSideEncryption": encryption}
    return {
        "BACKEND": "survey.work.bucket.PrivateBucket",
        "OPTIONS": {
            "access_key": unquote(parts.username),
            "secret_key": unquote(parts.password),
            "bucket_name": bucket,
            "endpoint_url": f"{'http' if is_plain else 'https'}://{place}",
            "region_name": options.get("region", "us-east-1"),
            "object_parameters": parameters,
        },
    }
