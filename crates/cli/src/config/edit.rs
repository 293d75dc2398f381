//! Changing one value in the text of the settings file, leaving comments and order alone.

/// The text with `section.key = value`. An empty value takes the line out.
pub(crate) fn with_value(text: &str, section: &str, key: &str, value: &str) -> String {
    let line = (!value.is_empty()).then(|| format!("{key} = {}", literal(value)));
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let head = format!("[{section}]");
    let Some(start) = lines.iter().position(|line| bare(line) == head) else {
        if let Some(line) = line {
            if lines.last().is_some_and(|last| !last.trim().is_empty()) {
                lines.push(String::new());
            }
            lines.extend([head, line]);
        }
        return joined(&lines);
    };
    let after = &lines[start + 1..];
    let end = start + 1 + after.iter().position(|line| line.trim_start().starts_with('[')).unwrap_or(after.len());
    let assigns = |line: &String| line.split_once('=').is_some_and(|(name, _)| name.trim().trim_matches('"') == key);
    match (lines[start + 1..end].iter().position(assigns).map(|at| start + 1 + at), line) {
        (Some(at), Some(line)) => lines[at] = line,
        (Some(at), None) => drop(lines.remove(at)),
        (None, Some(line)) => lines.insert(start + 1, line),
        (None, None) => {}
    }
    joined(&lines)
}

fn bare(line: &str) -> &str {
    line.split('#').next().unwrap_or("").trim()
}

fn joined(lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { lines.join("\n") + "\n" }
}

/// Numbers and booleans stand bare, everything else is text.
fn literal(value: &str) -> String {
    let number = value.parse::<i64>().is_ok_and(|number| number.to_string() == value);
    match number || value == "true" || value == "false" {
        true => value.to_owned(),
        false => toml::Value::String(value.to_owned()).to_string(),
    }
}
