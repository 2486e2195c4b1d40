#!/usr/bin/env python3
"""Adds a trace to a dataset in a bucket of a local S3 server (moto), and asks it there.

Usage: object-store.py PROGRAM, a handlescope that was built with --features object-store.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import boto3

ROOT = pathlib.Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "examples" / "leaky.etl"
SYMBOLS = ROOT / "examples" / "symbols"
PROGRAM = pathlib.Path(sys.argv[1]).resolve()
TABLES = ["acquisitions", "groups", "growth", "suspects", "stacks", "processes", "modules", "traces"]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run(*arguments, status=0):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    if done.returncode != status:
        sys.exit(f"{arguments}: status {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def wait_for(client):
    for _ in range(100):
        try:
            return client.create_bucket(Bucket="fleet")
        except Exception:
            time.sleep(0.2)
    sys.exit("the S3 server does not answer")


def keys(client):
    return {item["Key"]: item["ETag"] for item in client.list_objects_v2(Bucket="fleet").get("Contents", [])}


def main():
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    os.environ.update(
        AWS_ACCESS_KEY_ID="test",
        AWS_SECRET_ACCESS_KEY="test",
        AWS_REGION="us-east-1",
        AWS_ENDPOINT_URL=endpoint,
        AWS_ALLOW_HTTP="true",
    )
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    # Symbols beside the sample would be found.
    alone = tempfile.TemporaryDirectory()
    sample = shutil.copy(SAMPLE, alone.name)
    try:
        client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
        wait_for(client)
        dataset = "s3://fleet/traces of all"
        symbols = ["--symbol-path", str(SYMBOLS)]

        # Without names first, then with them, gives what adding with names gives in a folder.
        run("dataset", "add", dataset, sample, "--machine", "LAB-7")
        listed = json.loads(run("dataset", "list", dataset, "--json").stdout)["traces"]
        assert [(row["leaked"], row["machine"]) for row in listed] == [(19, "LAB-7")], listed
        assert "already there" in run("dataset", "add", dataset, sample).stdout
        symbolized = run("dataset", "symbolize", dataset, *symbols)
        assert "1 trace with more names" in symbolized.stdout, symbolized
        run("dataset", "check", dataset)
        with tempfile.TemporaryDirectory() as folder:
            run("dataset", "add", folder, sample, "--machine", "LAB-7", *symbols)
            for table in TABLES:
                (part,) = pathlib.Path(folder, table).rglob("*.parquet")
                key = f"traces of all/{part.relative_to(folder)}"
                body = client.get_object(Bucket="fleet", Key=key)["Body"].read()
                assert body == part.read_bytes(), key
            questions = [
                ["why", "DIR"],
                ["-c", ".load DIR", "-c", ".sql SELECT process, type, leaked FROM suspects ORDER BY 1, 2, 3"],
                ["-c", ".load DIR", "-c", ".dump ObjectRef -GroupBy machine,process,type -csv"],
            ]
            for question in questions:
                asked = [
                    run(*[word.replace("DIR", f'"{place}"' if "-c" in question else place) for word in question])
                    for place in (dataset, folder)
                ]
                answers = [answer.stdout.replace(dataset, "DIR").replace(folder, "DIR") for answer in asked]
                assert answers[0] == answers[1] and answers[0], (question, answers)

        # A file that is not what was written is noticed.
        groups = next(key for key in keys(client) if "/groups/" in key)
        client.put_object(Bucket="fleet", Key=groups, Body=b"PAR1")
        assert "groups" in run("dataset", "check", dataset, status=1).stderr
        run("dataset", "remove", dataset, listed[0]["trace"][:8])
        assert list(keys(client)) == ["traces of all/_dataset.json"], keys(client)
        missing = run("dataset", "list", "s3://nothing/here", status=1).stderr
        assert "s3://nothing/here" in missing, missing
        print("a dataset in a bucket: added, listed, symbolized, asked, checked, removed")
    finally:
        server.terminate()


main()
