//! From the parser's events to a tree, without recursion.
//!
//! Every value is charged against two budgets, values and bytes of text, and so is every copy an alias
//! makes, before it is made: a small file cannot grow into a large tree.

use super::{Key, MAX_BYTES, MAX_DEPTH, MAX_NODES, Node, Raw, clip, mend, plain, scalar};
use crate::spec::Mistake;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Tag};
use std::collections::HashMap;

/// Copies made by aliases may hold this much text in all.
const MAX_COPIED_BYTES: usize = 4 * MAX_BYTES;
/// Enough for anyone to mend; a file of nothing but mistakes is not worth listing.
const MAX_MISTAKES: usize = 100;

/// Builds the document's tree; `None` when there is no document.
pub(super) fn build(file: &str, text: &str) -> Result<Option<Node>, Vec<Mistake>> {
    let mut failed = match attempt(text) {
        Ok(root) => return Ok(root),
        Err(failed) => failed,
    };
    let mut mistakes = std::mem::take(&mut failed.mistakes);
    let mut text = std::borrow::Cow::Borrowed(text);
    for _ in 0..mend::MOST {
        let Some(mended) = failed.syntax.and_then(|error| mend::mended(&text, &error)) else { break };
        text = mended.into();
        failed = match attempt(&text) {
            Ok(root) => return Ok(root),
            Err(failed) => failed,
        };
    }
    // What could not be mended is reported as it first showed itself.
    mistakes.iter_mut().for_each(|mistake| mistake.file = file.to_owned());
    Err(mistakes)
}

struct Failed {
    mistakes: Vec<Mistake>,
    syntax: Option<ScanError>,
}

fn attempt(text: &str) -> Result<Option<Node>, Failed> {
    let (mut builder, mut syntax) = (Builder::default(), None);
    for event in Parser::new_from_str(text) {
        let fatal = match event {
            Ok((event, span)) => builder.take(event, span.start).err().map(|mistake| *mistake),
            Err(error) => Some(in_words(syntax.insert(error))),
        };
        if let Some(fatal) = fatal {
            builder.mistakes.push(fatal);
            break;
        }
    }
    match builder.mistakes.is_empty() {
        true => Ok(builder.root.map(|built| built.node)),
        false => Err(Failed { mistakes: builder.mistakes, syntax }),
    }
}

#[derive(Default)]
struct Builder {
    frames: Vec<Frame>,
    anchors: HashMap<usize, Built>,
    spent: Size,
    mistakes: Vec<Mistake>,
    root: Option<Built>,
}

/// A finished value and what it weighs.
#[derive(Clone)]
struct Built {
    node: Node,
    size: Size,
}

#[derive(Clone, Copy, Default)]
struct Size {
    nodes: usize,
    bytes: usize,
    depth: usize,
}

/// A list or map that is still open.
struct Frame {
    anchor: usize,
    mark: Marker,
    size: Size,
    open: Open,
}

enum Open {
    List(Vec<Node>),
    Map(OpenMap),
}

#[derive(Default)]
struct OpenMap {
    entries: Vec<(Key, Node)>,
    lines: HashMap<String, usize>,
    merges: Vec<Node>,
    key: Option<Pending>,
}

/// The key whose value comes next.
enum Pending {
    Key(Key),
    /// `<<`: the value's keys become this map's own.
    Merge,
    /// Reported; its value is dropped.
    Bad,
}

type Taken = Result<(), Box<Mistake>>;

impl Builder {
    fn take(&mut self, event: Event<'_>, mark: Marker) -> Taken {
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(at(mark, "the file holds several documents", "keep one, and remove the `---` lines"))
            }
            Event::Scalar(text, style, anchor, tag) => {
                let value = self.scalar(&text, style, tag.as_deref(), mark);
                let size = Size { nodes: 1, bytes: text.len(), depth: 0 };
                self.charge(size, mark)?;
                self.place(Built { node: node(mark, value), size }, anchor, mark)
            }
            Event::SequenceStart(anchor, tag) => self.open(anchor, tag.as_deref(), mark, Open::List(Vec::new())),
            Event::MappingStart(anchor, tag) => self.open(anchor, tag.as_deref(), mark, Open::Map(OpenMap::default())),
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(id) => {
                let Some(size) = self.anchors.get(&id).map(|built| built.size) else {
                    return Err(at(mark, "the anchor contains itself through this alias", "remove the alias"));
                };
                self.charge(size, mark)?;
                self.place(self.anchors[&id].clone(), 0, mark)
            }
            _ => Ok(()),
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, mark: Marker) -> Raw {
        self.refuse_strange(tag, mark);
        let as_text = tag.is_some_and(|t| t.is_yaml_core_schema() && t.suffix == "str");
        match style {
            ScalarStyle::Plain if !as_text => scalar::resolve(text),
            _ => Raw::Text { text: text.to_owned(), quoted: true },
        }
    }

    fn open(&mut self, anchor: usize, tag: Option<&Tag>, mark: Marker, open: Open) -> Taken {
        self.refuse_strange(tag, mark);
        let size = Size { nodes: 1, bytes: 0, depth: 1 };
        self.charge(size, mark)?;
        if self.frames.len() >= MAX_DEPTH {
            return Err(too_deep(mark));
        }
        self.frames.push(Frame { anchor, mark, size, open });
        Ok(())
    }

    fn close(&mut self) -> Taken {
        let Some(Frame { anchor, mark, size, open }) = self.frames.pop() else { return Ok(()) };
        let value = match open {
            Open::List(items) => Raw::List(items),
            Open::Map(map) => Raw::Map(self.merged(map)),
        };
        self.place(Built { node: node(mark, value), size }, anchor, mark)
    }

    /// Puts a finished value where it belongs: into the innermost open list or map, or at the root.
    fn place(&mut self, built: Built, anchor: usize, mark: Marker) -> Taken {
        if self.frames.len() + built.size.depth > MAX_DEPTH {
            return Err(too_deep(mark));
        }
        if anchor > 0 {
            self.charge(built.size, mark)?;
            self.anchors.insert(anchor, built.clone());
        }
        let Some(frame) = self.frames.last_mut() else {
            self.root = Some(built);
            return Ok(());
        };
        frame.size.nodes += built.size.nodes;
        frame.size.bytes += built.size.bytes;
        frame.size.depth = frame.size.depth.max(built.size.depth + 1);
        let said = match &mut frame.open {
            Open::List(items) => {
                items.push(built.node);
                None
            }
            Open::Map(map) => map.take(built.node, mark),
        };
        self.report(said);
        Ok(())
    }

    /// The map's own entries, then those of `<<` that it does not have itself.
    fn merged(&mut self, map: OpenMap) -> Vec<(Key, Node)> {
        let OpenMap { mut entries, mut lines, merges, .. } = map;
        for merge in merges {
            let (line, column) = (merge.line, merge.column);
            let sources = match merge.value {
                Raw::List(items) => items,
                _ => vec![merge],
            };
            for source in sources {
                let Raw::Map(more) = source.value else {
                    let mistake = Mistake::new("<<", "only a map can be merged", "give an alias of a map");
                    self.report(Some(Mistake { line, column, ..mistake }));
                    continue;
                };
                for (key, value) in more {
                    if lines.insert(key.text.clone(), key.line).is_none() {
                        entries.push((key, value));
                    }
                }
            }
        }
        entries
    }

    fn charge(&mut self, size: Size, mark: Marker) -> Taken {
        self.spent.nodes += size.nodes;
        self.spent.bytes += size.bytes;
        if self.spent.nodes <= MAX_NODES && self.spent.bytes <= MAX_COPIED_BYTES {
            return Ok(());
        }
        let message = format!("the file holds more than {MAX_NODES} values once its aliases are expanded");
        Err(at(mark, message, "use fewer aliases, or put data into files of its own"))
    }

    fn refuse_strange(&mut self, tag: Option<&Tag>, mark: Marker) {
        const KNOWN: [&str; 9] = ["", "str", "int", "float", "bool", "null", "map", "seq", "timestamp"];
        let known = |t: &&Tag| KNOWN.contains(&t.suffix.as_str()) && (t.is_yaml_core_schema() || t.suffix.is_empty());
        let Some(tag) = tag.filter(|t| !known(t)) else { return };
        let message = format!("the tag `{}` has no meaning here", clip(&tag.to_string()));
        self.report(Some(*at(mark, message, "remove it, or quote a text that begins with `!`")));
    }

    fn report(&mut self, mistake: Option<Mistake>) {
        if self.mistakes.len() < MAX_MISTAKES {
            self.mistakes.extend(mistake);
        }
    }
}

impl OpenMap {
    /// Takes a key or, after one, its value.
    fn take(&mut self, node: Node, mark: Marker) -> Option<Mistake> {
        match self.key.take() {
            None => self.take_key(node, mark),
            Some(Pending::Key(key)) => {
                // An absent value has no place of its own; its key's is the one to show.
                let placed =
                    if node.value == Raw::Null { Node { line: key.line, column: key.column, ..node } } else { node };
                self.entries.push((key, placed));
                None
            }
            Some(Pending::Merge) => {
                self.merges.push(node);
                None
            }
            Some(Pending::Bad) => None,
        }
    }

    fn take_key(&mut self, node: Node, mark: Marker) -> Option<Mistake> {
        self.key = Some(Pending::Bad);
        let Node { line, column, value } = &node;
        let (line, column) = (*line, *column);
        if *value == (Raw::Text { text: "<<".to_owned(), quoted: false }) {
            self.key = Some(Pending::Merge);
            return None;
        }
        let Some(text) = node.scalar_text().map(str::to_owned) else {
            let fix = "replace a `{{...}}` placeholder by its value, or put it in quotes";
            return Some(*at(mark, "a key must be plain text", fix));
        };
        if let Some(first) = self.lines.insert(text.clone(), line) {
            let shown = clip(&text);
            let message = format!("`{shown}` is given twice, on line {first} and on line {line}");
            return Some(Mistake { line, column, ..Mistake::new(shown, message, "keep one of them") });
        }
        self.key = Some(Pending::Key(Key { text, line, column }));
        None
    }
}

fn node(mark: Marker, value: Raw) -> Node {
    Node { line: mark.line(), column: mark.col() + 1, value }
}

fn too_deep(mark: Marker) -> Box<Mistake> {
    at(mark, format!("lists and maps are nested more than {MAX_DEPTH} deep"), "flatten the file")
}

fn in_words(error: &ScanError) -> Mistake {
    let (message, fix) = plain::in_plain_words(error.info());
    *at(*error.marker(), message, fix)
}

fn at(mark: Marker, message: impl Into<String>, fix: &str) -> Box<Mistake> {
    Box::new(Mistake { line: mark.line(), column: mark.col() + 1, ..Mistake::new("", message, fix) })
}
