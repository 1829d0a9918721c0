// The function database is in docs/src/how-to/database-per-test.md.

package items

import (
	"database/sql"
	"strconv"
	"testing"

	_ "github.com/lib/pq"
)

// TestItems has many tests at a time. Each changes the data that all of them find.
func TestItems(t *testing.T) {
	for number := 0; number < 40; number++ {
		id := strconv.Itoa(number)
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			items := open(t)
			if found := one(t, items, "SELECT count(*) || '|' || max(id) FROM item"); found != "2|2" {
				t.Error("not the schema's data:", found)
			}
			if _, err := items.Exec("DELETE FROM item; INSERT INTO item VALUES (" + id + ", 'mine')"); err != nil {
				t.Error(err)
			}
			if found := one(t, items, "SELECT id FROM item"); found != id {
				t.Error("another test's data:", found)
			}
		})
	}
}

// TestThatFails keeps its database.
func TestThatFails(t *testing.T) {
	if found := one(t, open(t), "SELECT count(*) FROM item"); found != "3" {
		t.Error("3 items expected, found", found)
	}
}

func open(t *testing.T) *sql.DB {
	items, err := sql.Open("postgres", database(t))
	if err != nil {
		t.Fatal(err)
	}
	// Runs before the cleanup of database.
	t.Cleanup(func() { items.Close() })
	return items
}

func one(t *testing.T, items *sql.DB, query string) string {
	var found string
	if err := items.QueryRow(query).Scan(&found); err != nil {
		t.Fatal(err)
	}
	return found
}
