//! `[[local.instance_types]]`: named shapes of resources.

use super::settings::{INSTANCE_TYPE_KEYS, did_you_mean};
use domain::{
    InstanceType, Resources,
    resources::{parse_bytes, parse_cpu},
};
use toml::{Table, Value};

/// Every type that could be read; `tell` takes key, message and fix of what could not.
pub(super) fn read_types(value: &Value, tell: &mut impl FnMut(&str, String, String)) -> Vec<InstanceType> {
    let Value::Array(items) = value else {
        tell(
            "local.instance_types",
            "must be a list".to_owned(),
            "write `[[local.instance_types]]` for each".to_owned(),
        );
        return Vec::new();
    };
    let mut types: Vec<InstanceType> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let key = format!("local.instance_types[{at}]");
        match read_type(item, &key, tell) {
            Some(one) if types.iter().any(|known| known.name == one.name) => {
                tell(&key, format!("`{}` is defined twice", one.name), "give each its own name".to_owned());
            }
            Some(one) => types.push(one),
            None => {}
        }
    }
    types
}

fn read_type(item: &Value, key: &str, tell: &mut impl FnMut(&str, String, String)) -> Option<InstanceType> {
    let Value::Table(table) = item else {
        tell(key, "must be a section".to_owned(), "write `[[local.instance_types]]`".to_owned());
        return None;
    };
    for name in table.keys().filter(|name| !INSTANCE_TYPE_KEYS.contains(&name.as_str())) {
        let fix = did_you_mean(name, INSTANCE_TYPE_KEYS.iter().copied());
        tell(&format!("{key}.{name}"), "is not a key of an instance type".to_owned(), fix);
    }
    let name = table.get("name").and_then(scalar).filter(|name| !name.is_empty());
    if name.is_none() {
        tell(&format!("{key}.name"), "is missing".to_owned(), "name the instance type".to_owned());
    }
    let requests = amounts(table, key, tell);
    let limits = match table.get("limits") {
        None | Some(Value::Boolean(false)) => None,
        Some(Value::Boolean(true)) => requests,
        Some(Value::Table(own)) => amounts(own, &format!("{key}.limits"), tell),
        Some(_) => {
            let fix = "`true` for the same as asked, or `{ cpu = …, memory = … }`".to_owned();
            tell(&format!("{key}.limits"), "must be a boolean or amounts".to_owned(), fix);
            None
        }
    };
    Some(InstanceType { name: name?, requests: requests?, limits })
}

fn amounts(table: &Table, key: &str, tell: &mut impl FnMut(&str, String, String)) -> Option<Resources> {
    let text = |name: &str| table.get(name).and_then(scalar);
    let cpu_milli = text("cpu").as_deref().and_then(parse_cpu).filter(|milli| *milli > 0);
    if cpu_milli.is_none() {
        tell(
            &format!("{key}.cpu"),
            "must be an amount of cores above zero".to_owned(),
            "such as `2` or `500m`".to_owned(),
        );
    }
    let memory_bytes = text("memory").as_deref().and_then(parse_bytes).filter(|bytes| *bytes > 0);
    if memory_bytes.is_none() {
        tell(&format!("{key}.memory"), "must be a size above zero".to_owned(), "such as `4Gi`".to_owned());
    }
    let gpus = match text("gpus").map(|text| text.parse::<u32>()) {
        None => Some(0),
        Some(Ok(gpus)) => Some(gpus),
        Some(Err(_)) => {
            tell(&format!("{key}.gpus"), "must be a whole number".to_owned(), "such as `1`".to_owned());
            None
        }
    };
    Some(Resources { cpu_milli: cpu_milli?, memory_bytes: memory_bytes?, gpus: gpus? })
}

/// One value as text; `None` for lists and sections.
pub(super) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(value) => Some(value.to_string()),
        _ => None,
    }
}
