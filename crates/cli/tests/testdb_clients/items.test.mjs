// database.mjs is in docs/src/how-to/database-per-test.md.
// Each test changes the data that all of them find.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, it } from "node:test";
import { promisify } from "node:util";
import { withDatabase } from "./database.mjs";

async function sql(url, statement) {
  const psql = ["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", statement];
  return (await promisify(execFile)("psql", psql)).stdout.trim();
}

describe("items", { concurrency: 16 }, () => {
  for (let number = 0; number < 40; number++) {
    it(`${number}: data are as the schema says, whatever others do`, () =>
      withDatabase(async (url) => {
        assert.equal(await sql(url, "SELECT count(*), max(id) FROM item"), "2|2");
        await sql(url, `DELETE FROM item; INSERT INTO item VALUES (${number}, 'mine')`);
        assert.equal(await sql(url, "SELECT id FROM item"), String(number));
      }));
  }

  it("a failing test keeps its database", () =>
    assert.rejects(withDatabase(async (url) => assert.equal(await sql(url, "SELECT count(*) FROM item"), "3"))));
});
