"""A fresh database for each test: from pgrig testdb serve, whose address PGRIG_TESTDB_URL is."""

import json
import os
import subprocess
import urllib.request

import pytest

SERVICE = os.environ["PGRIG_TESTDB_URL"]


def call(method, path):
    request = urllib.request.Request(SERVICE + path, method=method)
    with urllib.request.urlopen(request) as answer:
        body = answer.read()
    return json.loads(body) if body else None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    outcome = yield
    report = outcome.get_result()
    if report.when == "call":
        item.failed = report.failed or hasattr(report, "wasxfail")


@pytest.fixture
def database(request):
    loan = call("GET", "/database")
    yield loan
    if getattr(request.node, "failed", False):
        pgrig = os.environ.get("PGRIG", "pgrig")
        subprocess.run([pgrig, "testdb", "keep", loan["name"]], check=True)
        print("kept:", loan["url"])
    else:
        call("DELETE", f"/databases/{loan['name']}")
