//! `families list`, `families create`, `families drop`.

use std::io::Write;

use esker::ColumnFamilyOptions;
use esker::inspect::{Inspector, builtin_key_order};
use serde_json::json;

use crate::args::{Common, CreateFamily, Families, Order};
use crate::database::{Access, builtin_operator, folder, open};
use crate::failure::{EXIT_OK, Failure, Result};
use crate::output::Output;

pub fn run(common: &Common, families: &Families, output: &mut Output) -> Result<u8> {
    match families {
        Families::List => list(common, output)?,
        Families::Create(create) => {
            let settings = settings(create)?;
            let db = open(common, Access::Write, None)?;
            let family = db.create_column_family(&create.name, settings)?;
            let id = family.id();
            db.close()?;
            if output.json {
                output.json_line(&json!({"id": id, "name": create.name}))?;
            }
        }
        Families::Drop { name } => {
            let db = open(common, Access::Write, None)?;
            let family = db.column_family(name)?;
            db.drop_column_family(&family)?;
            db.close()?;
            if output.json {
                output.json_line(&json!({"dropped": name}))?;
            }
        }
    }
    Ok(EXIT_OK)
}

fn list(common: &Common, output: &mut Output) -> Result<()> {
    let info = Inspector::new(folder(common)?).describe()?;
    if output.json {
        let family = |family: &esker::inspect::FamilyInfo| {
            json!({
                "id": family.id, "name": family.name, "key_order": family.key_order,
                "merge_operator": family.merge_operator, "options": super::stats::options_json(&family.options),
            })
        };
        let families: Vec<_> = info.families.iter().map(family).collect();
        return Ok(output.json_line(&json!({ "families": families }))?);
    }
    for family in &info.families {
        writeln!(output, "{}", family.name)?;
    }
    Ok(())
}

fn settings(create: &CreateFamily) -> Result<ColumnFamilyOptions> {
    let mut settings = ColumnFamilyOptions::default();
    for setting in &create.settings {
        let (name, value) = setting.split_once('=').ok_or_else(|| {
            Failure::usage(
                format!("'{setting}' is no setting"),
                "settings are NAME=VALUE, such as --set block_bytes=16KiB",
            )
        })?;
        settings.set(name, value)?;
    }
    settings.merge_operator = create.merge_operator.map(builtin_operator);
    if create.order == Order::ReverseBytewise
        && let Some(order) = builtin_key_order("esker.reverse-bytewise")
    {
        settings.key_order = order;
    }
    Ok(settings)
}
