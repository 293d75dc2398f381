//! The keys of every noun's file, as one table: name, type, default, allowed words and a sentence each.
//!
//! The table is the only place that knows them. It checks files ([`compare`]), writes the reference
//! ([`reference`]) and describes files to editors ([`json_schema`]). What keys mean together is no business of
//! this room: see [`check`](super::check).

mod assets;
mod compare;
mod job;
mod reference;
mod schema;
mod suggest;
mod targets;

pub(crate) use compare::compare;
pub use reference::reference;
pub use schema::json_schema;
pub(crate) use suggest::nearest;

/// The nouns that have a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noun {
    Job,
    Environment,
    Data,
    Model,
    Datastore,
    Compute,
    Workspace,
}

/// A map with known keys.
pub(crate) struct Object {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) keys: &'static [Key],
    /// More keys, chosen by the value of the key `type`.
    pub(crate) variants: &'static [Variant],
}

pub(crate) struct Variant {
    pub(crate) word: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) keys: &'static [Key],
}

pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) required: bool,
    /// As a user would write it; empty when there is none.
    pub(crate) default: &'static str,
    pub(crate) doc: &'static str,
}

/// What may stand as a value.
pub(crate) enum Kind {
    Text,
    /// Text; a number or boolean becomes the text it was written as.
    Label,
    Int {
        min: i64,
        max: i64,
    },
    Bool,
    /// Text, a number or a boolean, kept as it is.
    Scalar,
    Words(&'static [&'static str]),
    /// A map with any keys, whose scalars become text.
    Labels,
    /// One text, split like a shell would, or a list of texts. Always a list afterwards.
    Arguments,
    /// A map with any keys and values.
    Map,
    Object(&'static Object),
    MapOf(&'static Kind),
    List(&'static Kind),
    /// The first whose form fits the value.
    Either(&'static [Kind]),
}

impl Noun {
    pub const ALL: [Noun; 7] =
        [Noun::Job, Noun::Environment, Noun::Data, Noun::Model, Noun::Datastore, Noun::Compute, Noun::Workspace];

    pub fn parse(text: &str) -> Option<Noun> {
        Noun::ALL.into_iter().find(|noun| noun.as_str() == text)
    }

    pub fn as_str(self) -> &'static str {
        self.object().name
    }

    pub(crate) fn object(self) -> &'static Object {
        match self {
            Noun::Job => &job::JOB,
            Noun::Environment => &assets::ENVIRONMENT,
            Noun::Data => &assets::DATA,
            Noun::Model => &assets::MODEL,
            Noun::Datastore => &targets::DATASTORE,
            Noun::Compute => &targets::COMPUTE,
            Noun::Workspace => &targets::WORKSPACE,
        }
    }
}

impl std::fmt::Display for Noun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An optional key.
const fn key(name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key { name, kind, required: false, default: "", doc }
}

impl Key {
    const fn required(self) -> Key {
        Key { required: true, ..self }
    }

    const fn or(self, default: &'static str) -> Key {
        Key { default, ..self }
    }
}

impl Kind {
    const COUNT: Kind = Kind::Int { min: 0, max: u32::MAX as i64 };
    const POSITIVE: Kind = Kind::Int { min: 1, max: u32::MAX as i64 };

    /// The kind in a few words, for messages and the reference.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Kind::Text | Kind::Label => "text".to_owned(),
            Kind::Int { min: 1, .. } => "a whole number from 1".to_owned(),
            Kind::Int { .. } => "a whole number".to_owned(),
            Kind::Bool => "`true` or `false`".to_owned(),
            Kind::Scalar => "text, a number or a boolean".to_owned(),
            Kind::Words(words) => words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", "),
            Kind::Labels => "a map of texts".to_owned(),
            Kind::Arguments => "text or a list of texts".to_owned(),
            Kind::Map | Kind::Object(_) => "a map".to_owned(),
            Kind::MapOf(_) => "a map of names".to_owned(),
            Kind::List(_) => "a list".to_owned(),
            Kind::Either(kinds) => kinds.iter().map(Kind::in_words).collect::<Vec<_>>().join(", or "),
        }
    }
}

impl Object {
    /// The keys that a value with this `type` may have. An unknown or absent type allows those of all variants,
    /// so that a wrong word is one mistake and not ten.
    pub(crate) fn keys_for(&self, word: Option<&str>) -> impl Iterator<Item = &'static Key> {
        let known = word.filter(|word| self.variants.iter().any(|v| v.word == *word)).map(str::to_owned);
        let chosen = move |v: &&Variant| known.as_deref().is_none_or(|word| word == v.word);
        self.keys.iter().chain(self.variants.iter().filter(chosen).flat_map(|v| v.keys))
    }
}

#[cfg(test)]
mod tests;
