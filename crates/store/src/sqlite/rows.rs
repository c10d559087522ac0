//! Rows that are put into a table several at a time: SQLite stays where it is between them, and begins and ends once.

use rusqlite::{CachedStatement, Connection, Result, ToSql};

/// How many go in with one statement.
const TOGETHER: usize = 16;

/// Where the values of rows go, one after the other.
pub struct Values<'s, 'c> {
    statement: &'s mut CachedStatement<'c>,
    next: usize,
}

impl Values<'_, '_> {
    pub fn put(&mut self, value: impl ToSql) -> Result<()> {
        self.next += 1;
        self.statement.raw_bind_parameter(self.next, value)
    }
}

/// Adds rows to a table; `columns` are their names, joined by commas, and `put` hands over the values of one row. If one
/// is refused, those before it may be in: only for a transaction that is rolled back then.
pub fn insert<T>(
    connection: &Connection,
    table: &str,
    columns: &str,
    rows: &[T],
    put: impl Fn(&T, &mut Values<'_, '_>) -> Result<()>,
) -> Result<()> {
    let (together, alone) = rows.split_at(rows.len() - rows.len() % TOGETHER);
    for (rows, count) in [(together, TOGETHER), (alone, 1)] {
        if rows.is_empty() {
            continue;
        }
        let mut statement = connection.prepare_cached(&sql(table, columns, count))?;
        for chunk in rows.chunks(count) {
            let mut values = Values { statement: &mut statement, next: 0 };
            chunk.iter().try_for_each(|row| put(row, &mut values))?;
            statement.raw_execute()?;
        }
    }
    Ok(())
}

/// `OR FAIL`, because SQLite would keep what each statement changes aside until it ends, to take it back alone.
fn sql(table: &str, columns: &str, rows: usize) -> String {
    let row = format!("({})", vec!["?"; columns.split(',').count()].join(", "));
    format!("INSERT OR FAIL INTO {table} ({columns}) VALUES {}", vec![row; rows].join(", "))
}

#[cfg(test)]
mod tests {
    use super::{TOGETHER, insert};
    use rusqlite::Connection;

    #[test]
    fn every_row_goes_in_once_and_in_its_order() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT NOT NULL)").unwrap();
        let mut known = 0;
        for count in [0, 1, TOGETHER - 1, TOGETHER, TOGETHER + 1, 5 * TOGETHER + 3] {
            let rows: Vec<i64> = (known..known + count as i64).collect();
            let put = |row: &i64, values: &mut super::Values<'_, '_>| {
                values.put(row)?;
                values.put(format!("word {row}"))
            };
            insert(&connection, "t", "id, word", &rows, put).unwrap();
            known += count as i64;
        }
        let read = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(read("SELECT count(*) FROM t WHERE word = 'word ' || id"), known);
        assert_eq!(read("SELECT max(id) FROM t"), known - 1);
    }
}
