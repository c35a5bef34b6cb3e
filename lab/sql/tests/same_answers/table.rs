//! Tables with random columns and keys.

use esker_testkit::random::Rng;

use crate::column::{Column, Kind};

/// A table as it is by now.
#[derive(Debug)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    /// The columns of the primary key; empty without one.
    pub primary: Vec<String>,
    /// Whether the primary key is a number that the engine gives. Such a table is not altered: InnoDB counts from the highest row then.
    pub counts: bool,
    /// The other keys.
    pub keys: Vec<String>,
    pub definition: String,
    names_given: usize,
}

impl Table {
    pub fn random(name: &str, rng: &mut Rng) -> Table {
        let mut table = Table {
            name: name.to_owned(),
            columns: Vec::new(),
            primary: Vec::new(),
            counts: false,
            keys: Vec::new(),
            definition: String::new(),
            names_given: 0,
        };
        for _ in 0..2 + rng.below(6) {
            let column = Column::random(table.new_name('c'), rng);
            table.columns.push(column);
        }
        let mut parts = Vec::new();
        match rng.below(20) {
            0..4 => {
                table.counts = true;
                table.primary = vec!["id".into()];
                parts.push("id INT NOT NULL AUTO_INCREMENT PRIMARY KEY".to_owned());
            }
            4..16 => {
                let wanted = rng.pick(&[1, 1, 2, 3]);
                let mut key_parts = Vec::new();
                for at in table.some_columns(wanted, rng) {
                    let column = &mut table.columns[at];
                    column.nullable = false;
                    table.primary.push(column.name.clone());
                    key_parts.push(column.key_part(rng));
                }
                parts.push(format!("PRIMARY KEY ({})", key_parts.join(", ")));
            }
            _ => (),
        }
        if rng.one_in(2) {
            let name = table.new_name('g');
            let at = rng.below(table.columns.len());
            table
                .columns
                .extend(Column::computed(name, &table.columns[at], rng));
        }
        let partitions = table.partitions(rng);
        for _ in 0..rng.below(5) {
            let key = table.key(rng, partitions.is_empty());
            parts.push(key);
        }
        let columns: Vec<String> = table.columns.iter().map(Column::definition).collect();
        table.definition = format!(
            "CREATE TABLE {name} ({}, {}",
            columns.join(", "),
            parts.join(", ")
        );
        table.definition = format!("{}){partitions}", table.definition.trim_end_matches(", "));
        table
    }

    // A column that all unique keys have can tell the partition; those without a primary key have no unique ones either.
    fn partitions(&self, rng: &mut Rng) -> String {
        if !rng.one_in(7) {
            return String::new();
        }
        let is_number = |column: &&Column| {
            matches!(column.kind, Kind::Int | Kind::BigInt | Kind::TinyInt) && column.generated.is_none()
        };
        let may = |column: &&Column| {
            is_number(column) && (self.primary.is_empty() || self.primary.contains(&column.name))
        };
        let by = match self.columns.iter().find(may) {
            _ if self.counts => "id",
            Some(column) => &column.name,
            None => return String::new(),
        };
        match rng.below(3) {
            0 => format!(" PARTITION BY HASH ({by}) PARTITIONS 3"),
            1 => format!(" PARTITION BY KEY ({by}) PARTITIONS 4"),
            _ => format!(
                " PARTITION BY RANGE ({by}) (PARTITION a VALUES LESS THAN (5), PARTITION b VALUES LESS THAN (20), PARTITION c VALUES LESS THAN MAXVALUE)"
            ),
        }
    }

    pub fn is_partitioned(&self) -> bool {
        self.definition.contains(" PARTITION BY ")
    }

    pub fn new_name(&mut self, letter: char) -> String {
        self.names_given += 1;
        format!("{letter}{}", self.names_given)
    }

    fn some_columns(&self, wanted: usize, rng: &mut Rng) -> Vec<usize> {
        let mut left: Vec<usize> = (0..self.columns.len()).collect();
        (0..wanted.min(left.len()))
            .map(|_| left.swap_remove(rng.below(left.len())))
            .collect()
    }

    /// The definition of another key, which the table has from now on.
    pub fn key(&mut self, rng: &mut Rng, may_be_unique: bool) -> String {
        let wanted = rng.pick(&[1, 1, 2, 3]);
        let columns = self.some_columns(wanted, rng);
        let parts: Vec<String> = columns.iter().map(|at| self.columns[*at].key_part(rng)).collect();
        let name = self.new_name('k');
        self.keys.push(name.clone());
        let unique = if may_be_unique && rng.one_in(3) {
            "UNIQUE "
        } else {
            ""
        };
        format!("{unique}KEY {name} ({})", parts.join(", "))
    }

    /// Columns that statements write.
    pub fn written(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| column.generated.is_none())
    }

    pub fn names(&self) -> String {
        let names: Vec<&str> = self.written().map(|column| column.name.as_str()).collect();
        names.join(", ")
    }

    pub fn rows(&self, count: usize, rng: &mut Rng) -> String {
        let mut row = || {
            let values: Vec<String> = self.written().map(|column| column.value(rng)).collect();
            format!("({})", values.join(", "))
        };
        let rows: Vec<String> = (0..count).map(|_| row()).collect();
        rows.join(", ")
    }

    /// All of each row.
    pub fn whole(&self) -> String {
        let mut all: Vec<String> = self.columns.iter().map(Column::whole).collect();
        all.extend(self.counts.then(|| "id".to_owned()));
        all.join(", ")
    }

    pub fn column(&self, rng: &mut Rng) -> &Column {
        &self.columns[rng.below(self.columns.len())]
    }

    /// A key that the optimizer has to take, if there is one, or none.
    pub fn hint(&self, rng: &mut Rng) -> String {
        let all = self.keys.len() + usize::from(!self.primary.is_empty());
        if all == 0 || rng.one_in(3) {
            return String::new();
        }
        let at = rng.below(all);
        format!(
            " FORCE INDEX ({})",
            self.keys.get(at).map_or("PRIMARY", String::as_str)
        )
    }

    pub fn condition(&self, rng: &mut Rng) -> String {
        self.nested_condition(rng, 0)
    }

    fn nested_condition(&self, rng: &mut Rng, depth: usize) -> String {
        if depth < 2 && rng.below(5) < 2 {
            let (left, right) = (
                self.nested_condition(rng, depth + 1),
                self.nested_condition(rng, depth + 1),
            );
            return format!("({left} {} {right})", rng.pick(&["AND", "AND", "OR"]));
        }
        if self.counts && rng.one_in(5) {
            return format!("id {} {}", rng.pick(&["=", "<", ">", ">=", "<="]), rng.below(60));
        }
        let column = self.column(rng);
        let name = &column.name;
        match rng.below(20) {
            0 | 1 => format!("{name} IS {}NULL", rng.pick(&["", "NOT "])),
            2..5 => {
                let values: Vec<String> = (0..1 + rng.below(5)).map(|_| column.value(rng)).collect();
                format!("{name} IN ({})", values.join(", "))
            }
            5..8 => format!("{name} BETWEEN {} AND {}", column.value(rng), column.value(rng)),
            8..10 if column.is_text() => {
                format!("{name} LIKE '{}%'", rng.pick(&["a", "A", "b", "", "ä", "z"]))
            }
            _ => format!(
                "{name} {} {}",
                rng.pick(&["=", "=", "<", ">", "<=", ">=", "<>", "<=>"]),
                column.value(rng)
            ),
        }
    }

    pub fn filter(&self, rng: &mut Rng) -> String {
        if rng.one_in(7) {
            String::new()
        } else {
            format!(" WHERE {}", self.condition(rng))
        }
    }

    pub fn assignments(&self, rng: &mut Rng) -> String {
        let mut left: Vec<&Column> = self.written().collect();
        let mut all = Vec::new();
        for _ in 0..(1 + rng.below(3)).min(left.len()) {
            let column = left.swap_remove(rng.below(left.len()));
            let name = &column.name;
            all.push(match column.kind {
                Kind::Int | Kind::TinyInt | Kind::Decimal if rng.one_in(3) => format!("{name} = {name} + 1"),
                _ => format!("{name} = {}", column.value(rng)),
            });
        }
        all.join(", ")
    }
}
