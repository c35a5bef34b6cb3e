//! Random statements whose answers do not depend on the order in which an engine comes upon rows.

use esker_testkit::random::Rng;

use crate::column::{Column, Kind};
use crate::table::Table;

/// The next statement, of one of these tables.
pub fn random(tables: &mut [Table], rng: &mut Rng) -> String {
    let at = rng.below(tables.len());
    match rng.below(100) {
        0..34 => write(&tables[at], rng),
        34..62 => read(&tables[at], rng),
        62..80 => {
            let other = rng.below(tables.len());
            read_two(&tables[at], &tables[other], rng)
        }
        80..90 => transaction(rng),
        90..95 if !tables[at].counts => alter(&mut tables[at], rng),
        _ => administer(&tables[at], rng),
    }
}

fn write(table: &Table, rng: &mut Rng) -> String {
    let (name, whole) = (&table.name, table.whole());
    let rows = rng.pick(&[1, 1, 2, 5, 20]);
    match rng.below(20) {
        0..7 => {
            let ignore = rng.pick(&["", "", "IGNORE "]);
            format!(
                "INSERT {ignore}INTO {name} ({}) VALUES {}",
                table.names(),
                table.rows(rows, rng)
            )
        }
        7 | 8 => format!(
            "REPLACE INTO {name} ({}) VALUES {}",
            table.names(),
            table.rows(rows, rng)
        ),
        9 | 10 => format!(
            "INSERT INTO {name} ({}) VALUES {} ON DUPLICATE KEY UPDATE {}",
            table.names(),
            table.rows(rows, rng),
            table.assignments(rng)
        ),
        11..16 => {
            let ignore = rng.pick(&["", "", "IGNORE "]);
            let limit = if rng.one_in(3) {
                format!(" LIMIT {}", 1 + rng.below(5))
            } else {
                String::new()
            };
            format!(
                "UPDATE {ignore}{name} SET {}{} ORDER BY {whole}{limit}",
                table.assignments(rng),
                table.filter(rng)
            )
        }
        16 => format!("DELETE FROM {name} WHERE {}", table.condition(rng)),
        17 => format!(
            "INSERT INTO {name} ({names}) SELECT {names} FROM {name}{} ORDER BY {whole} LIMIT {}",
            table.filter(rng),
            1 + rng.below(10),
            names = table.names()
        ),
        _ => format!(
            "DELETE FROM {name}{} ORDER BY {whole} LIMIT {}",
            table.filter(rng),
            1 + rng.below(6)
        ),
    }
}

fn read(table: &Table, rng: &mut Rng) -> String {
    let (name, whole) = (&table.name, table.whole());
    let (hint, filter) = (table.hint(rng), table.filter(rng));
    let (one, two) = (table.column(rng), table.column(rng));
    let (shown, also_shown) = (one.shown(""), two.shown(""));
    match rng.below(10) {
        0..4 => {
            let lock = rng.pick(&["", "", " FOR UPDATE", " LOCK IN SHARE MODE"]);
            format!("SELECT {whole} FROM {name}{hint}{filter} ORDER BY {whole}{lock}")
        }
        4 => {
            format!("SELECT COUNT(*), COUNT(DISTINCT {shown}), COUNT({also_shown}) FROM {name}{hint}{filter}")
        }
        5 => format!("SELECT {} FROM {name}{hint}{filter}", smallest_and_largest(one)),
        6 => format!(
            "SELECT {shown} AS v, COUNT(*) FROM {name}{hint}{filter} GROUP BY {} ORDER BY 1, 2",
            one.name
        ),
        7 => {
            let order = rng.pick(&["", " DESC"]);
            format!(
                "SELECT {shown} AS v FROM {name}{hint}{filter} ORDER BY {}{order} LIMIT {}",
                one.name,
                1 + rng.below(9)
            )
        }
        8 => {
            format!("SELECT DISTINCT {shown} AS v, {also_shown} AS w FROM {name}{hint}{filter} ORDER BY 1, 2")
        }
        _ => format!(
            "SELECT COUNT(*) FROM {name}{hint} WHERE ({}) OR ({})",
            table.condition(rng),
            table.condition(rng)
        ),
    }
}

// Texts that are equal may be written in several ways.
fn smallest_and_largest(column: &Column) -> String {
    let name = &column.name;
    if column.is_text() {
        format!("HEX(WEIGHT_STRING(RTRIM(MIN({name})))), HEX(WEIGHT_STRING(RTRIM(MAX({name}))))")
    } else {
        format!("HEX(MIN({name})), HEX(MAX({name}))")
    }
}

fn read_two(table: &Table, other: &Table, rng: &mut Rng) -> String {
    let alike = |(a, b): &(&Column, &Column)| a.kind == b.kind && a.collation == b.collation;
    let pairs: Vec<(&Column, &Column)> = table
        .columns
        .iter()
        .flat_map(|a| other.columns.iter().map(move |b| (a, b)))
        .filter(alike)
        .collect();
    if pairs.is_empty() {
        return read(table, rng);
    }
    let (one, two) = rng.pick(&pairs);
    let (third, fourth) = (table.column(rng), other.column(rng));
    let (name, whole) = (&table.name, table.whole());
    let in_other = format!("b.{} > {}", fourth.name, fourth.value(rng));
    match rng.below(5) {
        0 | 1 => format!(
            "SELECT COUNT(*), COUNT(DISTINCT {}), COUNT({}) FROM {name} a{} {}JOIN {} b{} ON a.{} = b.{} AND {in_other}",
            third.shown("a."),
            fourth.shown("b."),
            table.hint(rng),
            rng.pick(&["", "LEFT "]),
            other.name,
            other.hint(rng),
            one.name,
            two.name
        ),
        2 => {
            let not = rng.pick(&["", "NOT "]);
            let filter = other.filter(rng);
            format!(
                "SELECT {whole} FROM {name} WHERE {} {not}IN (SELECT {} FROM {}{filter}) ORDER BY {whole}",
                one.name, two.name, other.name
            )
        }
        3 => format!(
            "SELECT {whole} FROM {name} a WHERE EXISTS (SELECT 1 FROM {} b WHERE a.{} = b.{} AND {in_other}) ORDER BY {whole}",
            other.name, one.name, two.name
        ),
        _ if name == &other.name => read(table, rng),
        _ => format!(
            "DELETE a FROM {name} a JOIN {} b ON a.{} = b.{} WHERE {in_other} AND b.{} = {}",
            other.name,
            one.name,
            two.name,
            two.name,
            two.value(rng)
        ),
    }
}

fn transaction(rng: &mut Rng) -> String {
    let point = rng.below(3);
    match rng.below(12) {
        0..3 => "BEGIN".into(),
        3..6 => "COMMIT".into(),
        6 => "ROLLBACK".into(),
        7 | 8 => format!("SAVEPOINT s{point}"),
        9 => format!("ROLLBACK TO s{point}"),
        10 => format!("RELEASE SAVEPOINT s{point}"),
        _ => {
            let level = rng.pick(&["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]);
            format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}")
        }
    }
}

fn alter(table: &mut Table, rng: &mut Rng) -> String {
    let algorithm = rng.pick(&["", "", ", ALGORITHM=COPY"]);
    let name = table.name.clone();
    match rng.below(5) {
        0 | 1 => {
            let may_be_unique = !table.is_partitioned();
            format!(
                "ALTER TABLE {name} ADD {}{algorithm}",
                table.key(rng, may_be_unique)
            )
        }
        2 if !table.keys.is_empty() => {
            let key = table.keys.swap_remove(rng.below(table.keys.len()));
            format!("ALTER TABLE {name} DROP KEY {key}{algorithm}")
        }
        3 => {
            let new_name = table.new_name('c');
            let mut column = Column::random(new_name, rng);
            // A TIMESTAMP that is not null starts with the time.
            column.nullable |= column.kind == Kind::Timestamp;
            let has_default =
                !column.nullable && !matches!(column.kind, Kind::Text | Kind::Blob) && rng.one_in(2);
            let default = if has_default {
                format!(" DEFAULT ({})", column.value(rng))
            } else {
                String::new()
            };
            let place = rng.pick(&["", "", " FIRST"]);
            let statement = format!(
                "ALTER TABLE {name} ADD COLUMN {}{default}{place}{algorithm}",
                column.definition()
            );
            table.columns.push(column);
            statement
        }
        _ => format!("ALTER TABLE {name} FORCE{algorithm}"),
    }
}

fn administer(table: &Table, rng: &mut Rng) -> String {
    let name = &table.name;
    match rng.below(4) {
        0 if !table.counts => format!("TRUNCATE TABLE {name}"),
        1 => format!("OPTIMIZE TABLE {name}"),
        _ => format!("ANALYZE TABLE {name}"),
    }
}
