//! `--query`: JMESPath over what would be printed.
//!
//! The library keeps maps sorted by key; a selection such as `{n: name, s: status}` gets its own order back, because
//! tab-separated values have nothing but their order.

use crate::failure::{Done, Failure};
use jmespath::{Expression, Variable, ast::Ast};
use serde_json::{Map, Value};

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Query {
    expression: Expression<'static>,
    /// The keys of the maps that come out, in the order they were written.
    order: Vec<String>,
}

impl Query {
    pub(crate) fn parse(text: &str) -> Done<Query> {
        let expression = jmespath::compile(text).map_err(|error| bad(text, &error))?;
        let mut order = Vec::new();
        written_order(expression.as_ast(), &mut order);
        Ok(Query { expression, order })
    }

    pub(crate) fn apply(&self, value: &Value) -> Done<Value> {
        let variable = Variable::try_from(value.clone()).map_err(|error| bad(self.expression.as_str(), &error))?;
        let found = self.expression.search(variable).map_err(|error| bad(self.expression.as_str(), &error))?;
        let found = serde_json::to_value(&*found).expect("what came from JSON goes back to it");
        Ok(reordered(found, &self.order))
    }
}

fn bad(text: &str, error: &jmespath::JmespathError) -> Failure {
    let shown = error.to_string();
    let reason = shown.lines().next().unwrap_or_default().trim_end_matches(['.', ' ']);
    let reason = reason.split(" (line").next().unwrap_or(reason).to_lowercase();
    let caret = " ".repeat(error.offset.min(text.chars().count()));
    Failure::input("`--query` is not a JMESPath expression that can be used here")
        .because(format!("{reason}\n{text}\n{caret}^"))
        .hint("quote names with odd letters, as in `\"my-key\"`, and texts like `'this'`")
}

fn written_order(ast: &Ast, order: &mut Vec<String>) {
    match ast {
        Ast::MultiHash { elements, .. } => {
            for pair in elements {
                order.push(pair.key.clone());
                written_order(&pair.value, order);
            }
        }
        Ast::Projection { lhs, rhs, .. } | Ast::Subexpr { lhs, rhs, .. } | Ast::Or { lhs, rhs, .. } => {
            written_order(lhs, order);
            written_order(rhs, order);
        }
        Ast::Flatten { node, .. } | Ast::ObjectValues { node, .. } => written_order(node, order),
        Ast::Condition { then, .. } => written_order(then, order),
        Ast::Expref { ast, .. } => written_order(ast, order),
        Ast::Function { args, .. } => args.iter().for_each(|arg| written_order(arg, order)),
        Ast::MultiList { elements, .. } => elements.iter().for_each(|element| written_order(element, order)),
        _ => {}
    }
}

fn reordered(value: Value, order: &[String]) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(|item| reordered(item, order)).collect(),
        Value::Object(map) => {
            let place = |key: &str| order.iter().position(|known| known == key).unwrap_or(usize::MAX);
            let mut entries: Vec<(String, Value)> = map.into_iter().collect();
            entries.sort_by_key(|(key, _)| place(key));
            Value::Object(entries.into_iter().map(|(key, value)| (key, reordered(value, order))).collect::<Map<_, _>>())
        }
        scalar => scalar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_selection_keeps_the_order_it_was_written_in() {
        let query = Query::parse("[?status=='Failed'].{s: status, n: name}").unwrap();
        let found =
            query.apply(&json!([{"name": "a", "status": "Failed"}, {"name": "b", "status": "Completed"}])).unwrap();
        assert_eq!(found.to_string(), r#"[{"s":"Failed","n":"a"}]"#);
    }

    #[test]
    fn numbers_and_nulls_come_through() {
        let query = Query::parse("[0].{a: a, b: b, c: c}").unwrap();
        assert_eq!(query.apply(&json!([{"a": 1, "b": 1.5}])).unwrap(), json!({"a": 1, "b": 1.5, "c": null}));
    }

    #[test]
    fn a_bad_expression_shows_where() {
        let shown = Query::parse("[].{name").unwrap_err().to_string();
        assert!(shown.contains("\n    [].{name\n            ^\n"), "{shown}");
        assert!(shown.starts_with("error: `--query` is not"), "{shown}");
    }
}
