// A fresh database for each test: from pgrig testdb serve, whose address PGRIG_TESTDB_URL is.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import http from "node:http";
import { describe, it } from "node:test";
import { promisify } from "node:util";

const service = process.env.PGRIG_TESTDB_URL;

// Not fetch, which says that it is a browser.
function call(method, path) {
  return new Promise((resolve, reject) => {
    const request = http.request(service + path, { method }, (answer) => {
      let body = "";
      answer.on("data", (data) => (body += data));
      answer.on("end", () => {
        if (answer.statusCode >= 300) reject(new Error(body));
        else resolve(body ? JSON.parse(body) : undefined);
      });
    });
    request.on("error", reject).end();
  });
}

async function withDatabase(test) {
  const loan = await call("GET", "/database");
  try {
    await test(loan);
  } catch (error) {
    const pgrig = process.env.PGRIG ?? "pgrig";
    await promisify(execFile)(pgrig, ["testdb", "keep", loan.name]);
    throw error;
  }
  await call("DELETE", `/databases/${loan.name}`);
}

async function sql(loan, statement) {
  const psql = ["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", loan.url, "-c", statement];
  return (await promisify(execFile)("psql", psql)).stdout.trim();
}

describe("items", { concurrency: 16 }, () => {
  for (let number = 0; number < 40; number++) {
    it(`${number}: data are as the schema says, whatever others do`, () =>
      withDatabase(async (loan) => {
        assert.equal(await sql(loan, "SELECT count(*), max(id) FROM item"), "2|2");
        await sql(loan, `DELETE FROM item; INSERT INTO item VALUES (${number}, 'mine')`);
        assert.equal(await sql(loan, "SELECT id FROM item"), String(number));
      }));
  }

  it("a failing test keeps its database", () =>
    assert.rejects(withDatabase(async (loan) => assert.equal(await sql(loan, "SELECT count(*) FROM item"), "3"))));
});
