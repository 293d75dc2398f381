//! The keys of every noun's file, as one table: name, type, default, allowed words and a sentence each.
//!
//! The table is the only place that knows them. It checks files ([`compare`]), writes the reference
//! ([`reference`]) and describes files to editors ([`json_schema`]). What keys mean together is no business of
//! this room: see [`check`](super::check).

mod assets;
mod automl;
mod batch;
mod compare;
mod component;
mod deployment;
mod endpoint;
mod job;
mod parts;
mod pipeline;
mod reference;
mod routes;
mod schedule;
mod schema;
mod spark;
mod suggest;
mod sweep;
mod targets;
mod workspace;

pub(crate) use compare::compare;
pub use reference::reference;
pub use schema::json_schema;
use suggest::folded;
pub use suggest::nearest;
pub(crate) use sweep::EXPRESSIONS;

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
    Component,
    OnlineEndpoint,
    OnlineDeployment,
    BatchEndpoint,
    BatchDeployment,
    Schedule,
    Registry,
    Routes,
}

/// A map with known keys.
pub(crate) struct Object {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) keys: &'static [Key],
    /// More keys, chosen by the value of the key `type`.
    pub(crate) variants: &'static [Variant],
    /// The variant meant when there is no `type`; none when that depends on something else.
    pub(crate) otherwise: Option<&'static str>,
    /// Keys that tell the variant when there is no `type`.
    pub(crate) marks: &'static [(&'static str, &'static str)],
    pub(crate) unknown: Unknown,
}

/// What becomes of keys that the table does not have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    Refused,
    /// Kept where the map has one of these keys, or always if none is listed, and unless they look like a slip in a
    /// known one.
    KeptBeside(&'static [&'static str]),
    Kept,
}

/// What most maps are: without variants, and with nothing but the keys of the table.
const PLAIN: Object =
    Object { name: "", doc: "", keys: &[], variants: &[], otherwise: None, marks: &[], unknown: Unknown::Refused };

pub(crate) struct Variant {
    /// The value of `type`; empty for the variant of maps that have none.
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
    Number,
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
    /// Anything at all.
    Any,
    /// Accepted and left out: what the server fills in, and a file made from `show` therefore has.
    Shown,
    /// `azureml:name:version`, `azureml:name@label`, a resource id or a registry's URI; with `version`, the
    /// name alone is not enough.
    Reference {
        to: &'static str,
        version: bool,
    },
    Object(&'static Object),
    MapOf(&'static Kind),
    List(&'static Kind),
    /// The first whose form fits the value.
    Either(&'static [Kind]),
}

impl Noun {
    pub const ALL: [Noun; 15] = [
        Noun::Job,
        Noun::Environment,
        Noun::Data,
        Noun::Model,
        Noun::Datastore,
        Noun::Compute,
        Noun::Workspace,
        Noun::Component,
        Noun::OnlineEndpoint,
        Noun::OnlineDeployment,
        Noun::BatchEndpoint,
        Noun::BatchDeployment,
        Noun::Schedule,
        Noun::Registry,
        Noun::Routes,
    ];

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
            Noun::Workspace => &workspace::WORKSPACE,
            Noun::Component => &component::COMPONENT,
            Noun::OnlineEndpoint => &endpoint::ONLINE_ENDPOINT,
            Noun::OnlineDeployment => &deployment::ONLINE_DEPLOYMENT,
            Noun::BatchEndpoint => &endpoint::BATCH_ENDPOINT,
            Noun::BatchDeployment => &batch::BATCH_DEPLOYMENT,
            Noun::Schedule => &schedule::SCHEDULE,
            Noun::Registry => &workspace::REGISTRY,
            Noun::Routes => &routes::ROUTES,
        }
    }
}

impl Noun {
    /// The map of a pipeline's step.
    fn step() -> &'static Object {
        &pipeline::STEP
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
    const INT: Kind = Kind::Int { min: i64::MIN, max: i64::MAX };
    const COUNT: Kind = Kind::Int { min: 0, max: u32::MAX as i64 };
    const POSITIVE: Kind = Kind::Int { min: 1, max: u32::MAX as i64 };

    /// The kind in a few words, for messages and the reference.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Kind::Text | Kind::Label => "text".to_owned(),
            Kind::Int { min: 1, .. } => "a whole number from 1".to_owned(),
            Kind::Int { .. } => "a whole number".to_owned(),
            Kind::Number => "a number".to_owned(),
            Kind::Any => "any value".to_owned(),
            Kind::Shown => "anything; ignored".to_owned(),
            Kind::Reference { to, .. } => format!("a reference to one of the {to}, such as `azureml:name:version`"),
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
    /// The variant that a value with this `type` is of.
    pub(crate) fn variant(&self, word: Option<&str>) -> Option<&'static Variant> {
        let word = word.or(self.otherwise)?;
        self.variants.iter().find(|v| folded(v.word) == folded(word))
    }

    /// The keys that a value with this `type` may have. Where the type is unknown, or absent and could be several,
    /// those of all variants are allowed, so that a wrong word is one mistake and not ten.
    pub(crate) fn keys_for(&self, word: Option<&str>) -> impl Iterator<Item = &'static Key> {
        let chosen = self.variant(word);
        let all = if chosen.is_none() { self.variants } else { &[] };
        self.keys.iter().chain(chosen.into_iter().chain(all).flat_map(|v| v.keys))
    }

    /// Every key of every variant.
    pub(crate) fn all_keys(&self) -> impl Iterator<Item = &'static Key> {
        self.keys.iter().chain(self.variants.iter().flat_map(|v| v.keys))
    }
}

#[cfg(test)]
mod tests;
