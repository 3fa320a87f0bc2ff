"""A server of object storage (S3) for tests: moto's, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import quote

import boto3
from botocore.client import Config

from settings.bucket import storage_of_bucket
from settings.tests.patience import eventually
from survey.work.bucket import PrivateBucket

NAME = "private-files"
EVERYTHING = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}],
}


@dataclass
class ObjectStorage:
    process: subprocess.Popen[bytes]
    port: int
    key: str = "key"
    secret: str = "secret"

    @property
    def address(self) -> str:
        """Return what GROUNDSWELL_FILES_BUCKET would be."""
        place = f"127.0.0.1:{self.port}/{NAME}"
        # Secrets may have a slash.
        return f"s3://{self.key}:{quote(self.secret, safe='')}@{place}?plain=yes"

    def client(self, service: str = "s3"):
        return boto3.client(
            service,
            endpoint_url=f"http://127.0.0.1:{self.port}",
            region_name="us-east-1",
            aws_access_key_id=self.key,
            aws_secret_access_key=self.secret,
            config=Config(s3={"addressing_style": "path"}),
        )

    def store(self) -> PrivateBucket:
        return PrivateBucket(**storage_of_bucket(self.address)["OPTIONS"])

    def names(self) -> list[str]:
        listed = self.client().list_objects_v2(Bucket=NAME)
        return [each["Key"] for each in listed.get("Contents", ())]

    def suspend(self) -> None:
        """Accept connections, and answer none."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)


@contextmanager
def object_storage(*, is_private: bool = False) -> Iterator[ObjectStorage]:
    """Serve an empty bucket, which everybody reads unless it is private."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    # So many requests it accepts from anybody: those that make the user.
    strict = {"INITIAL_NO_AUTH_ACTION_COUNT": "3"} if is_private else {}
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        env={**os.environ, **strict},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        storage = ObjectStorage(process, port)
        eventually(lambda: answers(port), 30)
        if is_private:
            make_user(storage)
        storage.client().create_bucket(Bucket=NAME)
        yield storage
    finally:
        process.kill()
        process.wait()


def answers(port: int) -> bool:
    with suppress(OSError):
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    return False


def make_user(storage: ObjectStorage) -> None:
    iam = storage.client("iam")
    iam.create_user(UserName="groundswell")
    iam.put_user_policy(
        UserName="groundswell", PolicyName="all", PolicyDocument=json.dumps(EVERYTHING)
    )
    key = iam.create_access_key(UserName="groundswell")["AccessKey"]
    storage.key, storage.secret = key["AccessKeyId"], key["SecretAccessKey"]
