//! Columns of random types, and values for them.

use esker_testkit::random::Rng;

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Int,
    BigInt,
    Unsigned,
    TinyInt,
    Varchar,
    Char,
    Text,
    Decimal,
    Datetime,
    Date,
    Time,
    Timestamp,
    Year,
    Double,
    Float,
    Enum,
    Set,
    Bit,
    Binary,
    Varbinary,
    Blob,
}

use Kind::*;

/// All kinds, and those twice that make keys which many rows share.
const KINDS: [Kind; 24] = [
    Int, Int, Int, BigInt, Unsigned, TinyInt, Varchar, Varchar, Char, Text, Decimal, Datetime, Date, Time,
    Timestamp, Year, Double, Float, Enum, Set, Bit, Binary, Varbinary, Blob,
];

const COLLATIONS: [&str; 9] = [
    "utf8mb4_general_ci",
    "utf8mb4_bin",
    "utf8mb4_unicode_ci",
    "utf8mb4_uca1400_ai_ci",
    "latin1_swedish_ci",
    "latin1_general_cs",
    "ucs2_general_ci",
    "utf8mb4_nopad_bin",
    "utf8mb4_unicode_nopad_ci",
];

/// Collations in which a CHAR may be: where spaces at its end count, InnoDB compares those that it is filled up with.
const PADDED_COLLATIONS: usize = 7;

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
    pub nullable: bool,
    /// An expression and VIRTUAL or STORED, if nobody writes it.
    pub generated: Option<(String, &'static str)>,
    pub collation: &'static str,
    /// In characters or bytes, of types that have one.
    length: usize,
}

impl Column {
    pub fn random(name: String, rng: &mut Rng) -> Column {
        let kind = rng.pick(&KINDS);
        let collations = if kind == Char {
            PADDED_COLLATIONS
        } else {
            COLLATIONS.len()
        };
        Column {
            name,
            kind,
            nullable: rng.one_in(2),
            generated: None,
            collation: COLLATIONS[rng.below(collations)],
            length: rng.pick(&[3, 10, 40, 100]),
        }
    }

    /// One that is computed from `from`, if it is of a kind that a sum or a text can be made of.
    pub fn computed(name: String, from: &Column, rng: &mut Rng) -> Option<Column> {
        let (kind, expression) = match from.kind {
            Int | TinyInt => (BigInt, format!("{} * 2 % 7", from.name)),
            Varchar if from.length >= 10 => (Varchar, format!("CONCAT({}, 'q')", from.name)),
            _ => return None,
        };
        Some(Column {
            name,
            kind,
            nullable: true,
            generated: Some((expression, rng.pick(&["VIRTUAL", "STORED"]))),
            collation: from.collation,
            length: 110,
        })
    }

    pub fn is_text(&self) -> bool {
        matches!(self.kind, Varchar | Char | Text)
    }

    fn is_bytes(&self) -> bool {
        matches!(self.kind, Binary | Varbinary | Blob)
    }

    fn sql_type(&self) -> String {
        let charset = self.collation.split('_').next().unwrap_or_default();
        let text =
            |sql_type: String| format!("{sql_type} CHARACTER SET {charset} COLLATE {}", self.collation);
        match self.kind {
            Int => "INT".into(),
            BigInt => "BIGINT".into(),
            Unsigned => "BIGINT UNSIGNED".into(),
            TinyInt => "TINYINT".into(),
            Varchar => text(format!("VARCHAR({})", self.length)),
            Char => text(format!("CHAR({})", self.length.min(40))),
            Text => text("TEXT".into()),
            Decimal => "DECIMAL(12,3)".into(),
            Datetime => "DATETIME(3)".into(),
            Date => "DATE".into(),
            Time => "TIME(2)".into(),
            Timestamp => "TIMESTAMP(6)".into(),
            Year => "YEAR".into(),
            Double => "DOUBLE".into(),
            Float => "FLOAT".into(),
            Enum => "ENUM('a','b','','zz')".into(),
            Set => "SET('x','y','z')".into(),
            Bit => "BIT(9)".into(),
            Binary => "BINARY(4)".into(),
            Varbinary => format!("VARBINARY({})", self.length),
            Blob => "BLOB".into(),
        }
    }

    pub fn definition(&self) -> String {
        let (name, sql_type) = (&self.name, self.sql_type());
        match &self.generated {
            Some((expression, how)) => format!("{name} {sql_type} AS ({expression}) {how}"),
            None => format!(
                "{name} {sql_type} {}",
                if self.nullable { "NULL" } else { "NOT NULL" }
            ),
        }
    }

    /// A part of a key: the column, or its beginning.
    pub fn key_part(&self, rng: &mut Rng) -> String {
        let order = rng.pick(&["", "", " DESC"]);
        let longest = match self.kind {
            Text | Blob => return format!("{}({}){order}", self.name, rng.pick(&[1, 3, 20])),
            Binary => 4,
            Char => self.length.min(40),
            Varchar | Varbinary => self.length,
            _ => 0,
        };
        if longest > 0 && rng.one_in(3) {
            return format!("{}({}){order}", self.name, 1 + rng.below(longest));
        }
        format!("{}{order}", self.name)
    }

    /// A value, as SQL has it.
    pub fn value(&self, rng: &mut Rng) -> String {
        if self.nullable && rng.one_in(7) {
            return "NULL".into();
        }
        let near = |rng: &mut Rng| (rng.below(36) as i64 - 5).to_string();
        match self.kind {
            Int | BigInt if rng.one_in(3) => (rng.bits() as i32).to_string(),
            Int | BigInt | TinyInt => near(rng),
            Unsigned => match rng.below(4) {
                0 => u64::MAX.to_string(),
                1 => (1u64 << 63).to_string(),
                2 => (rng.bits() >> 24).to_string(),
                _ => rng.below(30).to_string(),
            },
            Varchar | Char | Text | Varbinary | Binary | Blob => self.characters(rng),
            Decimal if rng.one_in(2) => (rng.bits() as i32 / 32).to_string(),
            Decimal => format!("{}.{:03}", near(rng), rng.below(1_000)),
            Datetime => format!(
                "'{} {:02}:00:00.{:03}'",
                day(rng),
                rng.below(24),
                rng.below(1_000)
            ),
            Timestamp => format!(
                "'{} {:02}:00:00.{:06}'",
                day(rng),
                4 + rng.below(20),
                rng.below(1_000_000)
            ),
            Date if rng.one_in(4) => "'1000-01-01'".into(),
            Date => format!("'{}'", day(rng)),
            Time => format!(
                "'{}{:02}:{:02}:07.{:02}'",
                rng.pick(&["", "-"]),
                rng.below(100),
                rng.below(60),
                rng.below(100)
            ),
            Year => rng.pick(&["0", "1901", "1999", "2000", "2024", "2155"]).into(),
            Double | Float => match rng.below(5) {
                0 => rng.pick(&["0", "1e30", "-1e30"]).into(),
                1 => format!("{}.25", near(rng)),
                _ => near(rng),
            },
            Enum => rng.pick(&["'a'", "'b'", "''", "'zz'"]).into(),
            Set => rng.pick(&["''", "'x'", "'x,z'", "'y'", "'x,y,z'"]).into(),
            Bit => format!("b'{:b}'", rng.below(512)),
        }
    }

    // No letters that stand for two: the beginning of a column that has them is not found by the beginning of an equal text.
    fn characters(&self, rng: &mut Rng) -> String {
        const TEXTS: [&str; 12] = ["a", "A", "b", "B", " ", "ä", "z", "é", "e", "", "\\t", "0"];
        const BYTES: [&str; 8] = ["a", "A", "b", " ", "z", "\\t", "0", "\\0"];
        let mut value = String::new();
        for _ in 0..rng.pick(&[0, 1, 1, 2, 3, 3, 8]) {
            value += if self.is_text() {
                rng.pick(&TEXTS)
            } else {
                rng.pick(&BYTES)
            };
        }
        if rng.one_in(10) {
            value += &" ".repeat(1 + rng.below(3));
        }
        if rng.one_in(30) {
            return format!(
                "CONCAT('{value}', REPEAT('{}', {}))",
                rng.pick(&["a", "b"]),
                rng.pick(&[20, 300, 3_000])
            );
        }
        format!("'{value}'")
    }

    /// What a query shows of the column, so that all columns that are equal in an index look the same.
    pub fn shown(&self, qualifier: &str) -> String {
        let name = format!("{qualifier}{}", self.name);
        match self.kind {
            _ if self.is_text() => format!("HEX(WEIGHT_STRING(RTRIM({name})))"),
            Bit => format!("HEX({name})"),
            _ if self.is_bytes() => format!("HEX({name})"),
            _ => name,
        }
    }

    /// All of the column.
    pub fn whole(&self) -> String {
        match self.kind {
            Bit => format!("HEX({})", self.name),
            _ if self.is_bytes() || self.is_text() => format!("HEX({})", self.name),
            _ => self.name.clone(),
        }
    }
}

fn day(rng: &mut Rng) -> String {
    format!(
        "20{}-{:02}-{:02}",
        10 + rng.below(20),
        1 + rng.below(12),
        1 + rng.below(28)
    )
}
