//! What a thing is, in a form that is the same wherever it was read: compared to tell whether a copy is the original.

use domain::tracking::Point;
use ring::digest::{Context, SHA256};
use std::{
    cmp::Ordering,
    collections::BTreeMap,
    io::{self, Read},
    path::Path,
};

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    Experiments,
    Runs,
    Params,
    Tags,
    Points,
    Inputs,
    Artifacts,
    LoggedModels,
    ModelPoints,
    Models,
    Versions,
    Aliases,
}

impl What {
    pub(super) fn label(self) -> &'static str {
        match self {
            What::Experiments => "experiments",
            What::Runs => "runs",
            What::Params => "params",
            What::Tags => "tags",
            What::Points => "metric points",
            What::Inputs => "inputs and outputs",
            What::Artifacts => "artifact files",
            What::LoggedModels => "logged models",
            What::ModelPoints => "points of models",
            What::Models => "registered models",
            What::Versions => "model versions",
            What::Aliases => "aliases",
        }
    }

    /// Whether it is a thing of its own, and not a part of one. Of such a thing only what the source tells is compared.
    fn is_thing(self) -> bool {
        matches!(self, What::Experiments | What::Runs | What::LoggedModels | What::Models | What::Versions)
    }
}

/// One kind of facts about a thing.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Section {
    pub(super) count: u64,
    pub(super) entries: BTreeMap<String, String>,
}

/// Everything that is compared of a thing.
#[derive(Debug, Clone, Default)]
pub(super) struct Image(pub(super) BTreeMap<What, Section>);

impl Image {
    /// Facts, each counted.
    pub(super) fn put(&mut self, what: What, entries: BTreeMap<String, String>) {
        let count = entries.len() as u64;
        self.0.insert(what, Section { count, entries });
    }

    /// A thing itself, and what is said of it; what is not said is not compared.
    pub(super) fn put_thing<'a>(&mut self, what: What, facts: impl IntoIterator<Item = (&'a str, String)>) {
        let said = facts.into_iter().filter(|(_, value)| !value.is_empty());
        let entries = said.map(|(key, value)| (key.to_owned(), value)).collect();
        self.0.insert(what, Section { count: 1, entries });
    }

    /// Points by metric, as a count and a checksum each.
    pub(super) fn put_points(&mut self, what: What, mut points: Vec<(String, Point)>) {
        points.sort_by(|(a, p), (b, q)| a.cmp(b).then_with(|| order(p, q)));
        let mut entries = BTreeMap::new();
        for group in points.chunk_by(|(a, _), (b, _)| a == b) {
            let mut sum = Context::new(&SHA256);
            for (_, point) in group {
                sum.update(&point.timestamp_ms.to_be_bytes());
                sum.update(&point.step.to_be_bytes());
                sum.update(&bits(point.value).to_be_bytes());
            }
            entries.insert(group[0].0.clone(), format!("{} points {}", group.len(), hex(sum)));
        }
        self.0.insert(what, Section { count: points.len() as u64, entries });
    }

    /// What of the source is not so in the copy, in words.
    pub(super) fn differences(&self, copy: &Image) -> Vec<String> {
        let nothing = Section::default();
        let mut all = Vec::new();
        for (what, source) in &self.0 {
            let copied = copy.0.get(what).unwrap_or(&nothing);
            let keys = source.entries.keys().chain(copied.entries.keys().filter(|_| !what.is_thing()));
            let mut differing: Vec<&String> =
                keys.filter(|key| source.entries.get(*key) != copied.entries.get(*key)).collect();
            differing.sort();
            differing.dedup();
            if let Some(first) = differing.first() {
                let shown = |section: &Section| section.entries.get(*first).map_or("nothing".into(), |v| brief(v));
                all.push(format!(
                    "{} of {} differ in {}: `{first}` is `{}` in the source and `{}` here",
                    differing.len(),
                    source.entries.len().max(copied.entries.len()),
                    what.label(),
                    shown(source),
                    shown(copied)
                ));
            } else if source.count != copied.count {
                all.push(format!("{} {} in the source and {} here", source.count, what.label(), copied.count));
            }
        }
        all
    }

    /// A checksum of one kind of facts; of a thing itself, of those facts the source tells.
    pub(super) fn sum(&self, what: What, like: &Image) -> Option<String> {
        let section = self.0.get(&what)?;
        let told = |key: &String| like.0.get(&what).is_some_and(|like| like.entries.contains_key(key));
        let mut sum = Context::new(&SHA256);
        for (key, value) in section.entries.iter().filter(|(key, _)| !what.is_thing() || told(key)) {
            for text in [key, value] {
                sum.update(&(text.len() as u64).to_be_bytes());
                sum.update(text.as_bytes());
            }
        }
        Some(hex(sum))
    }
}

fn brief(text: &str) -> String {
    let cut: String = text.chars().take(80).collect();
    if cut.len() < text.len() { cut + "…" } else { cut }
}

fn order(a: &Point, b: &Point) -> Ordering {
    let key = |point: &Point| (point.timestamp_ms, point.step, bits(point.value));
    key(a).cmp(&key(b))
}

/// The bits of a value. All that are no number are the same, and so are both zeros.
fn bits(value: f64) -> u64 {
    match value {
        value if value.is_nan() => f64::NAN.to_bits(),
        0.0 => 0,
        value => value.to_bits(),
    }
}

/// How a file is told from another: its size and its checksum.
pub(super) fn file_mark(bytes: u64, sum: Context) -> String {
    format!("{bytes} bytes {}", hex(sum))
}

/// The mark of a file of this machine.
pub(super) fn mark_of(path: &Path) -> io::Result<String> {
    let (mut file, mut sum) = (std::fs::File::open(path)?, Context::new(&SHA256));
    let (mut buffer, mut bytes) = (vec![0; 256 << 10], 0);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(file_mark(bytes, sum)),
            read => {
                bytes += read as u64;
                sum.update(&buffer[..read]);
            }
        }
    }
}

pub(super) fn hex(sum: Context) -> String {
    sum.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(value: f64, timestamp_ms: i64) -> (String, Point) {
        ("loss".into(), Point { value, timestamp_ms, step: 0 })
    }

    fn of(points: Vec<(String, Point)>) -> Image {
        let mut image = Image::default();
        image.put_points(What::Points, points);
        image
    }

    #[test]
    fn points_are_the_same_in_any_order_and_not_when_one_bit_is_another() {
        let source = of(vec![point(1.0, 1), point(f64::NAN, 2), point(0.0, 3)]);
        assert!(source.differences(&of(vec![point(0.0, 3), point(-f64::NAN, 2), point(1.0, 1)])).is_empty());
        for other in [
            vec![point(1.0, 1), point(f64::NAN, 2)],
            vec![point(1.0 + f64::EPSILON, 1), point(f64::NAN, 2), point(0.0, 3)],
            vec![point(1.0, 1), point(f64::NAN, 3), point(0.0, 3)],
        ] {
            let other = of(other);
            assert_eq!(source.differences(&other).len(), 1);
            assert_ne!(source.sum(What::Points, &source), other.sum(What::Points, &source));
        }
    }

    #[test]
    fn of_a_thing_only_what_the_source_tells_counts_and_of_its_parts_everything() {
        let entries = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        let (mut source, mut copy) = (Image::default(), Image::default());
        source.put_thing(What::Runs, [("status", "FINISHED".into()), ("name", String::new())]);
        copy.put_thing(What::Runs, [("status", "FINISHED".into()), ("name", "given here".into())]);
        assert!(source.differences(&copy).is_empty());
        assert_eq!(source.sum(What::Runs, &source), copy.sum(What::Runs, &source));
        source.put(What::Tags, entries(&[("a", "1")]));
        copy.put(What::Tags, entries(&[("a", "1"), ("b", "2")]));
        let told = source.differences(&copy).join("\n");
        assert_eq!(told, "1 of 2 differ in tags: `b` is `nothing` in the source and `2` here");
    }
}
