"""TPC-DS as an original: tables and rows of DuckDB's generator, with primary and foreign keys, and its 99 queries.

Needs duckdb and duckdb-extension-tpcds (PyPI, the same version of both).
"""

from pathlib import Path

from common import output

# Dimensions, and how columns of other tables that refer to them end.
DIMENSIONS = {
    "date_dim": ["date_sk"], "time_dim": ["time_sk"], "item": ["item_sk"], "customer": ["customer_sk"],
    "customer_demographics": ["cdemo_sk"], "household_demographics": ["hdemo_sk"], "customer_address": ["addr_sk"],
    "store": ["store_sk"], "promotion": ["promo_sk"], "call_center": ["call_center_sk"], "catalog_page": ["catalog_page_sk"],
    "ship_mode": ["ship_mode_sk"], "warehouse": ["warehouse_sk"], "web_page": ["web_page_sk"], "web_site": ["web_site_sk"],
    "reason": ["reason_sk"], "income_band": ["income_band_sk"],
}
# Beside an item: the number of the ticket or order.
FACTS = {
    "store_sales": "ss_item_sk, ss_ticket_number", "store_returns": "sr_item_sk, sr_ticket_number",
    "catalog_sales": "cs_item_sk, cs_order_number", "catalog_returns": "cr_item_sk, cr_order_number",
    "web_sales": "ws_item_sk, ws_order_number", "web_returns": "wr_item_sk, wr_order_number",
    "inventory": "inv_date_sk, inv_item_sk, inv_warehouse_sk",
}


def load(options, database, scratch):
    """Makes the tables in the database. Returns their names."""
    import duckdb
    import duckdb_extension_tpcds
    extension = next(Path(duckdb_extension_tpcds.__file__).parent.rglob("*.duckdb_extension"))
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.execute(f"LOAD '{extension}'")
    connection.execute(f"CALL dsdgen(sf={options.scale})")
    tables = [row[0] for row in connection.execute("SHOW TABLES").fetchall()]
    for table in tables:
        columns = connection.execute(f"SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = '{table}'").fetchall()
        database.query(f"CREATE TABLE {table} ({', '.join(f'{name} {kind}' for name, kind in columns)})")
        file = Path(scratch) / f"{table}.csv"
        connection.execute(f"COPY {table} TO '{file}' (HEADER false)")
        output([options.psql, "-Xq", "-v", "ON_ERROR_STOP=1", "-c", rf"\copy {table} FROM '{file}' (FORMAT csv)", database.url])
        file.unlink()
    columns = {table: database.query(f"SELECT attname FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 0 "
                                     "ORDER BY attnum").split() for table in tables}
    for table in tables:
        key = FACTS.get(table, columns[table][0])
        database.query(f"ALTER TABLE {table} ADD PRIMARY KEY ({key})")
    for table in tables:
        for column in columns[table][0 if table in FACTS else 1:]:
            for dimension, ends in DIMENSIONS.items():
                of_dimension = dimension != table and any(column.endswith(f"_{end}") for end in ends)
                # The few columns that hold other numbers.
                if of_dimension and orphans(database, table, column, dimension, columns[dimension][0]) == "0":
                    database.query(f"ALTER TABLE {table} ADD FOREIGN KEY ({column}) REFERENCES {dimension}")
    queries = connection.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall()
    return tables, {f"{number:03}": sql for number, sql in queries}


def orphans(database, table, column, dimension, key):
    return database.query(f"SELECT count(*) FROM {table} t WHERE {column} IS NOT NULL "
                          f"AND NOT EXISTS (SELECT FROM {dimension} d WHERE d.{key} = t.{column})")


def planned(database, queries):
    """The queries that PostgreSQL can plan."""
    import subprocess
    found = {}
    for name, sql in queries.items():
        command = ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", f"EXPLAIN {sql}", database.url]
        if subprocess.run(command, capture_output=True).returncode == 0:
            found[name] = sql
    return found
