"""Each test changes the data that all of them find. conftest.py is in docs/src/how-to/database-per-test.md."""

import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import call


def sql(url, statement):
    psql = ["psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", statement]
    return subprocess.run(psql, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("number", range(10))
def test_data_are_as_the_schema_says_whatever_others_do(database, number):
    assert sql(database, "SELECT count(*), max(id) FROM item") == "2|2"
    sql(database, f"DELETE FROM item; INSERT INTO item VALUES ({number}, 'mine')")
    assert sql(database, "SELECT id FROM item") == str(number)


@pytest.mark.xfail(strict=True, reason="its database is kept")
def test_a_failing_test_keeps_its_database(database):
    assert sql(database, "SELECT count(*) FROM item") == "3"


def test_many_at_a_time():
    def one(number):
        lease = call("GET", "/database")
        sql(lease["url"], f"DELETE FROM item; INSERT INTO item VALUES ({number}, 'mine')")
        found = sql(lease["url"], "SELECT id FROM item")
        call("DELETE", f"/databases/{lease['name']}")
        return lease["name"], found

    with ThreadPoolExecutor(16) as pool:
        done = list(pool.map(one, range(48)))
    assert [found for _, found in done] == [str(number) for number in range(48)]
    assert len({name for name, _ in done}) == 48
